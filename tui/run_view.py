"""What the monitor shows of a run, taken from its state at one moment.

The state belongs to the thread that polls; a view is frozen and may go to the screen. Text is clean already:
events carry cleaned lines, and names are cleaned here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from launcher.logs.events import MILESTONES, Event, FindingSeen, JobState, MetricRecorded, Role
from launcher.logs.sources import LogFile
from launcher.monitor.checkpoints import complete_checkpoint
from launcher.monitor.state import RunState
from launcher.monitor.summary import ended_at
from launcher.text import clean
from tui.opening import RunSummary

Point = tuple[float, float]
"""Step (or seconds) and value."""

CURVES = {
    "loss": "loss",
    "accuracy": "validation accuracy",
    "step_time_s": "seconds per step",
    "generation_length": "generation length, tokens",
}
"""Metrics that have a curve, and their titles; in the order in which they are offered."""
_RECENT_STEPS = 5


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over the steps."""

    name: str
    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A milestone as the timeline shows it."""

    id: str
    title: str
    waiting: str
    reached: bool = False
    time: float | None = None
    took: float | None = None
    """Seconds since the milestone that was reached before it."""
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class LogRef:
    """A log that can be looked at."""

    name: str
    path: str
    role: Role


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything the monitor shows, but the logs' text."""

    about: RunSummary
    state: JobState = JobState.UNKNOWN
    reason: str = ""
    marks: tuple[TimelineEntry, ...] = ()
    since: float | None = None
    """When the latest milestone was reached: what is awaited has been awaited since."""
    waiting: str = ""
    started: float | None = None
    ended: float | None = None
    step: int = 0
    max_steps: int | None = None
    step_time: float | None = None
    """Middle one of the latest steps, in seconds."""
    curves: tuple[Curve, ...] = ()
    findings: tuple[FindingSeen, ...] = ()
    logs: tuple[LogRef, ...] = ()
    checkpoint: int | None = None
    """Step of the last complete checkpoint."""
    deadline: float | None = None
    """When the time of the job is over, where a scheduler has set one."""
    unanswered: str = ""
    """Why the cluster gives no answer at this moment; the state is what it said last."""
    problem: str = ""
    """Why nothing new can be read at this moment."""
    reading: bool = False
    """Whether there is more to read than was read so far."""

    def loss(self) -> float | None:
        """Return the latest loss."""
        return next((curve.points[-1][1] for curve in self.curves if curve.name == "loss"), None)

    def remaining(self) -> float | None:
        """Return how many seconds the steps that are left may take, by the latest ones."""
        if self.max_steps is None or self.step_time is None or self.state.ended:
            return None
        return max(self.max_steps - self.step, 0) * self.step_time


@dataclass(slots=True)
class Viewer:
    """Makes views of one run; sorts a metric's points only when new ones came."""

    about: RunSummary
    _curves: dict[str, Curve] = field(default_factory=dict)
    _logs: tuple[LogFile, ...] = ()
    _refs: tuple[LogRef, ...] = ()

    def view(
        self,
        state: RunState,
        events: Sequence[Event],
        logs: Sequence[LogFile],
        *,
        problem: str = "",
        reading: bool = False,
    ) -> RunView:
        """Return what there is to show; `events` are those since the last view."""
        for name in {event.name for event in events if isinstance(event, MetricRecorded)} & CURVES.keys():
            points = tuple((float(step), value) for step, value in sorted(state.metrics[name].items()))
            self._curves[name] = Curve(name, CURVES[name], points)
        marks = _marks(state)
        times = [mark.time for mark in marks if mark.time is not None]
        started = self.about.started if self.about.started is not None else min(times, default=None)
        pace = self._curves.get("step_time_s")
        return RunView(
            about=self.about,
            state=state.state,
            reason=clean(state.reason),
            marks=marks,
            since=max(times, default=started),
            waiting=_waiting(state),
            started=started,
            ended=ended_at(state),
            step=state.step,
            max_steps=state.max_steps,
            step_time=_middle([value for _, value in pace.points[-_RECENT_STEPS:]]) if pace else None,
            curves=tuple(self._curves[name] for name in CURVES if name in self._curves),
            findings=tuple(sorted(state.findings, key=_rank)),
            logs=self._refs_of(tuple(logs)),
            checkpoint=complete_checkpoint(state),
            deadline=None if state.state.ended else state.deadline,
            unanswered=clean(state.job.unanswered) if state.job is not None else "",
            problem=clean(problem.replace("\n", " ")),
            reading=reading,
        )

    def _refs_of(self, logs: tuple[LogFile, ...]) -> tuple[LogRef, ...]:
        """Return the logs as they are shown; a thousand of them are sorted only when others came."""
        if logs != self._logs:
            self._logs, self._refs = logs, log_refs(logs)
        return self._refs


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _rank(finding: FindingSeen) -> tuple[bool, bool]:
    return (not finding.root, finding.severity != "fatal")


def _marks(state: RunState) -> tuple[TimelineEntry, ...]:
    awaited = state.awaited
    order = sorted(
        (reached.time, place)
        for place, kind in enumerate(MILESTONES)
        if (reached := state.milestones.get(kind.id)) is not None and reached.time is not None
    )
    took = {place: time - before for (before, _), (time, place) in pairwise(order)}
    marks = []
    for place, kind in enumerate(MILESTONES):
        reached = state.milestones.get(kind.id)
        time = reached.time if reached is not None else None
        mark = TimelineEntry(
            kind.id, kind.title, kind.waiting, reached is not None, time, took.get(place), kind is awaited
        )
        marks.append(mark)
    return tuple(marks)


def _waiting(state: RunState) -> str:
    awaited = state.awaited
    if awaited is None:
        return ""
    if awaited.id == "workers-connected" and state.units is not None:
        return f"{awaited.waiting}: {state.units.online} of {state.units.wanted} worker units are there"
    if state.current is not None and state.current.step > state.step:
        return f"training, step {state.current.step}"
    return awaited.waiting


def log_refs(logs: Sequence[LogFile]) -> tuple[LogRef, ...]:
    """Return the logs in the order of their tabs: driver, head, workers, launcher."""
    order = (Role.DRIVER, Role.HEAD, Role.WORKER, Role.SLURM, Role.COMPANION)
    ranked = sorted(logs, key=lambda log: (order.index(log.role), _natural(log.name)))
    return tuple(LogRef(clean(log.name), log.path, log.role) for log in ranked)


def _natural(name: str) -> tuple[int, str]:
    """Return a key that sorts `ray-worker-10.log` after `ray-worker-9.log`."""
    return (len(name), name)
