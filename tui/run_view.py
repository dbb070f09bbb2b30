"""A snapshot of a run's state for the monitor.

The state belongs to the polling thread; a view is frozen and may go to the screen. All of its text is clean:
events carry cleaned lines, and names are cleaned here. Secrets in it are masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from launcher.logs.events import Event, FindingSeen, JobState, MetricRecorded, Role, Source
from launcher.logs.milestones import MILESTONES
from launcher.logs.node_names import expanded, node_of_log
from launcher.logs.sources import LogFile
from launcher.monitor.checkpoints import complete_checkpoint
from launcher.monitor.state import RunState
from launcher.monitor.summary import ended_at
from launcher.text import clean
from recipes.secrets import Mask
from tui.opening import RunSummary

Point = tuple[float, float]
"""Step (or seconds) and value."""

CURVES = {
    "loss": "loss",
    "accuracy": "validation accuracy",
    "step_time_s": "seconds per step",
    "generation_length": "generation length, tokens",
}
"""Metrics that have a curve, and their titles, in the order in which they are offered."""
_RECENT_STEPS = 5


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over the steps."""

    name: str
    title: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A milestone in the timeline."""

    id: str
    title: str
    waiting: str
    reached: bool = False
    time: float | None = None
    duration: float | None = None
    """Seconds since the milestone reached before it."""
    awaited: bool = False
    source: Source | None = None
    """Log and line that show it."""


@dataclass(frozen=True, slots=True)
class LogRef:
    """A log that can be shown."""

    name: str
    path: str
    role: Role
    node: str = ""
    """Node that wrote it, where known."""
    ranks: str = ""
    """Ranks of the node: `ranks 4-7`; empty where unknown."""


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything that the monitor shows except the logs' text."""

    summary: RunSummary
    state: JobState = JobState.UNKNOWN
    reason: str = ""
    attempts: tuple[str, ...] = ()
    """Attempts of the run in words, where there were several."""
    timeline: tuple[TimelineEntry, ...] = ()
    since: float | None = None
    """Time of the latest milestone, since which the next one is awaited."""
    waiting: str = ""
    started: float | None = None
    ended: float | None = None
    step: int = 0
    max_steps: int | None = None
    step_time: float | None = None
    """Median time of the latest steps, in seconds."""
    curves: tuple[Curve, ...] = ()
    findings: tuple[FindingSeen, ...] = ()
    logs: tuple[LogRef, ...] = ()
    nodes: tuple[str, ...] = ()
    """Nodes of the job, where known."""
    job: str = ""
    """The scheduler's id of the job that runs; empty where none does."""
    checkpoint: int | None = None
    """Step of the last complete checkpoint."""
    deadline: float | None = None
    """End of the job's time limit, where a scheduler has set one."""
    unanswered: str = ""
    """Reason why the cluster does not answer; the state is the last one it reported."""
    problem: str = ""
    """Reason why nothing new can be read."""
    reading: bool = False
    """Whether there is more to read."""

    def loss(self) -> float | None:
        """Return the latest loss."""
        return next((curve.points[-1][1] for curve in self.curves if curve.name == "loss"), None)

    def remaining(self) -> float | None:
        """Return the estimated seconds of the remaining steps, from the latest ones."""
        if self.max_steps is None or self.step_time is None or self.state.ended:
            return None
        return max(self.max_steps - self.step, 0) * self.step_time


