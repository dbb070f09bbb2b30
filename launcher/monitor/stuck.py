"""Detection of stuck runs: progress that is due and missing, with the evidence for it.

A pure function of a run's state and the time. Its findings are warnings that exist only as long as they are
true; texts name moments, not durations, so that a finding stays the same while nothing happens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from statistics import median

from launcher.durations import in_words, moment
from launcher.logs.events import FindingSeen, JobState, LogChanged, Role, Source, StepBegan
from launcher.logs.gpu_tables import NodeGpus
from launcher.logs.node_names import expanded
from launcher.monitor.chronology import source_order
from launcher.monitor.state import RunState
from launcher.monitor.usual import Usual

Tail = Callable[[str], str]
"""Returns the last line of a log, cleaned."""
Gpus = Callable[[], Sequence[NodeGpus]]
"""Returns the GPUs of each node that reports them."""

WORKERS_S = 180.0
"""Units join within seconds of each other; from a slow parallel file system within two minutes."""
NO_LOGS_S = 300.0
START_PASSED_S = 600.0
"""Slurm recomputes its schedule at least every few minutes."""
PENDING_S = 2 * 3600.0
"""A job that waits this long without an expected start deserves a look at its reason."""
SILENT_S = {
    "head-up": 240.0,
    "driver-started": 120.0,
    "ray-attached": 600.0,
    "data-loaded": 900.0,
    "teacher-ready": 1800.0,
    "generation-ready": 1800.0,
    "student-ready": 1800.0,
    "setup-complete": 900.0,
    "first-step": 1800.0,
}
"""Awaited milestone -> longest silence of the log in a healthy run, in seconds: imports from a parallel file
system take minutes, loading weights and compiling an engine up to half an hour."""
UNMEASURED_S = 900.0
"""Time allowed for a validation or a checkpoint of which none was measured yet."""
FLOOR_S = 300.0
GPU_TABLE_S = 90.0
"""The launcher writes each node's table of GPU use every 15 s; nvidia-smi may take up to 60 s."""
_RARE_PHASES = frozenset({"validation", "checkpoint"})
"""Phases of which the first one already tells what is usual."""
SLOWER_S = 60.0
ENOUGH_STEPS = 5


def stuck(
    state: RunState,
    now: float,
    tail: Tail = lambda _: "",
    gpus: Gpus = tuple,
    usual: Callable[[], Usual] = Usual,
) -> tuple[FindingSeen, ...]:
    """Return warnings about what seems to be stuck now; `tail`, `gpus` and `usual` read what they need."""
    match state.state:
        case JobState.QUEUED:
            return tuple(_pending(state, now))
        case JobState.STARTING | JobState.RUNNING:
            warnings = [*_no_logs(state, now), *_workers_missing(state, now, tail)]
            return tuple(
                warnings
                or [*_silent(state, now, tail, gpus)]
                or [*_slow(state, now)]
                or [*_longer_than_usual(state, now, usual)]
            )
        case _:
            return ()


def last_written(state: RunState, *roles: Role) -> LogChanged | None:
    """Return the most recently written log of these roles."""
    logs = [log for log in state.logs.values() if log.role in roles and log.time is not None]
    return max(logs, key=lambda log: log.time or 0.0, default=None)


# ------------------------------------------------------------ kinds of being stuck


def _pending(state: RunState, now: float) -> Iterator[FindingSeen]:
    job = state.job
    if job is None or job.unanswered:
        return
    no_log = Source("", Role.SLURM, 0)
    why = job.reason or "Slurm gives no reason"
    if job.stuck:
        title = "The job will not start by itself"
        yield _warning("stuck-pending", title, why, no_log, job.submitted, job.fix)
    elif job.starts is not None and now > job.starts + START_PASSED_S:
        text = f"{why}; Slurm expected it to start at {moment(job.starts)}"
        title = "The job did not start when Slurm expected"
        yield _warning("stuck-pending", title, text, no_log, job.starts, job.fix)
    elif job.starts is None and job.submitted is not None and now > job.submitted + PENDING_S:
        text = f"{why}; submitted at {moment(job.submitted)}; Slurm does not predict a start"
        fix = job.fix or "`submit --test-only` shows when a shorter or smaller job would start."
        yield _warning("stuck-pending", "The job has been waiting for long", text, no_log, job.submitted, fix)


def _no_logs(state: RunState, now: float) -> Iterator[FindingSeen]:
    job = state.job
    if state.logs or job is None or job.began is None or now < job.began + NO_LOGS_S:
        return
    text = f"running since {moment(job.began)} on {job.nodes or 'its nodes'}, and no log has appeared"
    fix = "Check that its output and log directories exist and are writable on the nodes."
    yield _warning("stuck-no-logs", "The job writes no logs", text, Source("", Role.SLURM, 0), job.began, fix)


