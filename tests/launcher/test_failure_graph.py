"""The root of a failure of many processes: what one has of its own, whatever the others see and relay."""

from __future__ import annotations

import pytest

from launcher.logs.events import ExceptionSeen, FindingSeen, Role, Source
from launcher.monitor.failure_graph import FailureGraph
from tests.launcher.failures import GeneratedFailure, generate
from tests.launcher.test_diagnosis import driver, state_of


def is_right(made: GeneratedFailure) -> bool:
    """Return whether the root is what the process that died raised, or names it where it printed nothing."""
    root = state_of(("ray-driver.log", Role.DRIVER, made.text.encode())).diagnosis.root
    if root is None:
        return False
    if not made.message:
        return root.confidence == "low" and root.pid == made.pid and str(made.pid) in root.fix
    return root.source.line in made.lines and (made.kind != "torchrun" or root.rank == made.rank)


def test_generated_failures() -> None:
    assert [seed for seed in range(40) if not is_right(generate(seed))] == []


@pytest.mark.slow
def test_many_generated_failures() -> None:
    assert len([seed for seed in range(1000, 1500) if not is_right(generate(seed))]) <= 5


def root(text: str) -> FindingSeen:
    """Return the root of a driver's log."""
    cause = state_of(driver(text)).diagnosis.root
    assert cause is not None
    return cause


WORKER = "(W[rank=5] pid=4415, ip=10.9.0.5) "
TOP = 'Traceback (most recent call last):\n  File "/x/run.py", line 1, in <module>\n    main()\n'


def of_worker(*lines: str) -> str:
    return "".join(f"{WORKER}{line}\n" for line in lines)


OWN = of_worker(
    "Traceback (most recent call last):",
    '  File "/x/y.py", line 2, in f',
    "    x = t[k]",
    "IndexError: list index out of range",
)


@pytest.mark.parametrize(
    "end",
    [
        "ray.exceptions.OwnerDiedError: Failed to retrieve object 00ff.",
        "ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task.",
        "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.",
        "ray.exceptions.NodeDiedError: Task failed due to the node dying.",
        "ray.exceptions.ObjectLostError: Failed to retrieve object 00ff.",
        "ray.exceptions.TaskPlacementGroupRemoved: The placement group has been removed.",
        "ray.exceptions.LocalRayletDiedError: The task's local raylet died. Check raylet.out.",
        "ray.exceptions.RaySystemError: System error: Failed to unpickle serialized exception",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "subprocess.CalledProcessError: Command '['python', 'x.py']' returned non-zero exit status 1.",
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
        "RuntimeError: [/p/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.9.0.5]:1089",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0",
        "asyncio.exceptions.CancelledError",
    ],
)
def test_what_others_see_and_relay_is_no_root_beside_an_error(end: str) -> None:
    for text in (OWN + TOP + end + "\n", TOP + end + "\n" + OWN):
        cause = root(text)
        assert (cause.text, cause.rank, cause.node) == ("IndexError: list index out of range", 5, "10.9.0.5")
    alone = root(TOP + end + "\n")
    assert alone.source.line == 4
    assert alone.tier >= 2


def test_an_actor_that_died_in_silence_is_named_with_the_file_to_read() -> None:
    details = "\tclass_name: W\n\tactor_id: aa\n\tpid: 4415\n\tnamespace: b\n\tip: 10.9.0.5\n"
    cause = root(
        TOP
        + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        + details
    )
    assert (cause.id, cause.confidence, cause.pid, cause.node) == ("ray-actor-died", "low", 4415, "10.9.0.5")
    assert "worker-*-4415.err" in cause.fix


def test_torchrun_names_the_first_rank_that_failed() -> None:
    block = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        + "=" * 60
        + "\ntrain.py FAILED\n"
        "Failures:\n[1]:\n  time      : 2025-07-03_14:20:51\n  host      : jwb0001\n"
        "  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : -15 (pid: 4102)\nRoot Cause (first observed failure):\n[0]:\n  host      : jwb0002\n"
        "  rank      : 5 (local_rank: 1)\n  exitcode  : -9 (pid: 4411)\n"
    )
    cause = root(TOP + block)
    assert (cause.id, cause.rank, cause.node, cause.pid) == ("child-failed", 5, "jwb0002", 4411)


def test_a_rank_that_others_miss_is_named() -> None:
    cause = root(TOP + "RuntimeError: [Rank 0]: Ranks 5 failed to pass monitoredBarrier in 1800000 ms\n")
    assert (cause.id, cause.rank, cause.confidence) == ("peer-gone", 5, "low")


