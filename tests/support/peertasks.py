"""Tasks of our own in the formats of Harbor and Terminal-Bench: every field, protocol and trap.

Each is a folder's files, path → text. A name that ends in `.sh` is executable.
"""

from tests.support.harbortasks import HARBOR as HARBOR  # noqa: PLC0414 - users import it from here
from tests.support.peerfiles import COMPOSE, UV, VENV, Files, bench, exists, harbor
from tests.support.peerfiles import write as write  # noqa: PLC0414

BENCH: dict[str, Files] = {
    "usual": bench(
        """
        author_name: A
        author_email: a@example.org
        category: files
        tags: [one]
        parser_name: pytest
        max_agent_timeout_sec: 100.0
        max_test_timeout_sec: 300
        run_tests_in_same_shell: false
        disable_asciinema: true
        estimated_duration_sec: 20
        expert_time_estimate_min: 3
        junior_time_estimate_min: 30
        """,
        **{
            "tests/test_outputs.py": "import os, pytest\ndef test_there():\n"
            "    assert os.path.exists('/app/done.txt')\ndef test_colour():\n"
            "    assert os.environ['COLOUR'] == 'blue'\n"
            "@pytest.mark.skip\ndef test_later():\n    pass\n",
        },
    ),
    "typed": {
        k: v
        for k, v in bench(
            **{
                "solution.yaml": "- command: touch done.txt\n  min_timeout_sec: 1.0\n  block: true\n"
                "- command: \"cat <<'X' > other.txt\\nX\"\n",
                "run-tests.sh": VENV,
            }
        ).items()
        if k != "solution.sh"
    },
    "same-shell": bench("run_tests_in_same_shell: true\n"),
    "no-compose": {k: v for k, v in bench().items() if k != "docker-compose.yaml"},
    # Scripts beside the tests that install and run them; a difficulty that is none of ours.
    "sourced": bench(
        **{
            "task.yaml": "# canary GUID 1\ninstruction: |-\n  Write done.txt.\ndifficulty: unknown\n"
            "estimated_duration_sec: null\n",
            "run-tests.sh": "source $TEST_DIR/setup.sh\nbash $TEST_DIR/run.sh\n",
            "tests/setup.sh": UV.rpartition("uv run")[0],
            "tests/run.sh": "uv run pytest $TEST_DIR/test_outputs.py -rA\n",
            "tests/test_outputs.py": "import os, pytest\n@pytest.mark.parametrize('word', ['a b', 'c - d'])\n"
            "def test_it(word):\n    assert os.path.exists('/app/done.txt')\n"
            "@pytest.mark.xfail\ndef test_later():\n    assert 0\n",
        }
    ),
    # What compose says of a container: its limits, its folder, what nobody here needs.
    "limits": bench(
        **{
            "docker-compose.yaml": COMPOSE
            + "    working_dir: /work\n    mem_limit: 1g\n    deploy:\n      resources:\n        limits:\n"
            "          cpus: '1.5'\n    ports: ['80:80']\n    tty: true\nvolumes: {}\n",
            "tests/test_outputs.py": exists("/work/done.txt"),
        }
    ),
    "break-system-packages": bench(
        **{
            "Dockerfile": "FROM python:3.13-slim-bookworm\nRUN apt-get update && apt-get install -y tmux asciinema\n"
            "WORKDIR /app\n",
            "run-tests.sh": "#!/bin/bash\nset -e\npip3 install --break-system-packages pytest==8.3.4\n"
            "cd $TEST_DIR\npytest test_outputs.py -rA\n",
        }
    ),
}
"""These become tasks here."""

REFUSED: dict[str, tuple[str, Files, str]] = {
    "unknown-key": (
        "harbor",
        harbor("x", "[verifier]\ntimeout = 3\n"),
        "task.toml:5: unknown key",
    ),
    "unknown-schema": (
        "harbor",
        {**harbor("x"), "task.toml": 'schema_version = "2.0"\n'},
        "schema 2.0",
    ),
    "everything": (
        "harbor",
        harbor(
            "x",
            """
            [environment]
            os = "windows"
            gpus = 1
            gpu_types = ["H100"]
            tpu = {type = "v5", topology = "2x2"}
            skills_dir = "/skills"
            [[environment.mcp_servers]]
            name = "tools"
            transport = "stdio"
            url = "http://localhost"
            command = "serve"
            args = ["-v"]
            headers = {A = "b"}
            [[verifier.collect]]
            command = "dump"
            service = "main"
            timeout_sec = 5.0
            user = "root"
            """,
            **{"trajectory.json": "{}"},
        ),
        "(and 7 more)",
    ),
    "far": (
        "harbor",
        harbor("x", **{"tests/test.sh": "npm install -g x\ngit clone https://example.org/r\n"}),
        "npm install -g x",
    ),
    "no-base": (
        "harbor",
        harbor("x", **{"environment/Dockerfile": "FROM alpine:3\n"}),
        "--base",
    ),
    "stages": (
        "harbor",
        harbor("x", **{"environment/Dockerfile": "FROM debian:12 AS a\nFROM debian:12\n"}),
        "several stages",
    ),
    "step-healthcheck": (
        "harbor",
        {
            **HARBOR["steps"],
            "task.toml": 'schema_version = "1.4"\n[[steps]]\nname = "one"\n[steps.healthcheck]\n'
            'command = "true"\n',
        },
        "steps.one.healthcheck",
    ),
    "other-containers": (
        "harbor",
        harbor(
            "x",
            **{
                "environment/docker-compose.yaml": "services:\n  main: {}\n  db: {image: postgres}\n"
            },
        ),
        "compose.services.db",
    ),
    "compose-of-elsewhere": (
        "harbor",
        harbor(
            "x",
            **{
                "environment/docker-compose.yaml": "services:\n  main:\n    build: {dockerfile: ../../x}\n"
            },
        ),
        "compose.services.main.build",
    ),
    "context-of-elsewhere": (
        "terminal-bench",
        bench(**{"docker-compose.yaml": "services:\n  client:\n    build: /etc\n"}),
        "compose.services.client.build",
    ),
    "compose-that-is-a-list": (
        "harbor",
        harbor("x", **{"environment/docker-compose.yaml": "services: [main]\n"}),
        "compose.services",
    ),
    "key-of-the-host": (
        "harbor",
        harbor("x", '[verifier]\nenv = {KEY = "${KEY}"}\n'),
        "verifier.env.KEY",
    ),
    "typed-keys": (
        "terminal-bench",
        {
            k: v
            for k, v in bench(
                **{"solution.yaml": "- command: ihi\n  append_enter: false\n"}
            ).items()
            if k != "solution.sh"
        },
        "solution.yaml",
    ),
    "services": (
        "terminal-bench",
        bench(**{"docker-compose.yaml": COMPOSE + "  db:\n    image: postgres\n"}),
        "compose.services.db",
    ),
    "parser": ("terminal-bench", bench("parser_name: swebench\n"), "parser_name"),
    "bench-key": ("terminal-bench", bench("max_timeout: 3\n"), "task.yaml:3: unknown key"),
}
"""Format, files, and what is said."""
