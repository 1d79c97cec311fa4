"""What the tasks of tests.support.peertasks are made of."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, str]

UVX = """\
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
CTRF = """\
status=$?
said() { echo "{\\"results\\": {\\"tests\\": [{\\"name\\": \\"one\\", \\"status\\": \\"$1\\"}]}}"; }
if [ $status -eq 0 ]; then said passed; else said failed; fi > /logs/verifier/ctrf.json
if [ $status -eq 0 ]; then"""
UV = """\
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
VENV = """\
#!/bin/bash
uv venv .tbench-testing
source .tbench-testing/bin/activate
uv pip install pytest==8.4.1
pytest $TEST_DIR/test_outputs.py -rA
"""
COMPOSE = """\
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


def toml(name: str, more: str = "") -> str:
    head = f'schema_version = "1.4"\n[task]\nname = "ours/{name}"\n'
    return head + textwrap.dedent(more)


def exists(*paths: str) -> str:
    lines = ["import os"]
    for n, path in enumerate(paths):
        lines += [f"def test_{n}():", f"    assert os.path.exists({path!r})"]
    return "\n".join(lines) + "\n"


def harbor(name: str, more: str = "", **files: str) -> dict[str, str]:
    given = {
        "task.toml": toml(name, more),
        "instruction.md": "Write /app/done.txt.\n",
        "environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\n",
        "tests/test.sh": UVX,
        "tests/test_outputs.py": exists("/app/done.txt"),
        "solution/solve.sh": "#!/bin/bash\ntouch done.txt\n",
    }
    return given | files


def bench(more: str = "", **files: str) -> dict[str, str]:
    given = {
        "task.yaml": "instruction: Write done.txt.\ndifficulty: easy\n" + textwrap.dedent(more),
        "Dockerfile": "FROM ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624\nWORKDIR /app\n",
        "docker-compose.yaml": COMPOSE,
        "run-tests.sh": UV,
        "tests/test_outputs.py": exists("/app/done.txt"),
        "solution.sh": "#!/bin/bash\ntouch done.txt\n",
    }
    return given | files


def script(lines: str) -> str:
    return "#!/bin/bash\n" + textwrap.dedent(lines)


def write(files: Files, folder: Path) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            path.chmod(0o755)
    return folder
