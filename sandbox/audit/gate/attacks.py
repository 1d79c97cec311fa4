"""The exploits against the tasks at the gate: none may be worth more than doing nothing."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sandbox.audit.exploits.findings import WRONG
from sandbox.audit.exploits.findings import Finding as Attack
from sandbox.audit.exploits.run import manifest, run_exploits
from sandbox.audit.gate.finding import Finding, finding
from sandbox.formats.digest import digest_of
from sandbox.formats.exploitfile import load_corpus
from sandbox.formats.shape import plain
from sandbox.model.task import TaskId, TaskSpec
from sandbox.rollout.outdir import OutFolder
from sandbox.rollout.run import World
from sandbox.rollout.suite import Plan

_STATE = 8


def of_exploits(
    tasks: Sequence[TaskSpec], pattern: str, world: World, out: Path, plan: Plan
) -> dict[TaskId, list[Finding]]:
    """pattern: which exploits, by id or family. Raises UserError when there is none of that name."""
    corpus = load_corpus()
    chosen = corpus.choose(pattern)
    about = manifest(tasks, corpus, chosen, world.runtime.name)
    state = digest_of(plain(about)).removeprefix("sha256:")[:_STATE]
    with OutFolder(out / f"exploits-{state}", about) as folder:
        attacks = run_exploits(tasks, corpus, chosen, world, folder, plan)
    return {t.id: told([a for a in attacks if a.task == t.id]) for t in tasks}


def told(attacks: Sequence[Attack]) -> list[Finding]:
    """Pure."""
    found = []
    for attack in attacks:
        more = "".join(f"; {said}" for said in attack.said)
        if attack.result in WRONG:
            what = f"{attack.exploit}: {attack.result}, reward {attack.reward}"
            found.append(finding("SR-EXPLOIT", f"{what} where nothing gets {attack.nothing}{more}"))
        elif attack.result == "void":
            found.append(finding("SR-VOID", f"exploit {attack.exploit}{more}"))
    came = Counter(a.result for a in attacks)
    counts = ", ".join(f"{n} {result}" for result, n in sorted(came.items()))
    found.append(finding("SR-ATTACKED", f"{len(attacks)} exploits: {counts}"))
    if 2 * came["unperformed"] > len(attacks):
        found.append(finding("SR-UNTRIED", f"{came['unperformed']} of {len(attacks)} exploits"))
    return found
