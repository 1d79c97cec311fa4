"""The plain runner on every style of test: as pytest itself says, with no pytest to be seen."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RUNNERS = Path(__file__).resolve().parents[2] / "verifiers" / "_runners"
CONFTEST = """\
import pytest
@pytest.fixture(params=["x", 2], scope="module")
def par(request): return request.param
@pytest.fixture(autouse=True)
def auto(): yield
@pytest.fixture
def over(): return 1
"""
ZOO = """\
import enum, os, re, sys, unittest, warnings
import pytest
from pytest import raises
class Col(enum.Enum):
    RED = 1
def f(): pass
@pytest.mark.parametrize("a", [1, 2.5, None, True, "s", "é\\n", b"b\\xff", f, Col.RED, object(), [1], re.compile("x"), 1j, "", int])
def test_ids(a): pass
@pytest.mark.parametrize("a", [1, 2])
@pytest.mark.parametrize("b,c", [(3, 4), pytest.param(5, 6, id="five"), pytest.param(7, 8, marks=pytest.mark.skip)])
def test_stack(a, b, c): assert c == b + 1
@pytest.mark.parametrize("a", ["x", "x", "x0", "d1", "d1"])
def test_dup(a): pass
@pytest.mark.parametrize("a", [1, [2]], ids=lambda v: None if v == 1 else "two")
def test_idf(a): pass
@pytest.mark.parametrize("a", [1, [2]], ids=["one", None])
def test_idl(a): pass
def test_par(par): assert par
@pytest.mark.parametrize("z", [8, 9])
def test_par_z(par, z): assert par
class TestC:
    @pytest.fixture
    def over(self, over): return over + 1
    @pytest.fixture(params=[1, 2])
    def q(self, request): return request.param
    def setup_method(self): self.x = 1
    def test_over(self, over): assert over == 2 and self.x == 1
    def test_q(self, q): assert q
    @pytest.mark.parametrize("k", "ab")
    def test_k(self, k): assert k in "ab"
    @staticmethod
    def test_static(): pass
class TestD(TestC):
    def test_more(self, tmp_path): assert tmp_path.is_dir()
class TestInit:
    def __init__(self): pass
    def test_no(self): pass
def test_raises():
    with pytest.raises(ValueError, match="bad") as e: raise ValueError("bad thing")
    assert e.value.args == ("bad thing",) and e.type is ValueError
    with raises(KeyError): {}["x"]
    raises(ValueError, int, "x")
def test_noraise():
    with raises(KeyError): pass
def test_fail(): assert 1 == 2
def test_err(nope): pass
@pytest.mark.xfail
def test_xf(): assert 0
@pytest.mark.xfail(strict=True)
def test_xs(): pass
@pytest.mark.xfail(sys.version_info < (3,), reason="no")
def test_xc(): pass
@pytest.mark.skipif("sys.version_info > (3,)", reason="s")
def test_sk(): pass
def test_skip(): pytest.skip("x")
def test_warn():
    with pytest.warns(UserWarning, match="u"): warnings.warn("u")
    with pytest.deprecated_call(): warnings.warn("u", DeprecationWarning)
def test_approx():
    assert 0.1 + 0.2 == pytest.approx(0.3); assert [0.1 + 0.2] == pytest.approx([0.3])
def test_mp(monkeypatch):
    monkeypatch.setenv("X_Y", "1"); assert os.environ["X_Y"] == "1"
    monkeypatch.setattr(os, "sep", "!"); monkeypatch.setattr("os.sep", "!"); assert os.sep == "!"
def test_caps(capsys):
    print("hi"); assert capsys.readouterr().out == "hi\\n"; assert capsys.readouterr() == ("", "")
def test_capfd(capfd):
    os.write(1, b"hi\\n"); print("x", file=sys.stderr); assert capfd.readouterr() == ("hi\\n", "x\\n")
def test_tmpdir(tmpdir):
    p = tmpdir.join("x"); p.write("abc"); assert p.read() == "abc"
