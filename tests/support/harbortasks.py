"""Tasks of our own in Harbor's format: see tests.support.peertasks."""

from tests.support.peerfiles import CTRF, UVX, Files, exists, harbor, script

HARBOR: dict[str, Files] = {
    # The usual one: uvx and pytest at grading time, reward.txt of an exit code, a file of CTRF.
    "usual": harbor(
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
            "tests/test_outputs.py": exists(
                "/app/done.txt",
                "/app/data/a.csv",
                "/app/made/it.txt",
                "/srv/texts/two.txt",
                "/opt/both/one.txt",
                "/usr/local/bin/tool",
                "/tests/test.sh",
            ),
            "tests/test.sh": UVX.replace("if [ $? -eq 0 ]; then", CTRF),
            "README.md": "For people.\n",
        },
    ),
    # Credit for a part, and some of it for nothing at all.
    "part": harbor(
        "part",
        **{
            "tests/test.sh": script("""
                n=1
                [ -f done.txt ] && n=$((n + 2))
                [ -f more.txt ] && n=$((n + 1))
                python3 -c "print($n / 4)" > /logs/verifier/reward.txt
            """),
            "solution/solve.sh": "touch done.txt more.txt\n",
        },
    ),
    # Several rewards, none of them called `reward`.
    "several": harbor(
        "several",
        **{
            "tests/test.sh": script("""
                a=0; [ -f done.txt ] && a=1
                echo "{\\"there\\": $a, \\"style\\": $a.0}" > /logs/verifier/reward.json
            """)
        },
    ),
    # A verifier of its own: an image of its tests, and artifacts.
    "separate": harbor(
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
        "steps/one/tests/test.sh": script("""
            [ -f one.txt ] && [ ! -f given.txt ] && echo 1 > /logs/verifier/reward.txt \\
              || echo 0 > /logs/verifier/reward.txt
        """),
        "steps/one/solution/solve.sh": "touch one.txt\n",
        "steps/two/instruction.md": "Write two.txt.\n",
        "steps/two/workdir/given.txt": "given\n",
        "steps/two/workdir/setup.sh": "touch set-up.txt\n",
        "steps/two/tests/test.sh": script("""
            [ -f one.txt ] && [ -f two.txt ] && [ -f given.txt ] && [ -f set-up.txt ] \\
              && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
        """),
        "steps/two/solution/solve.sh": "touch two.txt\n",
    },
    # An image by name, an entrypoint, a check of health, users, variables, old names of keys.
    "old": harbor(
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
        for k, v in harbor(
            "image-only", '[environment]\ndocker_image = "docker.io/library/debian:12"\n'
        ).items()
        if not k.startswith("environment/")
    },
    # Tests that write into the working directory, and that run what was made there.
    "writes": harbor(
        "writes",
        **{
            "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\nCOPY in.txt .\n",
            "environment/in.txt": "1\n",
            "tests/test.sh": script("""
                echo 5 > in.txt && python3 double.py && [ "$(cat out.txt)" = 10 ] \\
                  && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
            """),
            "solution/solve.sh": "cat > double.py <<'X'\n"
            "n = int(open('in.txt').read())\nopen('out.txt', 'w').write(str(2 * n))\nX\n"
            "python3 double.py\n",
        },
    ),
    # A Dockerfile's shells, arguments, texts, lines that go on, stages of one; what .dockerignore says.
    "dockerfile": harbor(
        "dockerfile",
        **{
            "environment/Dockerfile": "# syntax=docker/dockerfile:1\nARG TAG=12\nFROM public.ecr.aws/docker/"
            "library/debian:${TAG}@sha256:"
            + "0"
            * 64
            + " AS base\nARG WHO=me LIST='a b'\nENV APP=/srv/app\n"
            'RUN echo "one\\ntwo" > /srv/two.txt\nRUN echo $WHO $LIST > /srv/who.txt\n'
            "RUN printf 'a\\n\\\n  b\\n' \\\n    # between\n    > /srv/lines.txt\n"
            'SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN [[ $0 == /bin/bash ]] || [[ -n $BASH ]]\n'
            "FROM base AS last\nWORKDIR $APP\nCOPY . .\nCOPY --chmod=0755 bin/ /opt/bin/\n"
            "COPY <<EOF /srv/conf\nwho=$WHO\nEOF\nRUN <<EOF\n#!/usr/bin/env python3\n"
            "open('/srv/py.txt', 'w').write('py')\nEOF\nRUN apt-get update && apt-get install -y gcc && "
            "command -v cc\nRUN ln -s /usr/bin/python3 /usr/bin/python\n",
            "environment/.dockerignore": "*\n!bin\n!keep.txt\n!deep\ndeep/*.md\n",
            "environment/bin/tool": "#!/bin/sh\n",
            "environment/keep.txt": "",
            "environment/left.txt": "",
            "environment/deep/a.md": "",
            "environment/deep/er/a.md": "",
            "tests/test_outputs.py": "import os\n\ndef said(path):\n    return open(path).read()\n\n"
            "def test_files():\n    assert said('/srv/two.txt') == 'one\\ntwo\\n'\n"
            "    assert said('/srv/who.txt') == 'me a b\\n'\n"
            "    assert said('/srv/lines.txt') == 'a\\n  b\\n'\n"
            "    assert said('/srv/conf') == 'who=me\\n'\n    assert said('/srv/py.txt') == 'py'\n"
            "    assert os.access('/opt/bin/tool', os.X_OK)\n\n"
            "def test_ignored():\n    there = sorted(os.listdir('/srv/app'))\n"
            "    assert 'left.txt' not in there and 'keep.txt' in there\n"
            "    assert os.listdir('/srv/app/deep') == ['er']\n\n"
            "def test_done():\n    assert os.path.exists('/srv/app/done.txt')\n",
        },
    ),
    # One container that a compose file sets up; `version` is not the schema's.
    "compose": harbor(
        "compose",
        **{
            "task.toml": 'version = "2.0"\nsource = "https://example.org"\n[environment]\nworkdir = "/work"\n'
            'docker_image = "someone/compose:1"\n',
            "environment/Dockerfile": "FROM python:3.12-slim\n",
            "environment/docker-compose.yaml": "services:\n  main:\n    build:\n      context: ${CONTEXT_DIR}\n"
            "    environment:\n      WORD: yes-${OTHER:-no}\n    volumes:\n"
            "      - ${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}\n"
            '    command: ["sh", "-c", "sleep infinity"]\n',
            "solution/solve.sh": "echo $WORD > /work/done.txt\n",
            "tests/test_outputs.py": "def test_it():\n    assert open('/work/done.txt').read() == 'yes-no\\n'\n",
        },
    ),
    # A virtual environment of the tests, rights of their folder, a report and a reward from the start.
    "venv": harbor(
        "venv",
        **{
            "environment/Dockerfile": "FROM debian:bookworm-slim\nRUN apt-get update && apt-get install -y "
            "python3=3.11.2-1+b1 python3-venv\nCOPY requirements.txt /tmp/\n"
            "RUN python3 -m venv /opt/v && /opt/v/bin/pip install -U pip && "
            '/opt/v/bin/pip install -r /tmp/requirements.txt\nENV PATH="/opt/v/bin:${PATH}"\nWORKDIR /app\n',
            "environment/requirements.txt": "pytest>=8  # for the tests\npytest-json-ctrf==0.3.5\n",
            "tests/test.sh": "#!/usr/bin/env bash\nset -euo pipefail\nmkdir -p /logs/verifier\n"
            "chmod 700 /logs/verifier\necho 0 > /logs/verifier/reward.txt\n"
            "trap 'echo \"$reward\" > /logs/verifier/reward.txt' EXIT\nreward=0\n"
            "/opt/v/bin/pip install pytest-json-ctrf\n"
            "/opt/v/bin/python -m pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA\n"
            "reward=1\n",
        },
    ),
    # `reward` among others; a number that is no float; a healthcheck with all of its keys.
    "reward-json": harbor(
        "reward-json",
        """
        [verifier]
        network_mode = "allowlist"
        allowed_hosts = ["10.0.0.0/8"]
        [environment]
        network_mode = "allowlist"
        allowed_hosts = ["pypi.org"]
        [environment.healthcheck]
        command = "true"
        interval_sec = 1.0
        timeout_sec = 10.0
        start_period_sec = 1.0
        start_interval_sec = 1.0
        retries = 2
        """,
        **{
            "tests/test.sh": script("""
                n=0; [ -f done.txt ] && n=1
                echo 0 > /logs/verifier/reward.txt
                echo "{\\"reward\\": $n, \\"seconds\\": 12}" > /logs/verifier/reward.json
                exit 3
            """)
        },
    ),
    # Steps with rewards, artifacts and tests that they share; the mean of them.
    "shared-steps": {
        "task.toml": 'schema_version = "1.2"\nmulti_step_reward_strategy = "mean"\n[task]\n'
        'name = "ours/shared-steps"\n[[steps]]\nname = "only"\nartifacts = ["/app/done.txt"]\n'
        "min_reward = {reward = 0.5}\n",
        "environment/Dockerfile": "FROM debian:12\nWORKDIR /app\n",
        "tests/helper.sh": 'echo "$1" > /logs/verifier/reward.txt\n',
        "steps/only/instruction.md": "Write done.txt.\n",
        "steps/only/tests/test.sh": "[ -f done.txt ] && bash /tests/helper.sh 1 || bash /tests/helper.sh 0\n",
        "solution/solve.sh": "touch done.txt\n",
        ".harborignore": "*.tmp\n",
        "tests/test.bat": "",
    },
    # Nobody has solved it: its floor is known, and no more.
    "unsolved": {k: v for k, v in harbor("unsolved").items() if not k.startswith("solution/")},
}