def _workers_missing(state: RunState, now: float, tail: Tail) -> Iterator[FindingSeen]:
    head, units = state.milestones.get("head-up"), state.units
    if head is None or head.time is None or "workers-connected" in state.milestones:
        return
    if state.awaited is None or state.awaited.id != "workers-connected" or units is None:
        return
    since = max(head.time, state.units_since or 0.0)
    if units.online >= units.wanted or now < since + WORKERS_S:
        return
    text = f"{units.online} of {units.wanted} worker units have joined, none since {moment(since)}"
    missing = "; ".join(_missing_nodes(state, tail))
    text += f"; not joined: {missing}" if missing else ""
    fix = "Read the end of the missing nodes' logs; exclude a node that is down (--exclude=NODE)."
    yield _warning("stuck-workers", "Workers are missing", text, units.source, since, fix)


def _missing_nodes(state: RunState, tail: Tail) -> Iterator[str]:
    """Yield the nodes whose Ray has not started, with the last lines of their logs."""
    nodes = expanded(state.job.nodes) if state.job is not None else ()
    logs = sorted(name for name, log in state.logs.items() if log.role is Role.WORKER)
    indices = {name: _node_index(name) for name in logs}
    by_index = all(number and not text.startswith("0") for number, text in indices.values())
    for name in logs:
        if name in state.joined:
            continue
        index = indices[name][0]
        node = f"{nodes[index]} " if by_index and index < len(nodes) else ""
        yield f"{node}({PurePosixPath(name).name} ends with: {tail(name)[:160] or 'nothing'})"
    if by_index:
        logged = {index for index, _ in indices.values()}
        yield from (f"{nodes[index]} (no log)" for index in range(1, len(nodes)) if index not in logged)


def _node_index(name: str) -> tuple[int, str]:
    match = re.search(r"(\d+)\.log$", name)
    return (int(match[1]), match[1]) if match is not None else (0, "0")


def _silent(state: RunState, now: float, tail: Tail, gpus: Gpus) -> Iterator[FindingSeen]:
    awaited = state.awaited
    log = last_written(state, Role.DRIVER)
    anything = last_written(state, *Role)
    if awaited is None or anything is None or anything.time is None or awaited.id == "workers-connected":
        return
    log = log or anything
    if log.time is None:
        return
    training = state.current is not None or "first-step" in state.milestones
    limit, measured = _training_limit(state) if training else (SILENT_S.get(awaited.id, FLOOR_S), "")
    if now < log.time + limit:
        return
    text = f"nothing was written to {PurePosixPath(log.log).name} since {moment(log.time)}, "
    text += f"during: {_activity_now(state) if training else awaited.waiting}"
    text += f"; {measured}" if measured else ""
    text += "".join(f"; {missing}" for missing in _missing_gpus(gpus()))
    others_active = anything.log != log.log and anything.time > log.time + limit / 2
    text += (
        f"; {PurePosixPath(anything.log).name} is still being written"
        if others_active
        else "; the other logs are silent, too"
    )
    text += _last_error(state)
    last_line = tail(log.log)[:160]
    text += f"; it ends with: {last_line}" if last_line else ""
    fix = (
        "Check the GPUs of its nodes (gpu-*.csv beside the logs) and the file system; `cancel` ends the run."
    )
    source = Source(log.log, log.role, log.lines + 1, log.bytes)
    yield _warning("stuck-silent", "The driver is silent", text, source, log.time, fix)


def _last_error(state: RunState) -> str:
    """Return the first error among a silent run's last lines, with the process that printed it."""
    error = min(state.last_errors, key=lambda item: source_order(item.source), default=None)
    if error is None:
        return ""
    who = [
        f"rank {error.rank}" if error.rank is not None else "",
        f"process {error.pid}" if error.pid is not None else "",
        f"on {error.node}" if error.node is not None else "",
    ]
    names = " ".join(part for part in who if part)
    return f"; before, {names or 'a worker'} failed with {error.message[:160]}"


def _activity_now(state: RunState) -> str:
    """Return the driver's phase, since when it is in it, and the step that this belongs to."""
    phase = state.phase
    step = f"step {state.current.step}" if state.current is not None else "training"
    if phase is None:
        return step
    since = f" since {moment(phase.time)}" if phase.time is not None else ""
    return f"{phase.in_words()}{since}"


def _missing_gpus(nodes: Sequence[NodeGpus]) -> Iterator[str]:
    """Yield which nodes no longer report their GPUs, and whose GPUs idle while others wait for them."""
    newest = max((node.written for node in nodes), default=0.0)
    gone = [node for node in nodes if node.written < newest - GPU_TABLE_S]
    if gone:
        yield "no longer reporting: " + ", ".join(
            f"{node.node} (since {moment(node.written)})" for node in gone
        )
    idle = [node for node in nodes if node.idle and node not in gone]
    if idle and any(node.busy for node in nodes):
        yield "idle while others are busy: " + ", ".join(
            f"{node.node} GPU {', '.join(map(str, node.idle))}" for node in idle
        )


