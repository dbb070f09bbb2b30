"""The cause is named first: in composed cases, in real logs, in any order of files, in pieces, dressed up."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, JobChanged, JobState, Role
from launcher.logs.launcher_log import launcher_reader
from launcher.logs.scanner import Scanner
from launcher.monitor.state import RunState
from launcher.monitor.summary import state_json
from tests.driver_text import LAUNCHER, DriverText, launcher_end
from tests.launcher.test_lines import cut

Log = tuple[str, Role, bytes]
ACTOR = b"\x1b[36m(Outer pid=99, ip=10.0.0.9)\x1b[0m "


def events_of(log: Log, pieces: list[bytes]) -> Iterator[Event]:
    name, role, _ = log
    scanner = Scanner(DriverReader(name) if role is Role.DRIVER else launcher_reader(name, role))
    for piece in pieces:
        yield from scanner.feed(piece, lambda _: None)
    yield from scanner.finish(lambda _: None)


def state_of(*logs: Log, places: list[int] | None = None) -> RunState:
    state = RunState()
    for log in logs:
        for event in events_of(log, cut(log[2], places or [])):
            state.apply(event)
    return state


def root_of(state: RunState) -> tuple[str, str, int] | None:
    root = state.diagnosis.root
    return (root.id, root.source.log, root.source.line) if root is not None else None


def driver(text: str) -> Log:
    return ("ray-driver.log", Role.DRIVER, text.encode())


@pytest.fixture(scope="module")
def composed(shared: Path) -> list[tuple[dict[str, Any], list[Log]]]:
    found = []
    for file in sorted((shared / "failure-cases").glob("*.toml")):
        case = tomllib.loads(file.read_text())
        logs = [
            (item["file"], Role(item["log"]), (file.parent / item["file"]).read_bytes())
            for item in case.get("logs", [case])
        ]
        found.append((case, logs))
    return found


def check(case: dict[str, Any], state: RunState, shift: int = 0) -> None:
    root = root_of(state)
    if case["expect"] == "nothing":
        assert root is None
        assert [item for item in state.findings if item.severity == "fatal"] == [], case["file"]
        return
    right = [
        (case["root_cause"], case["line"]),
        *((a["root_cause"], a["line"]) for a in case.get("accept", ())),
    ]
    assert root is not None, case["file"]
    assert (root[0], root[2] - shift) in right, case["file"]
    assert state.findings[0].root
    assert set(case.get("secondary", ())) <= {item.id for item in state.findings[1:]}


def test_composed_cases(composed: list[tuple[dict[str, Any], list[Log]]]) -> None:
    assert len(composed) == 36
    for case, logs in composed:
        check(case, state_of(*logs))


def test_composed_cases_in_pieces_and_dressed_up(composed: list[tuple[dict[str, Any], list[Log]]]) -> None:
    rng = random.Random(7)
    for case, logs in composed:
        places = [rng.randrange(10_000) for _ in range(30)]
        check(case, state_of(*logs, places=places))
        crlf = [(name, role, data.replace(b"\n", b"\r\n")) for name, role, data in logs]
        check(case, state_of(*crlf))
        coloured = [
            (name, role, b"\n".join(b"\x1b[31m" + line + b"\x1b[0m" for line in data.split(b"\n")))
            for name, role, data in logs
        ]
        check(case, state_of(*coloured))


def test_composed_cases_behind_a_prefix_of_ray(composed: list[tuple[dict[str, Any], list[Log]]]) -> None:
    """What a worker relays of a failure is the same failure; what only a script prints is not relayed."""
    for case, logs in composed:
        if case["log"] != "driver" or "Not enough GPUs" in str([data for _, _, data in logs]):
            continue
        relayed = [
            (name, role, b"\n".join(ACTOR + line if line else line for line in data.split(b"\n")))
            for name, role, data in logs
        ]
        check(case, state_of(*relayed))


REAL = [("C", "cuda-oom", 248), ("E-dynamic-and-packing", "cfg-dynamic-pack", 44)]


@pytest.mark.parametrize(("folder", "identity", "line"), REAL)
@settings(max_examples=8)
@given(data=st.data())
def test_real_driver_logs_in_pieces_and_dressed_up(
    shared: Path, folder: str, identity: str, line: int, data: st.DataObject
) -> None:
    raw = (shared / "nemo-driver" / folder / "ray-driver.log").read_bytes()
    places = data.draw(st.lists(st.integers(0, len(raw)), max_size=20))
    if data.draw(st.booleans()):
        raw = raw.replace(b"\n", b"\r\n")
    before = data.draw(st.integers(0, 3))
    raw = b"noise\n" * before + raw
    assert root_of(state_of(("d", Role.DRIVER, raw), places=places)) == (identity, "d", line + before)


def test_real_driver_logs_name_node_and_rank(shared: Path) -> None:
    raw = (shared / "nemo-driver" / "C" / "ray-driver.log").read_bytes()
    root = state_of(("d", Role.DRIVER, raw)).findings[0]
    assert (root.node, root.rank, root.pid, root.confidence) == ("10.0.0.1", 1, 29111, "high")
    assert root.causes == ("ray-task-error",)
    assert root.edits[0].key == "policy.train_micro_batch_size"
    healthy = (shared / "nemo-driver" / "A" / "ray-driver.log").read_bytes()
    assert state_of(("d", Role.DRIVER, healthy)).findings == []


SETUP = "\n".join(DriverText([0.9], end="").lines()) + "\n"
OOM_IN_WORKER = (
    "\x1b[36m(W[rank=3] pid=7, ip=10.0.0.7)\x1b[0m torch.OutOfMemoryError: CUDA out of memory. Tried x\n"
)
FROM_DRIVER = """\
Traceback (most recent call last):
  File "x.py", line 1, in <module>
    main()
