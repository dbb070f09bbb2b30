"""Generator of failures: a tree of processes, one that dies, and what the others see and pass on of it.

Words come from the catalogue's cases and from `tests/cases/logs/relays.toml`; how they relate is how Ray,
torchrun, vLLM and NeMo-RL relay (docs/diagnosis.md).
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from launcher.logs.signatures import Nature, catalogue
from tests.launcher.carriers import some_carrier

FOLDER = Path(__file__).parents[1] / "cases" / "logs"
CASES = FOLDER / "signatures.toml"
_EXCEPTION = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): \S")
_NOUNS = ("shard", "bucket", "table", "prompt", "reward", "mask", "cache", "tokenizer", "sample", "page")
_ADJECTIVES = ("missing", "odd", "unsorted", "frozen", "stale", "empty", "twisted", "unequal")
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
# Failures that a process overcomes by itself, or that no process of a training prints.
_UNFIT = {
    "ray-resources", "ray-store-full", "ray-out-of-disk", "ray-version", "ray-session", "ray-worker-start",
    "python-start",
}  # fmt: skip


@dataclass(frozen=True)
class Worker:
    """A process of the tree."""

    actor: str
    rank: int | None
    pid: int
    ip: str
    child: str = ""
    """Prefix of its vLLM process, which is the one that prints."""

    @property
    def name(self) -> str:
        """Its representation, as Ray prints it."""
        return f"{self.actor}[rank={self.rank}]" if self.rank is not None else self.actor

    @property
    def prefix(self) -> str:
        """Prefix that Ray gives to its lines."""
        return f"({self.name} pid={self.pid}, ip={self.ip}) {self.child}"

    @property
    def head(self) -> str:
        """Its task's name in what Ray relays."""
        return f"ray::{self.actor}.run() (pid={self.pid}, ip={self.ip}, actor_id=aa, repr={self.name})"


@dataclass
class GeneratedFailure:
    """A log and what is right about it."""

    text: str
    message: str
    """First line of the exception of the process that died; empty where it printed nothing."""
    pid: int
    rank: int | None
    kind: str
    lines: list[int] = field(default_factory=list)
    """Lines that hold the message."""


@cache
def templates() -> dict[str, Any]:
    """Return what processes print about others."""
    return tomllib.loads((FOLDER / "relays.toml").read_text())


@cache
def catalogued() -> tuple[str, ...]:
    """Return exceptions that the catalogue explains, of processes of their own."""
    signatures = catalogue().signatures
    fit = {
        item.id
        for item in signatures.values()
        if item.nature is Nature.OWN
        and item.severity == "fatal"
        and not item.retried
        and item.id not in _UNFIT
        if not item.id.startswith(("slurm", "srun", "raysub", "uv-"))
    }
    cases = tomllib.loads(CASES.read_text())
    return tuple(
        line for name in cases if name in fit for line in cases[name]["yes"] if _EXCEPTION.match(line)
    )


def made_up(rng: random.Random) -> list[str]:
    """Return the lines of an exception that no signature knows."""
    name = rng.choice(("KeyError", "IndexError", "ValueError", "AssertionError", "RuntimeError", "TypeError"))
    if rng.random() < 0.6:
        name = rng.choice(("PackingProblem", "NoMoreShards", "BadReward", "ShapeError", "Exhausted"))
        name = rng.choice(("mylib.errors.", "__main__.", "nemo_rl.data.packing.")) + name
    words = f"{rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} {rng.randrange(9999)} of {rng.choice(_NOUNS)}"
    match rng.randrange(6):
        case 0 if "." in name:
            return [name]
        case 1:
            return [
                f"{name}: {words}:",
                f"    expected {rng.randrange(99)}",
                f"    but have {rng.randrange(99)}",
            ]
        case 2:
            return [f"{name}: '{words}'"]
        case _:
            return [f"{name}: {words}"]


def traceback(rng: random.Random, message: list[str], *, chained: bool = False) -> list[str]:
    """Return a traceback that ends in an exception; `chained`: another one follows from it."""
    lines = ["Traceback (most recent call last):", *_frames(rng), *message]
    if chained:
        lines += ["", rng.choice(_CHAINED), "", *traceback(rng, ["RuntimeError: could not go on"])]
    return lines


def _frames(rng: random.Random) -> list[str]:
    result = []
    for _ in range(rng.randrange(1, 4)):
        noun = rng.choice(_NOUNS)
        result += [f'  File "/opt/nemo-rl/x/{noun}.py", line {rng.randrange(999)}, in {noun}']
        result += [f"    self.{noun}[i] = f({noun})", *["    ^^^^^^^^^^"][: rng.randrange(2)]]
    return result


def sights(rng: random.Random, witness: Worker, dead: Worker) -> list[str]:
    """Return what another rank prints of a death."""
    if rng.random() < 0.5:
        return filled(rng, rng.choice(templates()["lines"]), witness, dead)
    return traceback(rng, filled(rng, rng.choice(templates()["sights"]), witness, dead))