@dataclass(slots=True)
class ViewBuilder:
    """Builds views of one run; sorts a metric's points only when there are new ones."""

    summary: RunSummary
    _curves: dict[str, Curve] = field(default_factory=dict)
    _logs: tuple[LogFile, ...] = ()
    _nodes: tuple[str, ...] = ()
    _refs: tuple[LogRef, ...] = ()

    def build(
        self,
        state: RunState,
        events: Sequence[Event],
        logs: Sequence[LogFile],
        *,
        problem: str = "",
        reading: bool = False,
    ) -> RunView:
        """Return the current view; `events` are those since the last one."""
        for name in {event.name for event in events if isinstance(event, MetricRecorded)} & CURVES.keys():
            points = tuple((float(step), value) for step, value in sorted(state.metrics[name].items()))
            self._curves[name] = Curve(name, CURVES[name], points)
        timeline = _timeline(state)
        nodes = expanded(clean(state.job.nodes)) if state.job is not None else ()
        times = [entry.time for entry in timeline if entry.time is not None]
        started = self.summary.started if self.summary.started is not None else min(times, default=None)
        mask = Mask.of()
        step_times = self._curves.get("step_time_s")
        return RunView(
            summary=self.summary,
            state=state.state,
            reason=mask(clean(state.reason)),
            attempts=_attempts(state),
            timeline=timeline,
            since=max(times, default=started),
            waiting=_waiting(state),
            started=started,
            ended=ended_at(state),
            step=state.step,
            max_steps=state.max_steps,
            step_time=_median([value for _, value in step_times.points[-_RECENT_STEPS:]])
            if step_times
            else None,
            curves=tuple(self._curves[name] for name in CURVES if name in self._curves),
            findings=tuple(
                replace(item, title=mask(item.title), text=mask(item.text))
                for item in sorted(state.findings, key=_rank)
            ),
            logs=self._refs_of(tuple(logs), nodes),
            nodes=nodes,
            job=state.job.job if state.job is not None and state.job.state is JobState.RUNNING else "",
            checkpoint=complete_checkpoint(state),
            deadline=None if state.state.ended else state.deadline,
            unanswered=clean(state.job.unanswered) if state.job is not None else "",
            problem=clean(problem.replace("\n", " ")),
            reading=reading,
        )

    def _refs_of(self, logs: tuple[LogFile, ...], nodes: tuple[str, ...]) -> tuple[LogRef, ...]:
        """Return the logs to show; a thousand of them are sorted only when they changed."""
        if (logs, nodes) != (self._logs, self._nodes):
            self._logs, self._nodes, self._refs = logs, nodes, log_refs(logs, nodes)
        return self._refs


def _attempts(state: RunState) -> tuple[str, ...]:
    attempts = state.attempts
    return tuple(clean(item.in_words()) for item in attempts) if len(attempts) > 1 else ()


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _rank(finding: FindingSeen) -> tuple[bool, bool]:
    return (not finding.root, finding.severity != "fatal")


def _timeline(state: RunState) -> tuple[TimelineEntry, ...]:
    awaited = state.awaited
    times = sorted(
        (reached.time, index)
        for index, kind in enumerate(MILESTONES)
        if (reached := state.milestones.get(kind.id)) is not None and reached.time is not None
    )
    durations = {index: time - previous for (previous, _), (time, index) in pairwise(times)}
    entries = []
    for index, kind in enumerate(MILESTONES):
        reached = state.milestones.get(kind.id)
        time = reached.time if reached is not None else None
        duration = durations.get(index)
        entries.append(
            TimelineEntry(
                kind.id,
                kind.title,
                kind.waiting,
                reached is not None,
                time,
                duration,
                kind is awaited,
                reached.source if reached is not None and reached.source.line > 0 else None,
            )
        )
    return tuple(entries)


def _waiting(state: RunState) -> str:
    awaited = state.awaited
    if awaited is None:
        return ""
    if awaited.id == "workers-connected" and state.units is not None:
        return f"{awaited.waiting}: {state.units.online} of {state.units.wanted} worker units connected"
    if state.phase is not None and state.phase.phase in ("validation", "checkpoint"):
        return state.activity
    if state.current is not None and state.current.step > state.step:
        return f"training, step {state.current.step}"
    return awaited.waiting


def log_refs(logs: Sequence[LogFile], nodes: Sequence[str] = ()) -> tuple[LogRef, ...]:
    """Return the logs in the order of their tabs: driver, head, workers, launcher."""
    order = (Role.DRIVER, Role.HEAD, Role.WORKER, Role.SLURM, Role.COMPANION)
    ranked = sorted(logs, key=lambda log: (order.index(log.role), _natural(log.name)))
    return tuple(
        LogRef(clean(log.name), log.path, log.role, node_of_log(clean(log.name), log.role, nodes))
        for log in ranked
    )


def _natural(name: str) -> tuple[int, str]:
    """Return a key that sorts `ray-worker-10.log` after `ray-worker-9.log`."""
    return (len(name), name)
