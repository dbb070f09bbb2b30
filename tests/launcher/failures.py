"""Generator of failures: a tree of processes, one that dies, and what the others see and pass on of it.

Words come from the catalogue's cases; how they relate is how Ray, torchrun, vLLM and NeMo-RL relay
(docs/diagnosis.md).
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from launcher.logs.signatures import Nature, catalogue
from tests.launcher.carriers import some_carrier

CASES = Path(__file__).parents[1] / "cases" / "logs" / "signatures.toml"
_EXCEPTION = re.compile(r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): \S")
_NOUNS = "shard bucket table prompt reward mask cache tokenizer optimizer weight sample page block".split()
_VERBS = "missing odd unsorted frozen stale empty twisted unequal".split()


@dataclass(frozen=True)
class Worker:
    """A process of the tree."""

    actor: str
    rank: int | None
    pid: int
    ip: str
    children: str = ""
    """Prefix of its vLLM process, which is the one that prints."""

    @property
    def prefix(self) -> str:
        """Prefix that Ray gives to its lines."""
        rank = f"[rank={self.rank}]" if self.rank is not None else ""
        return f"({self.actor}{rank} pid={self.pid}, ip={self.ip}) {self.children}"

    @property
    def head(self) -> str:
        """Name of its task in what Ray relays."""
        rank = f"[rank={self.rank}]" if self.rank is not None else ""
        method = "generate" if "Vllm" in self.actor else "train"
        return f"ray::{self.actor}.{method}() (pid={self.pid}, ip={self.ip}, actor_id=aa, repr={self.actor}{rank})"


@dataclass
class GeneratedFailure:
    """A log and what is right about it."""

    text: str = ""
    message: str = ""
    """First line of the exception of the process that died; empty where it printed nothing."""
    pid: int | None = None
    rank: int | None = None
    kind: str = ""
    lines: list[int] = field(default_factory=list)
    """Lines that hold the message."""


@cache
def catalogued() -> tuple[str, ...]:
    """Return exceptions that the catalogue explains, of processes of their own."""
    cases = tomllib.loads(CASES.read_text())
    signatures = catalogue().signatures
    skipped = {
        "ray-resources",
        "ray-store-full",
        "ray-out-of-disk",
        "ray-version",
        "ray-session",
        "ray-worker-start",
    }
    return tuple(
        line
        for identity, case in cases.items()
        if signatures[identity].nature is Nature.OWN
        and signatures[identity].severity == "fatal"
        and not signatures[identity].retried
        and not identity.startswith(("slurm", "srun", "raysub", "uv-"))
        and identity not in skipped
        for line in case["yes"]
        if _EXCEPTION.match(line)
    )


def made_up(rng: random.Random) -> list[str]:
    """Return the lines of an exception that no signature knows."""
    module = rng.choice(("", "", "mylib.errors.", "__main__.", "nemo_rl.data.packing."))
    name = rng.choice(("KeyError", "IndexError", "ValueError", "AssertionError", "RuntimeError", "TypeError"))
    if module:
        name = module + rng.choice(("PackingProblem", "NoMoreShards", "BadReward", "ShapeError", "Exhausted"))
    words = f"{rng.choice(_VERBS)} {rng.choice(_NOUNS)} {rng.randrange(9999)} of {rng.choice(_NOUNS)}"
    match rng.randrange(6):
        case 0 if module:
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


def frames(rng: random.Random) -> list[str]:
    """Return the frames of a traceback."""
    result = []
    for _ in range(rng.randrange(1, 4)):
        noun = rng.choice(_NOUNS)
        result += [
            f'  File "/opt/nemo-rl/x/{noun}.py", line {rng.randrange(999)}, in {noun}',
            f"    self.{noun}[i] = f({noun})",
        ]
        if rng.random() < 0.5:
            result.append("    ^^^^^^^^^^^^^")
    return result


def traceback(rng: random.Random, message: list[str]) -> list[str]:
    """Return a traceback that ends in an exception; sometimes another one follows from it."""
    lines = ["Traceback (most recent call last):", *frames(rng), *message]
    if rng.random() < 0.2:
        how = rng.choice(
            ("The above exception was the direct cause of the following exception:",
             "During handling of the above exception, another exception occurred:")
        )  # fmt: skip
        lines += [
            "",
            how,
            "",
            "Traceback (most recent call last):",
            *frames(rng),
            "RuntimeError: could not go on",
        ]
    return lines


def sights(rng: random.Random, worker: Worker, dead: Worker) -> list[str]:
    """Return what another rank sees of a death."""
    stamp = f"{rng.choice('EE')}{rng.choice(('1128', '218', '909'))} 10:{rng.randrange(60):02}:00.123456"
    errors = [
        ["torch.distributed.DistBackendError: NCCL error in: /p/ProcessGroupNCCL.cpp:3690, remote process exited or "
         "there was a network error, NCCL version 2.27.5",
         "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
         "Last error:", f"socketProgressOpt: Call to recv from {dead.ip}<49901> failed : Broken pipe"],
        [f"RuntimeError: Rank {worker.rank or 0} successfully reached monitoredBarrier, but received errors while waiting "
         f"for send/recv from rank {dead.rank or 0}. Please check rank {dead.rank or 0} logs for faulty rank."],
        [f"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [{dead.ip}]:1089"],
        [f"RuntimeError: [/p/gloo/transport/tcp/pair.cc:589] Read error [{dead.ip}]:25266: Connection reset by peer"],
        ["torch.distributed.DistNetworkError: failed to recv, got 0 bytes. Connection was likely closed. Did the remote "
         "server shutdown or crash?"],
        ["RuntimeError: NCCL communicator was aborted on rank 3. Original reason for failure was: watchdog"],
        ["ConnectionResetError: [Errno 104] Connection reset by peer"],
        ["EOFError: "] if False else ["BrokenPipeError: [Errno 32] Broken pipe"],
        ["torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0"],
    ]  # fmt: skip
    bare = [
        f"[rank{worker.rank or 0}]:[{stamp} ProcessGroupNCCL.cpp:629] [Rank {worker.rank or 0}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600010 milliseconds",
        f"[rank{worker.rank or 0}]:[{stamp} ProcessGroupNCCL.cpp:2057] [PG ID 0 PG GUID 0(default_pg) Rank "
        f"{worker.rank or 0}] Process group watchdog thread terminated with exception: NCCL communicator was aborted",
        f"[rank{worker.rank or 0}]:[W{stamp[1:]} TCPStore.cpp:106] [c10d] recvValue failed on SocketImpl(fd=9): "
        "Connection reset by peer",
        f"jwb0003:{worker.pid}:{worker.pid} [1] misc/socket.cc:484 NCCL WARN socketProgress: Connection closed by "
        f"remote peer jwb0002<49901>",
    ]  # fmt: skip
    if rng.random() < 0.5:
        return [rng.choice(bare)]
    return traceback_plain(rng, rng.choice(errors))


def traceback_plain(rng: random.Random, message: list[str]) -> list[str]:
    """Return a traceback of one exception."""
    return ["Traceback (most recent call last):", *frames(rng), *message]


def relayed(rng: random.Random, dead: Worker, witness: Worker, message: list[str]) -> list[str]:
    """Return the driver's traceback: what reached it of the death."""
    top = ["Traceback (most recent call last):", *frames(rng)]
    name = message[0].partition(":")[0].rpartition(".")[2] if message else ""
    details = [
        f"\tclass_name: {dead.actor}", "\tactor_id: 6b01", f"\tpid: {dead.pid}", "\tnamespace: aa", f"\tip: {dead.ip}",
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
        "Worker unexpectedly exits with a connection error code 2. End of file. (1) The process is killed by SIGKILL by "
        "OOM killer due to high memory usage. (2) ray stop --force is called.",
    ]  # fmt: skip
    ends = [
        ["ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", *details],
        [f"ray.exceptions.RayTaskError(DistBackendError): {witness.head}", *frames(rng),
         "torch.distributed.DistBackendError: NCCL error in: /p/x.cpp:3690, remote process exited or there was a network "
         "error, NCCL version 2.27.5"],
        [f"ray.exceptions.RayTaskError(OwnerDiedError): {witness.head}",
         "  At least one of the input arguments for this task could not be computed:",
         "ray.exceptions.OwnerDiedError: Failed to retrieve object 00ff.", "", "The object's owner has exited."],
        ["ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready."],
        ["ray.exceptions.ActorPlacementGroupRemoved: The placement group corresponding to this Actor has been removed."],
        ["ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task. Check "
         "python-core-worker-*.log files for more information."],
        ["ray.exceptions.RaySystemError: System error: Failed to unpickle serialized exception"],
    ]  # fmt: skip
    if message:
        inner = [f"ray.exceptions.RayTaskError({name}): {dead.head}", *frames(rng), *message]
        creation = [
            "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
            + dead.head, *frames(rng), *message,
        ]  # fmt: skip
        ends += [inner, inner, creation]
    if dead.children:
        ends += [[
            f"ray.exceptions.RayTaskError(EngineDeadError): {dead.head}", *frames(rng),
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for "
            "the root cause.",
        ], [
            "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, " + dead.head,
            *frames(rng), "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        ]]  # fmt: skip
    return [*top, *rng.choice(ends)]


def died(rng: random.Random, dead: Worker, message: list[str]) -> list[str]:
    """Return what the process that died printed."""
    if dead.children:
        header = f"ERROR 11-28 01:41:{rng.randrange(60):02} " + rng.choice(
            ("[core.py:708] ", "multiproc.py:120] ")
        )
        said = [rng.choice(("EngineCore failed to start.", "EngineCore encountered a fatal error."))]
        return [header + line for line in (*said, *traceback(rng, message))]
    return traceback(rng, message)


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
    engine = Worker(
        rng.choice(("VllmGenerationWorker", "VllmAsyncGenerationWorker")), None, 18634, "10.9.0.5",
        rng.choice(("(EngineCore_DP0 pid=19001) ", "(VllmWorker rank=1 pid=213) ", "(Worker_TP1 pid=19020) ")),
    )  # fmt: skip
    dead = engine if rng.random() < 0.25 else rng.choice(workers)
    message = [rng.choice(catalogued())] if rng.random() < 0.5 else made_up(rng)
    silent = rng.random() < 0.1
    if silent:
        message = []
    witness = rng.choice([item for item in workers if item is not dead])
    blocks: list[list[str]] = []
    driver = relayed(rng, dead, witness, message)
    alone = not any(line in driver for line in message[:1])
    if message and (alone or rng.random() < 0.7):
        blocks.append([dead.prefix + line for line in died(rng, dead, message)])
    if silent:
        while "ActorDiedError: The actor died unexpectedly" not in "\n".join(driver):
            driver = relayed(rng, dead, witness, [])
    for peer in rng.sample(workers, min(len(workers), rng.randrange(5))):
        if peer is not dead:
            blocks.append([peer.prefix + line for line in sights(rng, peer, dead)])
    blocks.append(driver)
    return _log(rng, blocks, message, dead, "silent" if silent else "ray")


def torchrun_failure(rng: random.Random) -> GeneratedFailure:
    """Return the log of ranks that torchrun started."""
    ranks = [
        Worker("", rank, 4000 + rank, f"10.9.0.{4 + rank // 4}") for rank in range(rng.choice((2, 4, 8)))
    ]
    dead = rng.choice(ranks)
    message = [rng.choice(catalogued())] if rng.random() < 0.5 else made_up(rng)
    blocks = [[f"[rank{dead.rank}]: {line}" for line in died(rng, dead, message)]]
    for peer in rng.sample(ranks, rng.randrange(len(ranks))):
        if peer is not dead:
            blocks.append(
                [
                    line if line.startswith(("[rank", "jwb")) else f"[rank{peer.rank}]: {line}"
                    for line in sights(rng, peer, dead)
                ]
            )
    first = rng.choice(ranks)
    blocks.append([
        f"E1128 16:12:33.000000 4021 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) "
        f"local_rank: {first.rank} (pid: {first.pid}) of binary: /usr/bin/python",
        "Traceback (most recent call last):", *frames(rng),
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60, "train.py FAILED", "-" * 60, "Root Cause (first observed failure):", "[0]:",
        "  time      : 2025-07-03_14:20:51", "  host      : jwb0002", f"  rank      : {first.rank} (local_rank: 0)",
        f"  exitcode  : 1 (pid: {first.pid})", "  error_file: <N/A>",
    ])  # fmt: skip
    return _log(rng, blocks, message, dead, "torchrun")


def _log(
    rng: random.Random, blocks: list[list[str]], message: list[str], dead: Worker, kind: str
) -> GeneratedFailure:
    rng.shuffle(blocks)
    lines = (
        list(_interleaved(rng, blocks))
        if rng.random() < 0.5
        else [line for block in blocks for line in block]
    )
    carry = some_carrier(rng)
    text = (
        "\n".join(carry(line, number) for number, line in enumerate(["▶ Training policy...", *lines])) + "\n"
    )
    made = GeneratedFailure(text, message[0] if message else "", dead.pid, dead.rank, kind)
    if message:
        made.lines = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith(message[0])]
    return made


def _interleaved(rng: random.Random, blocks: list[list[str]]) -> Iterator[str]:
    """Yield the lines of all blocks in turn, each block's in its order."""
    queues = [list(block) for block in blocks]
    while queues:
        queue = rng.choice(queues)
        yield queue.pop(0)
        queues = [item for item in queues if item]
