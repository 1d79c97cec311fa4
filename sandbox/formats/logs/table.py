"""Who prints what: parsers by the names that data sets use, by repository, and by language."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sandbox.formats.logs import (
    browser,
    compiled,
    java,
    jest,
    mocha,
    p5,
    pytests,
    scripted,
    sympy,
    unittests,
)
from sandbox.formats.logs.sighting import Parser, Setting, Sighting, UnreadableLog

_PREFIX = "parse_log_"


def _immutable(text: str, setting: Setting) -> Iterator[Sighting]:
    """Which runner a change was tested with is known by its number only."""
    match setting.instance.rpartition("-")[2]:
        case "2006":
            yield from jest.verbose(text, setting)
        case "2005":
            yield from jest.from_json(text, setting)
        case _:
            raise UnreadableLog(f"nobody knows the runner of {setting.instance!r}")


_PYTHON: Mapping[str, Parser] = {
    **dict.fromkeys(
        ("pytest", "astroid", "flask", "marshmallow", "pvlib", "pyvista", "sqlfluff", "xarray"),
        pytests.plain,
    ),
    **dict.fromkeys(("pytest_options", "pydicom", "requests", "pylint"), pytests.options),
    **dict.fromkeys(("pytest_v2", "astropy", "scikit", "sphinx"), pytests.v2),
    "matplotlib": pytests.matplotlib,
    "seaborn": pytests.seaborn,
    "django": unittests.django,
    "sympy": sympy.sympy,
}
PYTHON = frozenset(_PYTHON)
PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        **_PYTHON,
        **dict.fromkeys(("carbon", "react_pdf"), jest.suites),
        "calypso": jest.calypso,
        "grommet": jest.grommet,
        "jest": jest.verbose,
        "jest_json": jest.from_json,
        "vitest": jest.vitest,
        "immutable_js": _immutable,
        "eslint": mocha.eslint,
        "highlightjs": mocha.highlightjs,
        "lighthouse": mocha.lighthouse,
        "marked": mocha.marked,
        "prismjs": mocha.prism,
        "quarto_cli": mocha.quarto,
        "tap": mocha.tap,
        "p5js": p5.p5js,
        "bpmn_js": browser.bpmn,
        "chart_js": browser.chart,
        "karma": browser.karma,
        "next": browser.next_ui,
        "openlayers": browser.openlayers,
        "redis": compiled.redis,
        "jq": compiled.jq,
        "doctest": compiled.doctest,
        "micropython_test": compiled.micropython,
        "googletest": compiled.googletest,
        "gotest": compiled.go,
        "cargo": compiled.cargo,
        "maven": java.maven,
        "ant": java.ant,
        "gradle_custom": java.gradle,
        "phpunit": scripted.phpunit,
        "minitest": scripted.minitest,
        "cucumber": scripted.cucumber,
        "ruby_unit": scripted.test_unit,
        "rspec_transformed_json": scripted.rspec,
        "jekyll": scripted.jekyll,
        "mocha": mocha.spec,
    }
)
"""Without the data sets' prefix `parse_log_`."""

_BY_REPOSITORY = {
    "astropy/astropy": "astropy",
    "django/django": "django",
    "marshmallow-code/marshmallow": "marshmallow",
    "matplotlib/matplotlib": "matplotlib",
    "mwaskom/seaborn": "seaborn",
    "pallets/flask": "flask",
    "psf/requests": "requests",
    "pvlib/pvlib-python": "pvlib",
    "pydata/xarray": "xarray",
    "pydicom/pydicom": "pydicom",
    "pylint-dev/astroid": "astroid",
    "pylint-dev/pylint": "pylint",
    "pytest-dev/pytest": "pytest",
    "pyvista/pyvista": "pyvista",
    "scikit-learn/scikit-learn": "scikit",
    "sphinx-doc/sphinx": "sphinx",
    "sqlfluff/sqlfluff": "sqlfluff",
    "sympy/sympy": "sympy",
    "alibaba-fusion/next": "next",
    "automattic/wp-calypso": "calypso",
    "axios/axios": "tap",
    "babel/babel": "jest",
    "bpmn-io/bpmn-js": "bpmn_js",
    "carbon-design-system/carbon": "carbon",
    "chartjs/chart.js": "chart_js",
    "diegomura/react-pdf": "react_pdf",
    "eslint/eslint": "eslint",
    "facebook/docusaurus": "jest",
    "googlechrome/lighthouse": "lighthouse",
    "grommet/grommet": "grommet",
    "highlightjs/highlight.js": "highlightjs",
    "immutable-js/immutable-js": "immutable_js",
    "markedjs/marked": "marked",
    "mrdoob/three.js": "tap",
    "openlayers/openlayers": "openlayers",
    "preactjs/preact": "karma",
    "prettier/prettier": "carbon",
    "prismjs/prism": "prismjs",
    "processing/p5.js": "p5js",
    "quarto-dev/quarto-cli": "quarto_cli",
    "scratchfoundation/scratch-gui": "carbon",
    "vuejs/core": "vitest",
    "fmtlib/fmt": "googletest",
    "jqlang/jq": "jq",
    "micropython/micropython": "micropython_test",
    "nlohmann/json": "doctest",
    "redis/redis": "redis",
    "valkey-io/valkey": "redis",
    "caddyserver/caddy": "gotest",
    "gin-gonic/gin": "gotest",
    "gohugoio/hugo": "gotest",
    "hashicorp/terraform": "gotest",
    "prometheus/prometheus": "gotest",
    "apache/druid": "maven",
    "apache/lucene": "gradle_custom",
    "google/gson": "maven",
    "javaparser/javaparser": "maven",
    "projectlombok/lombok": "ant",
    "reactivex/rxjava": "gradle_custom",
    "briannesbitt/carbon": "phpunit",
    "laravel/framework": "phpunit",
    "php-cs-fixer/php-cs-fixer": "phpunit",
    "phpoffice/phpspreadsheet": "phpunit",
    "faker-ruby/faker": "ruby_unit",
    "fastlane/fastlane": "rspec_transformed_json",
    "fluent/fluentd": "ruby_unit",
    "jekyll/jekyll": "jekyll",
    "jordansissel/fpm": "rspec_transformed_json",
    "rubocop/rubocop": "rspec_transformed_json",
    "astral-sh/ruff": "cargo",
    "burntsushi/ripgrep": "cargo",
    "nushell/nushell": "cargo",
    "sharkdp/bat": "cargo",
    "tokio-rs/axum": "cargo",
    "tokio-rs/tokio": "cargo",
    "uutils/coreutils": "cargo",
}

_BY_LANGUAGE = {
    "python": "pytest",
    **dict.fromkeys(("javascript", "js", "typescript", "ts"), "jest"),
    **dict.fromkeys(("go", "golang"), "gotest"),
    "rust": "cargo",
    "java": "maven",
    "kotlin": "gradle_custom",
    "php": "phpunit",
    "ruby": "minitest",
    "c": "googletest",
    "c++": "googletest",
    "cpp": "googletest",
}


def parser_name(*, named: str = "", repository: str = "", language: str = "") -> str | None:
    """What the data set says, else what is known of the repository, else of the language."""
    if named:
        short = named.removeprefix(_PREFIX)
        return short if short in PARSERS else None
    if short := _BY_REPOSITORY.get(repository.lower(), ""):
        return short
    return _BY_LANGUAGE.get(language.lower())
