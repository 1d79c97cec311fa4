"""Twenty tasks of our own in the formats of Harbor and Terminal-Bench: every field, protocol and trap.

Each is a folder's files, path → text. A name that ends in `.sh` is executable.
"""

import textwrap
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, str]

_UVX = """\
#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env
uvx -p 3.13 -w pytest==8.4.1 pytest /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
_CTRF = """\
status=$?
said() { echo "{\\"results\\": {\\"tests\\": [{\\"name\\": \\"one\\", \\"status\\": \\"$1\\"}]}}"; }
if [ $status -eq 0 ]; then said passed; else said failed; fi > /logs/verifier/ctrf.json
if [ $status -eq 0 ]; then"""
_UV = """\
#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh
source $HOME/.local/bin/env
if [ "$PWD" = "/" ]; then echo "no working directory"; exit 1; fi
uv init
uv add pytest==8.4.1
uv run pytest $TEST_DIR/test_outputs.py -rA
"""
_VENV = """\
#!/bin/bash
uv venv .tbench-testing
source .tbench-testing/bin/activate
uv pip install pytest==8.4.1
pytest $TEST_DIR/test_outputs.py -rA
"""
_COMPOSE = """\
services:
  client:
    build:
      dockerfile: Dockerfile
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
      - COLOUR=blue
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
      - ${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
"""


def _toml(name: str, more: str = "") -> str:
    head = f'schema_version = "1.4"\n[task]\nname = "ours/{name}"\n'
    return head + textwrap.dedent(more)


def _exists(*paths: str) -> str:
    lines = ["import os"]
    for n, path in enumerate(paths):
        lines += [f"def test_{n}():", f"    assert os.path.exists({path!r})"]
    return "\n".join(lines) + "\n"


def _harbor(name: str, more: str = "", **files: str) -> dict[str, str]:
    given = {
        "task.toml": _toml(name, more),
        "instruction.md": "Write /app/done.txt.\n",
        "environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\n",
        "tests/test.sh": _UVX,
        "tests/test_outputs.py": _exists("/app/done.txt"),
        "solution/solve.sh": "#!/bin/bash\ntouch done.txt\n",
    }
    return given | files


def _bench(more: str = "", **files: str) -> dict[str, str]:
    given = {
        "task.yaml": "instruction: Write done.txt.\ndifficulty: easy\n" + textwrap.dedent(more),
        "Dockerfile": "FROM ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624\nWORKDIR /app\n",
        "docker-compose.yaml": _COMPOSE,
        "run-tests.sh": _UV,
        "tests/test_outputs.py": _exists("/app/done.txt"),
        "solution.sh": "#!/bin/bash\ntouch done.txt\n",
    }
    return given | files


def _reward(lines: str) -> str:
    return "#!/bin/bash\n" + textwrap.dedent(lines)


HARBOR: dict[str, Files] = {
    # The usual one: uvx and pytest at grading time, reward.txt of an exit code, a file of CTRF.
    "usual": _harbor(
        "usual",
        """
        version = "2"
        description = "Files"
        authors = [{name = "A", email = "a@example.org"}]
        keywords = ["files"]
        [metadata]
        difficulty = "hard"
        category = "files"
        tags = ["one"]
        expert_time_estimate_min = 7
        created = 2025-01-01
        [agent]
        timeout_sec = 120
        [verifier]
        timeout_sec = 90.0
        [environment]
        cpus = 1
        memory_mb = 1024
        storage_mb = 2048
        gpus = 0
        os = "linux"
        build_timeout_sec = 300.0
        network_mode = "no-network"
        """,
        **{
            "environment/Dockerfile": "ARG V=24.04\nFROM ubuntu:${V} AS base\nENV DEBIAN_FRONTEND="
            "noninteractive\nRUN apt-get update && apt-get install -y --no-install-recommends \\\n"
            "    git make \\\n    # a comment\n    && rm -rf /var/lib/apt/lists/*\n"
            "RUN pip install --break-system-packages pytest==8.4.2\nWORKDIR /app\n"
            "COPY data/ ./data/\nCOPY *.txt /srv/texts/\nADD one.txt two.txt /opt/both/\n"
            "RUN <<EOF\nset -e\nmkdir -p made && echo made > made/it.txt\nEOF\n"
            'COPY --chmod=700 tool.sh /usr/local/bin/tool\nLABEL a=b\nEXPOSE 80\nCMD ["bash"]\n',
            "environment/data/a.csv": "1,2\n",
            "environment/one.txt": "1\n",
            "environment/two.txt": "2\n",
            "environment/tool.sh": "#!/bin/sh\necho tool\n",
            "environment/.dockerignore": "*.md\n!keep.md\n",
            "environment/no.md": "",
            "tests/test_outputs.py": _exists(
                "/app/done.txt",
                "/app/data/a.csv",
                "/app/made/it.txt",
                "/srv/texts/two.txt",
                "/opt/both/one.txt",
                "/usr/local/bin/tool",
                "/tests/test.sh",
            ),
            "tests/test.sh": _UVX.replace("if [ $? -eq 0 ]; then", _CTRF),
            "README.md": "For people.\n",
        },
    ),
    # Credit for a part, and some of it for nothing at all.
    "part": _harbor(
        "part",
        **{
            "tests/test.sh": _reward("""
                n=1
                [ -f done.txt ] && n=$((n + 2))
                [ -f more.txt ] && n=$((n + 1))
                python3 -c "print($n / 4)" > /logs/verifier/reward.txt
            """),
            "solution/solve.sh": "touch done.txt more.txt\n",
        },
    ),
    # Several rewards, none of them called `reward`.
    "several": _harbor(
        "several",
        **{
            "tests/test.sh": _reward("""
                a=0; [ -f done.txt ] && a=1
                echo "{\\"there\\": $a, \\"style\\": $a.0}" > /logs/verifier/reward.json
            """)
        },
    ),
    # A verifier of its own: an image of its tests, and artifacts.
    "separate": _harbor(
        "separate",
        """
        [verifier]
        environment_mode = "separate"
        user = "root"
        network_mode = "public"
        env = {LEVEL = "${LEVEL:-3}"}
        [verifier.environment]
        memory_mb = 512
        """,
        **{
            "task.toml": 'schema_version = "1.4"\nartifacts = ["/app/out", {source = "/srv/result",'
            ' destination = "r", exclude = ["*.log"], service = "main"}]\n[task]\n'
            'name = "ours/separate"\n[verifier]\nenvironment_mode = "separate"\nuser = "root"\n'
            'network_mode = "public"\nenv = {LEVEL = "${LEVEL:-3}"}\n[verifier.environment]\n'
            "memory_mb = 512\n",
            "tests/Dockerfile": "FROM python:3.12-slim\nRUN pip install pytest==8.4.1\n"
            "WORKDIR /tests\nCOPY . /tests\n",
            "tests/test_outputs.py": "import os\ndef test_it():\n"
            "    assert open('/app/out/a').read() == 'a'\n    assert os.path.exists('/srv/result/b')\n"
            "    assert not os.path.exists('/app/beside')\n    assert os.environ['LEVEL'] == '3'\n",
            "solution/solve.sh": "mkdir -p out /srv/result\nprintf a > out/a\n"
            "touch /srv/result/b /srv/result/c.log beside\n",
        },
    ),
    # Two steps, each of which is a task here.
    "steps": {
        "task.toml": 'schema_version = "1.4"\nmulti_step_reward_strategy = "final"\n[task]\n'
        'name = "ours/steps"\n[[steps]]\nname = "one"\nmin_reward = 1.0\n[steps.agent]\n'
        'timeout_sec = 60\n[[steps]]\nname = "two"\n[steps.verifier]\ntimeout_sec = 30\n',
        "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
        "steps/one/instruction.md": "Write one.txt.\n",
        "steps/one/tests/test.sh": _reward("""
            [ -f one.txt ] && [ ! -f given.txt ] && echo 1 > /logs/verifier/reward.txt \\
              || echo 0 > /logs/verifier/reward.txt
        """),
        "steps/one/solution/solve.sh": "touch one.txt\n",
        "steps/two/instruction.md": "Write two.txt.\n",
        "steps/two/workdir/given.txt": "given\n",
        "steps/two/workdir/setup.sh": "touch set-up.txt\n",
        "steps/two/tests/test.sh": _reward("""
            [ -f one.txt ] && [ -f two.txt ] && [ -f given.txt ] && [ -f set-up.txt ] \\
              && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
        """),
        "steps/two/solution/solve.sh": "touch two.txt\n",
    },
    # An image by name, an entrypoint, a check of health, users, variables, old names of keys.
    "old": _harbor(
        "old",
        **{
            "task.toml": 'version = "1.0"\n[metadata]\ndifficulty = "medium"\n[agent]\nuser = "dev"\n'
            'network_mode = "allowlist"\nallowed_hosts = ["pypi.org", "*.debian.org"]\n'
            '[environment]\nmemory = "1G"\nstorage = "2G"\nallow_internet = true\n'
            'env = {COLOUR = "red"}\n[environment.healthcheck]\ncommand = "test -f /app/entered"\n'
            '[solution]\nenv = {WORD = "${WORD:-yes}"}\n',
            "instruction.md": "<!-- canary GUID 1234 -->\n\nWrite done.txt.\n",
            "environment/Dockerfile": "FROM python:3.13-slim-bookworm\nRUN useradd -m dev\n"
            "WORKDIR /app\nCOPY --chown=dev entry.sh /entry.sh\nUSER dev\n"
            'ENTRYPOINT ["/bin/bash", "/entry.sh"]\n',
            "environment/entry.sh": '#!/bin/sh\necho "$COLOUR" > /app/entered\nexec "$@"\n',
            "tests/test_outputs.py": "def test_it():\n"
            "    assert open('/app/entered').read() == 'red\\n'\n"
            "    assert open('/app/done.txt').read() == 'yes\\n'\n",
            "solution/solve.sh": 'echo "$WORD" > done.txt\n',
        },
    ),
    "image-only": {
        k: v
        for k, v in _harbor(
            "image-only", '[environment]\ndocker_image = "docker.io/library/debian:12"\n'
        ).items()
        if not k.startswith("environment/")
    },
    # Tests that write into the working directory, and that run what was made there.
    "writes": _harbor(
        "writes",
        **{
            "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY in.txt .\n",
            "environment/in.txt": "1\n",
            "tests/test.sh": _reward("""
                echo 5 > in.txt && python3 double.py && [ "$(cat out.txt)" = 10 ] \\
                  && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
            """),
            "solution/solve.sh": "cat > double.py <<'X'\n"
            "n = int(open('in.txt').read())\nopen('out.txt', 'w').write(str(2 * n))\nX\n"
            "python3 double.py\n",
        },
    ),
}
BENCH: dict[str, Files] = {
    "usual": _bench(
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
        for k, v in _bench(
            **{
                "solution.yaml": "- command: touch done.txt\n  min_timeout_sec: 1.0\n  block: true\n"
                "- command: \"cat <<'X' > other.txt\\nX\"\n",
                "run-tests.sh": _VENV,
            }
        ).items()
        if k != "solution.sh"
    },
    "same-shell": _bench("run_tests_in_same_shell: true\n"),
    "no-compose": {k: v for k, v in _bench().items() if k != "docker-compose.yaml"},
}
"""These become tasks here."""

REFUSED: dict[str, tuple[str, Files, str]] = {
    "unknown-key": (
        "harbor",
        _harbor("x", "[verifier]\ntimeout = 3\n"),
        "task.toml:5: unknown key",
    ),
    "unknown-schema": (
        "harbor",
        {**_harbor("x"), "task.toml": 'schema_version = "2.0"\n'},
        "schema 2.0",
    ),
    "everything": (
        "harbor",
        _harbor(
            "x",
            """
            [environment]
            os = "windows"
            gpus = 1
            gpu_types = ["H100"]
            tpu = {type = "v5"}
            skills_dir = "/skills"
            [[environment.mcp_servers]]
            name = "tools"
            [[verifier.collect]]
            command = "dump"
            """,
            **{"trajectory.json": "{}"},
        ),
        "(and 7 more)",
    ),
    "far": (
        "harbor",
        _harbor("x", **{"tests/test.sh": "npm install -g x\ngit clone https://example.org/r\n"}),
        "npm install -g x",
    ),
    "no-base": (
        "harbor",
        _harbor("x", **{"environment/Dockerfile": "FROM alpine:3\n"}),
        "--base",
    ),
    "stages": (
        "harbor",
        _harbor("x", **{"environment/Dockerfile": "FROM debian:12 AS a\nFROM debian:12\n"}),
        "several stages",
    ),
    "services": (
        "terminal-bench",
        _bench(**{"docker-compose.yaml": _COMPOSE + "  db:\n    image: postgres\n"}),
        "compose.services.db",
    ),
    "parser": ("terminal-bench", _bench("parser_name: swebench\n"), "parser_name"),
    "bench-key": ("terminal-bench", _bench("max_timeout: 3\n"), "task.yaml:3: unknown key"),
}
"""Format, files, and what is said."""


def write(files: Files, folder: Path) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            path.chmod(0o755)
    return folder