def _phase_limit(state: RunState) -> tuple[float, str] | None:
    """Return the silence allowed in the present phase, with what is usual for it; None where unmeasured."""
    phase = state.phase
    if phase is None:
        return None
    times = list(state.metrics.get(f"{phase.phase}_time_s", {}).values())
    if len(times) < (1 if phase.phase in _RARE_PHASES else ENOUGH_STEPS):
        return None
    usual = f"before, this took {in_words(median(times))} (median), at most {in_words(max(times))}"
    return max(3 * max(times), FLOOR_S), usual


def _training_limit(state: RunState) -> tuple[float, str]:
    """Return the silence allowed in training, in seconds, and a text about the times it derives from."""
    steps = _step_times(state)
    if (of_phase := _phase_limit(state)) is not None:
        return of_phase[0], "; ".join(filter(None, (of_phase[1], _step_times_text(steps))))
    limits = [3 * max(steps, default=0.0), FLOOR_S]
    if len(steps) < ENOUGH_STEPS:
        limits.append(SILENT_S["first-step"])
    validations = state.metrics.get("validation_time_s", {})
    limits.append(3 * max(validations.values(), default=UNMEASURED_S / 3))
    saving = state.current is not None and state.current.step in state.checkpoints
    return max(limits) + (UNMEASURED_S if saving else 0.0), _step_times_text(steps)


def _longer_than_usual(state: RunState, now: float, look_up: Callable[[], Usual]) -> Iterator[FindingSeen]:
    """Compare the milestone that is awaited with earlier runs of the recipe on as many nodes."""
    awaited, reached = state.awaited, [item for item in state.milestones.values() if item.time is not None]
    latest = max(reached, key=lambda item: item.time or 0.0, default=None)
    if awaited is None or latest is None or latest.time is None or state.current is not None:
        return
    usual = look_up()
    expected = usual.expected_s(awaited.id)
    if expected is not None and usual.longer(awaited.id, now - latest.time):
        runs = "one earlier run" if usual.runs == 1 else f"{usual.runs} earlier runs"
        text = (
            f"{awaited.waiting} since {moment(latest.time)}; usually this takes {in_words(expected)} ({runs})"
        )
        yield _warning("stuck-unusual", "It takes longer than usual", text, latest.source, latest.time)


def _slow(state: RunState, now: float) -> Iterator[FindingSeen]:
    current, steps = state.current, _step_times(state)
    if current is None or len(steps) < ENOUGH_STEPS:
        return
    observation = (
        _slow_current_step(state, current, steps, now)
        or _slow_last_step(state, steps)
        or _slower_steps(steps)
    )
    if observation is not None:
        title, text = observation
        yield _warning("stuck-slow", title, text, current.source, current.time)


def _slow_current_step(
    state: RunState, current: StepBegan, steps: Sequence[float], now: float
) -> tuple[str, str] | None:
    if current.step <= state.step or current.time is None:
        return None
    extra = max(state.metrics.get("validation_time_s", {}).values(), default=UNMEASURED_S)
    extra += UNMEASURED_S if current.step in state.checkpoints else 0.0
    if now - current.time <= _outlier_limit(steps) + extra:
        return None
    text = f"step {current.step} has been running since {moment(current.time)}; {_step_times_text(steps)}"
    return "A step takes far longer than before", text


def _slow_last_step(state: RunState, steps: Sequence[float]) -> tuple[str, str] | None:
    *before, last = steps
    if len(before) < ENOUGH_STEPS or last <= _outlier_limit(before) or state.step in state.checkpoints:
        return None
    text = f"step {state.step} took {in_words(last)}; before, {_step_times_text(before)}"
    return "A step took far longer than before", text


def _slower_steps(steps: Sequence[float]) -> tuple[str, str] | None:
    recent, before = steps[-ENOUGH_STEPS:], steps[:-ENOUGH_STEPS]
    if len(before) < 2 * ENOUGH_STEPS or median(recent) <= 2 * median(before) + SLOWER_S / 2:
        return None
    text = f"the last {len(recent)} steps took {in_words(median(recent))} (median)"
    return "Steps have become far slower", f"{text}; before, {_step_times_text(before)}"


def _step_times(state: RunState) -> list[float]:
    """Return the step times in order without the first, which compiles and warms up."""
    times = state.metrics.get("step_time_s", {})
    return [times[step] for step in sorted(times)[1:]]


def _outlier_limit(steps: Sequence[float]) -> float:
    """Return the time beyond which a step is an outlier among these."""
    typical = median(steps)
    return max(3 * typical, 1.5 * max(steps), typical + SLOWER_S)


def _step_times_text(steps: Sequence[float]) -> str:
    if not steps:
        return ""
    return f"its steps took {in_words(median(steps))} (median), at most {in_words(max(steps))}"


# ------------------------------------------------------------ texts


def _warning(
    identity: str, title: str, text: str, source: Source, since: float | None, fix: str = ""
) -> FindingSeen:
    return FindingSeen(identity, title, "warning", text, source, fix, time=since, tier=3)