def test_the_chain_of_an_exception_begins_with_its_cause() -> None:
    chain = of_worker(
        "Traceback (most recent call last):", "  File 'y'", "    a", "ConnectionResetError: [Errno 104]", "",
        "The above exception was the direct cause of the following exception:", "",
        "Traceback (most recent call last):", "  File 'y'", "    b", "RuntimeError: the call failed",
    )  # fmt: skip
    assert (
        root(
            chain
            + OWN.replace("rank=5", "rank=3").replace("4415", "4413")
            + TOP
            + "ray.exceptions.ActorDiedError: x\n"
        ).rank
        == 3
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "RuntimeError: Error(s) in loading state_dict for Q:\n\tsize mismatch for a.weight: copying",
            "size mismatch",
        ),
        (
            'triton.E: at 9:11:\n    # the row\n    x = f(y)\n      ^\nValueError("type fp8 not supported")',
            "type fp8",
        ),
        (
            "pydantic_core.ValidationError: 1 validation error for C\n  Value error, no such mode",
            "no such mode",
        ),
        (
            "omegaconf.errors.ConfigKeyError: no such key\n    full_key: policy.x\n    object_type=dict",
            "policy.x",
        ),
        (
            "pydantic_core.ValidationError: 1 validation error for C\npolicy.lr\n  Input should be a number",
            "policy.lr: Input",
        ),
        ("mylib.Trouble: \nthe disk is upside down", "the disk is upside down"),
    ],
)
def test_the_line_of_a_message_that_explains_is_named(message: str, words: str) -> None:
    assert words in root(TOP + message + "\n").text
    worker = of_worker(*(TOP + message).split("\n"))
    assert words in root(worker + TOP + "ray.exceptions.ActorDiedError: x\n").text


def test_errors_of_ranks_in_a_checkpoint_s_exception_belong_to_them() -> None:
    text = (
        TOP
        + "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([3])\n"
        "Traceback (most recent call last): (RANK 3)\n  File 'x'\n    f()\n"
        "RuntimeError: parent directory /x is gone\n"
    )
    cause = root(text)
    assert (cause.text, cause.rank) == ("RuntimeError: parent directory /x is gone", 3)


def test_exceptions_that_a_process_goes_on_after_are_no_failure() -> None:
    trace = 'Traceback (most recent call last):\n  File "x"\n    f()\nKeyError: 3\n'
    for before in ("Exception ignored in: <function x>\n", "WARNING 11-28 01:41:50 [x.py:1] no kernel: "):
        assert state_of(driver(before + trace)).findings == []
    for aside in (
        "Exception in thread Thread-3 (f):\n",
        "Task exception was never retrieved\nfuture: <Task>\n",
    ):
        assert state_of(driver(aside + trace)).findings == []


def test_a_latent_warning_explains_only_a_run_that_failed() -> None:
    moved = (
        "slurm-9.out",
        Role.SLURM,
        b"slurmstepd: error: couldn't chdir to `/l/u': No such file or directory: going to /tmp instead\n",
    )
    assert [item.severity for item in state_of(moved).findings] == ["warning"]
    assert state_of(moved).diagnosis.root is None
    failed = state_of(
        moved, driver(TOP + "FileNotFoundError: [Errno 2] No such file or directory: 'train.yaml'\n")
    )
    assert failed.diagnosis.root is not None
    assert failed.diagnosis.root.id == "slurm-chdir"


def test_an_exception_that_quotes_another_is_the_same_failure() -> None:
    source = Source("d", Role.DRIVER, 9)
    top = ExceptionSeen(
        "RuntimeError: worker 5 failed: IndexError: list index out of range", source, 1, True, False
    )
    worker = ExceptionSeen(
        "IndexError: list index out of range", Source("d", Role.DRIVER, 4), 1, False, False, rank=5
    )
    cause = FailureGraph([], [top, worker]).root()
    assert cause is not None
    assert (cause.source.line, cause.rank) == (4, 5)


def test_what_five_hundred_ranks_see_does_not_hide_the_one_that_failed() -> None:
    sights = [
        "Traceback (most recent call last):",
        "  File 'x'",
        "    f()",
        "ConnectionResetError: [Errno 104] reset",
    ]
    ranks = "".join(
        f"(W[rank={rank}] pid={5000 + rank}, ip=10.8.{rank // 8}.1) {line}\n"
        for rank in range(512)
        for line in sights
    )
    cause = state_of(driver(ranks + OWN + TOP + "ray.exceptions.ActorDiedError: x\n"))
    assert cause.diagnosis.root is not None
    assert cause.diagnosis.root.rank == 5
    assert len(cause.findings) <= 4