def test_default(a=1): assert a
@pytest.mark.parametrize("over", [4], indirect=True)
def test_ind(over): assert over
@pytest.mark.usefixtures("over")
def test_used(request): assert request.node.name == "test_used"
class T(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.z = 3
    def setUp(self): self.y = 1
    def test_a(self):
        self.assertEqual(self.y, 1); self.assertEqual(self.z, 3)
        with self.assertRaises(ValueError): int("x")
    def test_b(self): self.fail("no")
    @unittest.skip("why")
    def test_c(self): pass
    def test_d(self): self.skipTest("d")
    def helper(self): pass
class NotATest:
    def test_x(self): pass
class TestOuter:
    class TestInner:
        def test_in(self): pass
class TestBound:
    @pytest.fixture(scope="class", autouse=True)
    def once(self, request):
        request.cls.count = getattr(request.cls, "count", 0) + 1
        yield
        request.cls.count = 0
    def test_first(self): assert self.count == 1
    def test_second(self): assert self.count == 1
@pytest.fixture
def broken_end():
    yield 1
    raise ValueError("end")
def test_broken_end(broken_end): assert broken_end
@pytest.mark.parametrize("given", [1, 2], indirect=["given"])
def test_indirect(given): assert given in (2, 4)
@pytest.fixture
def given(request): return request.param * 2
def test_finalizer(request, capsys):
    request.addfinalizer(lambda: print("over"))
def test_log(caplog):
    import logging
    logging.getLogger("a").warning("b %d", 1)
    assert caplog.messages == ["b 1"]
def test_recwarn(recwarn):
    warnings.warn("x")
    assert len(recwarn) == 1 and recwarn.pop(UserWarning)
def test_exit(): sys.exit(0)
def test_importorskip(): pytest.importorskip("no_such_module")
def test_call_xfail(): pytest.xfail("x")
def test_pytest_fail(): pytest.fail("x")
@pytest.mark.filterwarnings("error")
def test_strict(): warnings.warn("x")
def pytest_generate_tests(metafunc):
    if "made" in metafunc.fixturenames:
        metafunc.parametrize("made", [1, 2], ids=["one", "two"])
@pytest.mark.parametrize("z", "ab")
def test_made(z, made, par): assert made in (1, 2)
def test_names():
    def test_inner(): pass
    assert test_inner.__name__ == "test_inner"
@pytest.fixture
def renamed(request): return request.getfixturevalue("over")
@pytest.fixture(name="nick")
def long_name(): return 7
def test_named(renamed, nick): assert renamed == 1 and nick == 7
"""
UNSEEN = """\
import os, sys
import pytest
from code_under_test import traces
@pytest.fixture
def thing(): return traces()
@pytest.mark.parametrize("n", [1])
def test_traces(thing, n):
    __observe__("fixture", thing)
    __observe__("here", traces())
    __observe__("deeper", Deep().test_more())
class Deep:
    def test_more(self): return traces()
"""
CODE = """\
import os, sys
def traces():
    found = [n for n in sys.modules if n.partition(".")[0] in ("pytest", "_pytest", "pluggy", "_plugin")]
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        found += [t for t in (code.co_name, code.co_filename) if "test" in t or "verif" in t or "runner" in t]
        frame = frame.f_back
    with open("/proc/self/cmdline") as f:
        found += [t for t in (*sys.argv, *sys.orig_argv, f.read()) if "plan" in t or "runner" in t]
    found += [n for n in os.environ if n.startswith("PYTEST")]
    found += [n for n in sys.modules if "plain" in n or n == "common"]
    found += [n for n in dir(sys.modules["__main__"]) if n in ("__file__", "TOLD")]
    try:
        import pytest
        found.append("import")
    except ImportError:
        pass
    return found
"""


def records(folder: Path, runner: str, files: Mapping[str, str]) -> list[dict[str, Any]]:
    for name, text in files.items():
        (folder / name).write_text(text)
    plan = {
        "workdir": str(folder),
        "arguments": ["."],
        "environment": {"PYTHONPATH": str(folder)},
        "ini": str(folder / "pytest.ini"),
        "sealed": [str(path) for path in folder.glob("test_*.py")],
        "umask": 0o022,
        "order": None,
        "draw": False,
        "traceback": "short",
        "raw": False,
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    told = folder / "records"
    with told.open("w+b") as f:
        arguments = [str(RUNNERS / f"{runner}.py"), str(folder / "plan.json"), str(f.fileno())]
        subprocess.run(
            [sys.executable, "-P", "-s", *arguments],
            env={"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            pass_fds=[f.fileno()],
            capture_output=True,
            check=False,
            timeout=120,
        )
    return [json.loads(line) for line in told.read_text().splitlines()]


def outcomes(told: list[dict[str, Any]]) -> dict[str, str]:
    return {r["check"]: r["outcome"] for r in told if "check" in r}


def test_every_style_of_test_has_the_same_name_and_outcome_as_with_pytest(tmp_path: Path):
    zoo = {"conftest.py": CONFTEST, "test_zoo.py": ZOO, "pytest.ini": "[pytest]\n"}
    plain = outcomes(records(tmp_path, "run_plain", zoo))
    usual = outcomes(records(tmp_path, "run_pytest", zoo))
    assert len(usual) > 80
    assert plain == usual


def test_there_is_nothing_of_a_test_runner_to_be_seen(tmp_path: Path):
    files = {"code_under_test.py": CODE, "test_unseen.py": UNSEEN}
    told = records(tmp_path, "run_plain", files)
    assert outcomes(told) == {"test_unseen.py::test_traces[1]": "passed"}
    observed = {r["observe"]: r["value"] for r in told if "observe" in r}
    assert observed == {"fixture": "[]", "here": "[]", "deeper": "[]"}


def test_what_is_not_there_is_left_and_nothing_else(tmp_path: Path):
    text = (
        "import pytest\nfrom pytest_plugin_of_ours import Thing\n"
        "async def test_async(): ...\n"
        "def test_asks(no_such_fixture): ...\n"
        "def test_uses(): Thing()\n"
        "def test_unknown(): pytest.register_assert_rewrite('x')\n"
        "def test_swallows():\n    try: pytest.no_such_thing()\n    except Exception: pass\n"
        "def test_plain(): ...\n"
    )
    plugin = "import pytest\nclass Thing: ...\n"
    told = records(tmp_path, "run_plain", {"test_a.py": text, "pytest_plugin_of_ours.py": plugin})
    found = outcomes(told)
    assert found.pop("test_a.py::test_plain") == "passed"
    assert set(found.values()) == {"error"}
    assert len(found) == 5
    assert all(r["message"].startswith("left: ") for r in told if r.get("outcome") == "error")


def test_a_module_that_cannot_be_loaded_is_told_of_and_the_others_run(tmp_path: Path):
    files = {"test_a.py": "1 / 0\n", "test_b.py": "def test_b(): ...\n"}
    told = records(tmp_path, "run_plain", files)
    assert outcomes(told) == {"test_b.py::test_b": "passed"}
    assert [r["uncollected"] for r in told if "uncollected" in r] == ["test_a.py"]
    assert "end" in told[-1]


def test_what_another_runner_did_is_left_out(tmp_path: Path):
    told = records(tmp_path, "run_plain", {"test_a.py": "def test_a(): ...\ndef test_b(): ...\n"})
    begun = [r["begin"] for r in told if "begin" in r]
    assert begun == list(outcomes(told)) == ["test_a.py::test_a", "test_a.py::test_b"]