def filled(rng: random.Random, template: str, witness: Worker, dead: Worker) -> list[str]:
    """Return the lines of a template with the names of a witness and of the process that died."""
    values = {
        "rank": witness.rank or 0, "pid": witness.pid, "head": witness.head, "dead": dead.rank or 0,
        "dead_pid": dead.pid, "dead_ip": dead.ip, "dead_head": dead.head, "dead_class": dead.actor,
        "stamp": f"{rng.choice(('1128', '218', '909'))} 10:{rng.randrange(60):02}:00.123456",
    }  # fmt: skip
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", str(value))
    return template.strip("\n").split("\n")


def relayed(rng: random.Random, dead: Worker, witness: Worker, message: list[str]) -> list[str]:
    """Return the driver's traceback: what reached it of the death."""
    words = templates()
    ends = [filled(rng, item, witness, dead) for item in (*words["relays"], words["died"])]
    if not message:
        ends = [filled(rng, words["died"], witness, dead)]
    elif dead.child:
        ends += [filled(rng, item, witness, dead) for item in words["engine"]]
    if message:
        name = message[0].partition(":")[0].rpartition(".")[2]
        created = (
            "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
        )
        task_error = [f"ray.exceptions.RayTaskError({name}): {dead.head}", *_frames(rng), *message]
        ends += [task_error, task_error, [created + dead.head, *_frames(rng), *message]]
    return traceback(rng, rng.choice(ends))


def died(rng: random.Random, dead: Worker, message: list[str]) -> list[str]:
    """Return what the process that died printed."""
    lines = traceback(rng, message, chained=rng.random() < 0.2)
    if not dead.child:
        return lines
    header = f"ERROR 11-28 01:41:{rng.randrange(60):02} " + rng.choice(
        ("[core.py:708] ", "multiproc.py:120] ")
    )
    opening = rng.choice(("EngineCore failed to start.", "EngineCore encountered a fatal error."))
    return [header + line for line in (opening, *lines)]


def generate(seed: int) -> GeneratedFailure:
    """Return a failure; the same one for the same seed."""
    rng = random.Random(seed)
    return torchrun_failure(rng) if rng.random() < 0.25 else ray_failure(rng)


def ray_failure(rng: random.Random) -> GeneratedFailure:
    """Return the log of a driver whose Ray actors relay everything to it."""
    workers = [
        Worker("DTensorPolicyWorkerV2", rank, 4000 + rank, f"10.9.0.{4 + rank // 4}")
        for rank in range(rng.choice((2, 4, 8, 16)))
    ]
    child = rng.choice(
        ("(EngineCore_DP0 pid=19001) ", "(VllmWorker rank=1 pid=213) ", "(Worker_TP1 pid=19020) ")
    )
    engine = Worker(
        rng.choice(("VllmGenerationWorker", "VllmAsyncGenerationWorker")), None, 18634, "10.9.0.5", child
    )
    dead = engine if rng.random() < 0.25 else rng.choice(workers)
    message = [] if rng.random() < 0.1 else _message(rng)
    others = [item for item in workers if item is not dead]
    driver = relayed(rng, dead, rng.choice(others), message)
    blocks = [driver]
    if message and (message[0] not in driver or rng.random() < 0.7):
        blocks.append([dead.prefix + line for line in died(rng, dead, message)])
    for peer in rng.sample(others, min(len(others), rng.randrange(5))):
        blocks.append([peer.prefix + line for line in sights(rng, peer, dead)])
    return _log(rng, blocks, message, dead, "ray" if message else "silent")


def torchrun_failure(rng: random.Random) -> GeneratedFailure:
    """Return the log of ranks that torchrun started."""
    ranks = [
        Worker("", rank, 4000 + rank, f"10.9.0.{4 + rank // 4}") for rank in range(rng.choice((2, 4, 8)))
    ]
    dead = rng.choice(ranks)
    message = _message(rng)
    blocks = [[f"[rank{dead.rank}]: {line}" for line in died(rng, dead, message)]]
    for peer in rng.sample(ranks, rng.randrange(len(ranks))):
        if peer is not dead:
            lines = sights(rng, peer, dead)
            blocks.append([line if line[0] in "[j" else f"[rank{peer.rank}]: {line}" for line in lines])
    blocks.append(filled(rng, templates()["agent"], rng.choice(ranks), dead))
    return _log(rng, blocks, message, dead, "torchrun")


def _message(rng: random.Random) -> list[str]:
    return [rng.choice(catalogued())] if rng.random() < 0.5 else made_up(rng)


def _log(
    rng: random.Random, blocks: list[list[str]], message: list[str], dead: Worker, kind: str
) -> GeneratedFailure:
    rng.shuffle(blocks)
    in_turn = rng.random() < 0.5
    lines = list(_interleaved(rng, blocks)) if in_turn else [line for block in blocks for line in block]
    carry = some_carrier(rng)
    numbered = enumerate(["▶ Training policy...", *lines])
    text = "\n".join(carry(line, number) for number, line in numbered) + "\n"
    made = GeneratedFailure(text, message[0] if message else "", dead.pid, dead.rank, kind)
    if message:
        made.lines = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith(message[0])]
    return made


def _interleaved(rng: random.Random, blocks: list[list[str]]) -> Iterator[str]:
    """Yield the lines of all blocks in turn, each block's in its order."""
    queues = [list(block) for block in blocks]
    while queues:
        yield rng.choice(queues).pop(0)
        queues = [item for item in queues if item]
