"""Is a run stuck? Progress is missing where progress is due, told with what speaks for it.

A pure function of a run's state and the time. What it finds is a warning that stands only as long as it is
true: texts name moments, not durations, so that a finding stays the same while nothing happens.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from statistics import median

from launcher.logs.events import FindingSeen, JobState, LogChanged, Role, Source
from launcher.logs.node_names import expanded
from launcher.monitor.state import RunState

Tail = Callable[[str], str]
"""Returns the last line of a log, cleaned."""

WORKERS_S = 180.0
"""Units join within seconds of one another; from a slow parallel file system within two minutes."""
NO_LOGS_S = 300.0
START_PASSED_S = 600.0
"""Slurm works out its plan anew every few minutes at most."""
PENDING_S = 2 * 3600.0
"""A job that waits so long without a start that Slurm foretells is worth a look at why."""
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
"""Awaited milestone -> how long nothing at all is written there in a run that goes well: imports from a
parallel file system take minutes, weights and the compilation of an engine up to half an hour."""
UNMEASURED_S = 900.0
"""So long may a validation or a checkpoint take of which none was measured yet."""
FLOOR_S = 300.0
SLOWER_S = 60.0
ENOUGH_STEPS = 5


def stuck(state: RunState, now: float, tail: Tail = lambda _: "") -> tuple[FindingSeen, ...]:
    """Return what seems to be stuck at this moment."""
    match state.state:
        case JobState.QUEUED:
            return tuple(_pending(state, now))
        case JobState.STARTING | JobState.RUNNING:
            found = [*_nothing_written(state, now), *_workers_missing(state, now, tail)]
            return tuple(found or [*_silent(state, now, tail)] or [*_slow(state, now)])
        case _:
            return ()


def last_writing(state: RunState, *roles: Role) -> LogChanged | None:
    """Return the log of these roles that was written to last."""
    logs = [log for log in state.logs.values() if log.role in roles and log.time is not None]
    return max(logs, key=lambda log: log.time or 0.0, default=None)


# ------------------------------------------------------------ each kind


def _pending(state: RunState, now: float) -> Iterator[FindingSeen]:
    job = state.job
    if job is None or job.unanswered:
        return
    nowhere = Source("", Role.SLURM, 0)
    why = job.reason or "Slurm gives no reason"
    if "never start" in why or why.startswith("held"):
        title = "The job will not start by itself"
        fix = "Release it if it is held (scontrol release); else cancel it and ask for what Slurm allows."
        yield _warning("stuck-pending", title, why, nowhere, job.submitted, fix)
    elif job.starts is not None and now > job.starts + START_PASSED_S:
        text = f"{why}; Slurm expected to start it at {_moment(job.starts)}"
        yield _warning(
            "stuck-pending", "The job did not start when Slurm expected", text, nowhere, job.starts
        )
    elif job.starts is None and job.submitted is not None and now > job.submitted + PENDING_S:
        text = f"{why}; submitted at {_moment(job.submitted)}; Slurm foretells no start"
        fix = "`submit --test-only` tells when a shorter or smaller job would start."
        yield _warning("stuck-pending", "The job waits for long", text, nowhere, job.submitted, fix)


def _nothing_written(state: RunState, now: float) -> Iterator[FindingSeen]:
    job = state.job
    if state.logs or job is None or job.began is None or now < job.began + NO_LOGS_S:
        return
    text = f"running since {_moment(job.began)} on {job.nodes or 'its nodes'}, and no log has appeared"
    fix = "Look whether its output and log directories exist and can be written on the nodes."
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
    text = f"{units.online} of {units.wanted} worker units are there, no more since {_moment(since)}"
    missing = "; ".join(_ends(state, tail))
    text += f"; not joined: {missing}" if missing else ""
    fix = "Read what the logs of the missing nodes end with; a node that is down is left out with --exclude."
    yield _warning("stuck-workers", "Workers are missing", text, units.source, since, fix)


def _ends(state: RunState, tail: Tail) -> Iterator[str]:
    """Yield the nodes whose Ray has not started, with what their logs end with."""
    nodes = expanded(state.job.nodes) if state.job is not None else ()
    logs = sorted(name for name, log in state.logs.items() if log.role is Role.WORKER)
    numbers = {name: _number(name) for name in logs}
    by_index = all(number and not text.startswith("0") for number, text in numbers.values())
    for name in logs:
        if name in state.joined:
            continue
        index = numbers[name][0]
        who = f"{nodes[index]} " if by_index and index < len(nodes) else ""
        yield f"{who}({PurePosixPath(name).name} ends with: {tail(name)[:160] or 'nothing'})"
    if by_index:
        known = {index for index, _ in numbers.values()}
        yield from (f"{nodes[index]} (no log)" for index in range(1, len(nodes)) if index not in known)


def _number(name: str) -> tuple[int, str]:
    match = re.search(r"(\d+)\.log$", name)
    return (int(match[1]), match[1]) if match is not None else (0, "0")


def _silent(state: RunState, now: float, tail: Tail) -> Iterator[FindingSeen]:
    awaited = state.awaited
    log = last_writing(state, Role.DRIVER)
    anything = last_writing(state, *Role)
    if awaited is None or anything is None or anything.time is None or awaited.id == "workers-connected":
        return
    log = log or anything
    if log.time is None:
        return
    training = state.current is not None or "first-step" in state.milestones
    limit, measured = _training_limit(state) if training else (SILENT_S.get(awaited.id, FLOOR_S), "")
    if now < log.time + limit:
        return
    doing = f"step {state.current.step}" if training and state.current is not None else awaited.waiting
    text = f"nothing was written to {PurePosixPath(log.log).name} since {_moment(log.time)}, during: {doing}"
    text += f"; {measured}" if measured else ""
    others = anything.log != log.log and anything.time > log.time + limit / 2
    text += f"; {PurePosixPath(anything.log).name} goes on" if others else "; the other logs are silent, too"
    last = tail(log.log)[:160]
    text += f"; it ends with: {last}" if last else ""
    fix = (
        "Look at the GPUs of its nodes (gpu-*.csv beside the logs) and at the file system; `cancel` ends it."
    )
    source = Source(log.log, log.role, log.lines + 1, log.bytes)
    yield _warning("stuck-silent", "The driver is silent", text, source, log.time, fix)


def _training_limit(state: RunState) -> tuple[float, str]:
    """Return how long a step of this run may be silent, by its own steps, and the words for these."""
    steps = _times(state)
    longest = [3 * max(steps, default=0.0), FLOOR_S]
    if len(steps) < ENOUGH_STEPS:
        longest.append(SILENT_S["first-step"])
    validations = state.metrics.get("validation_time_s", {})
    longest.append(3 * max(validations.values(), default=UNMEASURED_S / 3))
    saving = state.current is not None and state.current.step in state.checkpoints
    return max(longest) + (UNMEASURED_S if saving else 0.0), _measured(steps)


def _slow(state: RunState, now: float) -> Iterator[FindingSeen]:
    current, steps = state.current, _times(state)
    if current is None or len(steps) < ENOUGH_STEPS:
        return
    source = current.source
    if current.step > state.step and current.time is not None:
        extra = max(state.metrics.get("validation_time_s", {}).values(), default=UNMEASURED_S)
        extra += UNMEASURED_S if current.step in state.checkpoints else 0.0
        if now - current.time > _far(steps) + extra:
            text = f"step {current.step} goes on since {_moment(current.time)}; {_measured(steps)}"
            yield _warning("stuck-slow", "A step takes far longer than before", text, source, current.time)
            return
    if len(steps) > ENOUGH_STEPS and steps[-1] > _far(steps[:-1]) and state.step not in state.checkpoints:
        text = f"step {state.step} took {_span(steps[-1])}; before, {_measured(steps[:-1])}"
        yield _warning("stuck-slow", "A step took far longer than before", text, source, current.time)
        return
    recent, before = steps[-ENOUGH_STEPS:], steps[:-ENOUGH_STEPS]
    if len(before) >= 2 * ENOUGH_STEPS and median(recent) > 2 * median(before) + SLOWER_S / 2:
        text = (
            f"the last {len(recent)} steps took {_span(median(recent))} (median); before, {_measured(before)}"
        )
        yield _warning("stuck-slow", "Steps have become far slower", text, source, current.time)


def _times(state: RunState) -> list[float]:
    """Return the times of the steps in order, but the first, which compiles and warms up."""
    times = state.metrics.get("step_time_s", {})
    return [times[step] for step in sorted(times)[1:]]


def _far(steps: Sequence[float]) -> float:
    """Return beyond which time a step is out of line with these."""
    middle = median(steps)
    return max(3 * middle, 1.5 * max(steps), middle + SLOWER_S)


def _measured(steps: Sequence[float]) -> str:
    if not steps:
        return ""
    return f"its steps took {_span(median(steps))} (median), at most {_span(max(steps))}"


# ------------------------------------------------------------ words


def _warning(
    identity: str, title: str, text: str, source: Source, since: float | None, fix: str = ""
) -> FindingSeen:
    return FindingSeen(identity, title, "warning", text, source, fix, time=since, tier=3)


def _moment(when: float) -> str:
    return time.strftime("%b %d %H:%M:%S", time.localtime(when))


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