ray.exceptions.RayTaskError(KeyError): ray::W.train() (pid=5, ip=10.0.0.5, actor_id=a, repr=W[rank=2])
  File "y.py", line 2, in train
    raise ValueError("CUDA error: out of memory")
KeyError: 'labels'

During handling of the above exception, another exception occurred:

ray::W.train() (pid=5, ip=10.0.0.5, actor_id=a, repr=W[rank=2])
  File "y.py", line 9, in train
RuntimeError: gave up
Error during policy shutdown: sys.meta_path is None
"""


def test_an_unknown_failure_shows_the_first_exception_of_the_first_rank() -> None:
    state = state_of(driver(SETUP + FROM_DRIVER))
    root = state.findings[0]
    assert (root.id, root.text, root.node, root.rank) == ("exception", "KeyError: 'labels'", "10.0.0.5", 2)
    assert state.state is JobState.FAILED
    assert state.reason == "KeyError: 'labels'"
    assert root.confidence == "medium"


def test_a_worker_that_printed_the_same_error_first_is_the_place() -> None:
    worker = "".join(
        f"(W[rank=2] pid=5, ip=10.0.0.5) {line}\n"
        for line in ("Traceback (most recent call last):", '  File "y.py", line 2', "KeyError: 'labels'")
    )
    state = state_of(driver(SETUP + worker + FROM_DRIVER))
    assert state.findings[0].source.line == SETUP.count("\n") + 3


def test_a_worker_s_traceback_without_a_failure_is_none() -> None:
    worker = "".join(
        f"(W pid=5) {line}\n"
        for line in ("Traceback (most recent call last):", "  File 'y'", "KeyError: 'x'")
    )
    assert state_of(driver(SETUP + worker)).findings == []
    ended = ("launcher.log", Role.SLURM, (LAUNCHER + launcher_end(1)).encode())
    assert state_of(driver(SETUP + worker), ended).findings[0].id == "exception"


def test_what_the_driver_went_on_after_is_no_failure() -> None:
    more = "\n".join(DriverText([0.8, 0.7], end="").lines()) + "\n"
    assert state_of(driver(SETUP + OOM_IN_WORKER + FROM_DRIVER + more)).findings == []
    again = state_of(driver(SETUP + OOM_IN_WORKER + more + OOM_IN_WORKER))
    assert root_of(again) == ("cuda-oom", "ray-driver.log", (SETUP + OOM_IN_WORKER + more).count("\n") + 1)


def test_a_completed_run_has_no_failure() -> None:
    done = "\n".join(DriverText([0.9]).lines()) + "\n"
    cancelled = b"slurmstepd: error: *** STEP 9.1 ON jwb2 CANCELLED AT 2026-11-27T14:00:37 ***\n"
    state = state_of(
        driver(done + OOM_IN_WORKER),
        ("launcher.log", Role.SLURM, (LAUNCHER + launcher_end(0)).encode()),
        ("ray-worker-1.log", Role.WORKER, cancelled),
    )
    assert state.state is JobState.COMPLETED
    assert [item for item in state.findings if item.severity == "fatal"] == []


def test_ray_that_starts_after_some_tries_is_no_failure() -> None:
    tries = (
        "OSError: [Errno 98] Address already in use\n[WARN] Head node failed 1/3 times, restarting\n"
        "Ray runtime started.\n"
    )
    for role, name in ((Role.HEAD, "ray-head.log"), (Role.WORKER, "ray-worker-1.log")):
        assert state_of((name, role, tries.encode())).findings == []
        assert root_of(state_of((name, role, tries[:60].encode()))) == ("port-in-use", name, 1)


MANY: list[Log] = [
    ("ray-driver.log", Role.DRIVER, (
        b"Not enough GPUs available. Requested 16 GPUs, but only 8 are available in the cluster.\n"
        b"Traceback (most recent call last):\n  File 'x'\n"
        b"nemo_rl.x.ResourceInsufficientError: Maximum number of retries reached (6).\n"
    )),
    ("ray-worker-1.log", Role.WORKER,
        b"RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.55.1\n"),
    ("ray-head.log", Role.HEAD, b"[ERROR] Timed out waiting for all workers to connect (4/8 after 30 min)\n"),
    ("slurm-9.out", Role.SLURM, b"srun: error: jwb2: task 0: Exited with exit code 1\n"),
]  # fmt: skip


@given(st.permutations(MANY), st.lists(st.integers(0, 400), max_size=6))
def test_the_cause_in_another_log_is_found_in_any_order(logs: list[Log], places: list[int]) -> None:
    state = state_of(*logs, places=places)
    assert root_of(state) == ("ray-version", "ray-worker-1.log", 1)
    assert [item.id for item in state.findings[1:]] == [item.id for item in state_of(*MANY).findings[1:]]
    assert {"ray-resources", "raysub-workers"} <= set(state.findings[0].causes)


def test_a_timeout_before_the_time_limit_is_the_cause_and_one_after_it_is_not() -> None:
    limit = b"slurmstepd: error: *** JOB 9 ON jwb1 CANCELLED AT 2026-11-28T%s DUE TO TIME LIMIT ***\n"
    nccl = "[E1128 02:07:08.4 P.cpp:6] Watchdog caught collective operation timeout: WorkNCCL(x)\n"
    stamped = "[2026-11-28 02:00:00,000 E 1 2] start\n" + nccl
    before = state_of(driver(stamped), ("slurm-9.out", Role.SLURM, limit % b"06:00:00"))
    after = state_of(driver(stamped), ("slurm-9.out", Role.SLURM, limit % b"02:07:00"))
    assert (root_of(before) or ("",))[0] == "nccl-timeout"
    assert (root_of(after) or ("",))[0] == "slurm-timeout"


def test_slurm_s_own_verdict_counts() -> None:
    state = state_of(driver(SETUP + "ray.exceptions.ActorDiedError: The actor died unexpectedly\n"))
    assert (state.diagnosis.root or state.findings[0]).confidence == "low"
    state.apply(JobChanged(JobState.FAILED, "a node ran out of memory", word="OUT_OF_MEMORY"))
    root = state.findings[0]
    assert (root.id, root.root, root.source.log) == ("slurm-oom-kill", True, "")
    assert state.reason == "Slurm killed processes: the job's memory on a node was full: Slurm: OUT_OF_MEMORY"


def test_a_kill_by_memory_is_a_failure_and_a_stop_by_the_user_is_not() -> None:
    killed = b"slurmstepd: error: Detected 1 oom_kill event in StepId=9.1.\n"
    end = launcher_end(143).encode()
    assert state_of(("slurm-9.out", Role.SLURM, killed + end)).state is JobState.FAILED
    assert state_of(("slurm-9.out", Role.SLURM, end)).state is JobState.CANCELLED


def test_advice_depends_on_what_the_driver_was_doing() -> None:
    for words, key in (
        ("▶ Computing teacher logprobs...", "teacher.logprob_batch_size"),
        ("▶ Training policy...", "policy.train_micro_batch_size"),
        (
            "▶ Generating responses for batch of size 8...",
            "policy.generation.vllm_cfg.gpu_memory_utilization",
        ),
    ):
        finding = state_of(driver(f"{words}\n{OOM_IN_WORKER}")).findings[0]
        assert finding.edits[0].key == key
        assert finding.rank == 3
        body = state_json("x", state_of(driver(f"{words}\n{OOM_IN_WORKER}")))["findings"][0]
        assert body["edits"][0]["key"] == key


@pytest.mark.parametrize("opening", ["+ head_cmd='", "+ srun -w jwb1 bash -x -c '", "++ worker_cmd='"])
def test_scripts_that_the_shell_prints_report_nothing(opening: str) -> None:
    trace = (
        f"+ trap x EXIT\n{opening}if true; then\n"
        "RuntimeError: Version mismatch: The cluster was started with\n"
        "  echo '\\''Address already in use'\\''\n"
        "[ERROR] Timed out waiting for all workers to connect (1/2)\n"
        "exit 1'\n+ bash -n /dev/fd/63\n"
    )
    assert state_of(("slurm-9.out", Role.SLURM, trace.encode())).findings == []
    real = trace + "[ERROR] Timed out waiting for all workers to connect (1/2)\n"
    assert root_of(state_of(("slurm-9.out", Role.SLURM, real.encode()))) == (
        "raysub-workers",
        "slurm-9.out",
        8,
    )


def test_what_models_write_is_no_failure() -> None:
    quoted = [
        "Traceback (most recent call last):",
        "torch.OutOfMemoryError: CUDA out of memory. Tried",
        "Killed",
    ]
    text = DriverText([0.9], validate_at=(1,), end="", model_text=quoted).text()
    plain = text.replace("╭", "+-").replace("╰", "+-").replace("│", "|")
    plain = plain.replace("+-───", "Sample Conversations\n+----", 1)
    assert state_of(driver(text)).findings == []
    assert state_of(driver(plain)).findings == []


def test_findings_are_bounded_however_many_lines_there_are() -> None:
    state = state_of(driver(OOM_IN_WORKER * 3000))
    assert len(state.findings) == 1
    assert state.findings[0].source.line == 1


def test_what_dies_when_a_run_is_stopped_is_no_cause() -> None:
    noise = SETUP + (
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        "Traceback (most recent call last):\n  File 'x'\nKeyboardInterrupt\n"
    )
    cancelled = state_of(driver(noise))
    cancelled.apply(JobChanged(JobState.CANCELLED, "by the user"))
    assert (cancelled.state, cancelled.findings) == (JobState.CANCELLED, [])
    alone = state_of(driver(SETUP + "Traceback (most recent call last):\n  File 'x'\nKeyboardInterrupt\n"))
    assert (alone.state, alone.reason, alone.findings) == (JobState.CANCELLED, "interrupted", [])


def test_late_lines_of_workers_between_the_driver_s_do_not_matter(shared: Path) -> None:
    raw = (shared / "nemo-driver" / "C" / "ray-driver.log").read_bytes().split(b"\n")
    late = (
        b"\x1b[36m(DTensorPolicyWorker[rank=0] pid=29110)\x1b[0m GPU Memory after optimizer offload: 0.00GB"
    )
    mixed = [line for pair in zip(raw, [late] * len(raw), strict=True) for line in pair]
    assert root_of(state_of(("d", Role.DRIVER, b"\n".join(mixed)))) == ("cuda-oom", "d", 2 * 248 - 1)


def test_what_kept_a_run_from_ending_is_the_cause_of_its_time_limit() -> None:
    limit = b"slurmstepd: error: *** JOB 9 ON jwb1 CANCELLED AT 2026-11-28T06:00:00 DUE TO TIME LIMIT ***\n"
    quota = "OSError: [Errno 122] Disk quota exceeded: '/home/x'\n"
    slurm: Log = ("slurm-9.out", Role.SLURM, limit)
    assert (root_of(state_of(driver(SETUP + quota), slurm)) or ("",))[0] == "quota"
    assert (root_of(state_of(driver(SETUP), slurm)) or ("",))[0] == "slurm-timeout"
    after = f"[2026-11-28 06:00:02,000 E 1 2] (raylet) {quota}"
    assert (root_of(state_of(driver(SETUP + after), slurm)) or ("",))[0] == "slurm-timeout"
