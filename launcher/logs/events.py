"""What can be learnt from a run, as typed events; `RunState.apply` is their only consumer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from launcher.logs.signatures import SuggestedEdit


class Role(StrEnum):
    """Which part of a run wrote a log."""

    SLURM = "slurm"
    """The batch script: Slurm's output file, or the launcher's own log."""
    HEAD = "head"
    DRIVER = "driver"
    WORKER = "worker"
    COMPANION = "companion"


class JobState(StrEnum):
    """State of a run as shown to people and scripts."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self in (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Source:
    """Where an event was read."""

    log: str
    """Name of the log: its path relative to what is being watched."""
    role: Role
    line: int
    """Counted from 1, by newline alone; 0 where no line is meant."""
    offset: int = 0
    """Byte offset of the line's first byte."""


@dataclass(frozen=True, slots=True)
class MilestoneReached:
    """An awaited event happened."""

    id: str
    source: Source
    time: float | None = None
    """Seconds since the epoch; None where neither the line, the clock nor the moment of reading tells."""


@dataclass(frozen=True, slots=True)
class MetricRecorded:
    """One value of a metric at a training step (validation metrics: the step they were taken at)."""

    name: str
    step: int
    value: float
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class PlanSeen:
    """What the driver says about how far it will go; unknown parts are None."""

    source: Source
    steps_per_epoch: int | None = None
    epochs: int | None = None
    batch: int | None = None
    """Samples generated a step."""
    samples: int | None = None
    """Samples in the training set."""


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A training step began; `step` counts over the whole run, not within the epoch."""

    step: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSaving:
    """The driver began to save a checkpoint."""

    step: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class UnitsOnline:
    """How many worker_units have joined the Ray cluster."""

    online: int
    wanted: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class DriverEnded:
    """The driver's process ended; `code` as the launcher reported it."""

    code: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class LauncherEnded:
    """The launcher's own last line."""

    code: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class FindingSeen:
    """A recognised failure or warning; which of them is the cause is `diagnosis.diagnose`'s work."""

    id: str
    title: str
    severity: str
    """`fatal` or `warning`."""
    text: str
    """The line it was seen in, cleaned."""
    source: Source
    fix: str = ""
    node: str | None = None
    rank: int | None = None
    causes: tuple[str, ...] = ()
    root: bool = False
    time: float | None = None
    tier: int = 2
    """1 explains a failure, 2 explains one where nothing of tier 1 was seen, 3 only reports one."""
    edits: tuple[SuggestedEdit, ...] = ()
    """Changes of the recipe that help."""
    stamp: float | None = None
    """When it happened by the line's own words: wall-clock seconds that compare within a run, of no zone."""
    pid: int | None = None
    retried: bool = False
    """What saw it tries again: it counts until that succeeds."""
    confidence: str = ""
    """Of the root finding: `high`, `medium` or `low`."""


@dataclass(frozen=True, slots=True)
class ExceptionSeen:
    """A traceback ended in an exception; the first of each process is told."""

    message: str
    source: Source
    began: int
    """Line of the traceback's first line."""
    own: bool
    """The owner of the log printed it, not a worker through Ray."""
    wrapper: bool
    """It only carries another process's error."""
    node: str | None = None
    rank: int | None = None
    pid: int | None = None
    stamp: float | None = None


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was being retried has succeeded: failures that this log told before are none."""

    source: Source


@dataclass(frozen=True, slots=True)
class LogRestarted:
    """A log was truncated or replaced: what it told before is of another run of its writer."""

    source: Source


@dataclass(frozen=True, slots=True)
class TrackerFound:
    """The driver also writes for a tracking tool."""

    kind: str
    """`tensorboard` or `wandb-offline`."""
    path: str


@dataclass(frozen=True, slots=True)
class TrackerDirFound:
    """The driver said where it writes for a tracking tool."""

    path: str
    source: Source


@dataclass(frozen=True, slots=True)
class RootFindingChanged:
    """Another finding than before is taken for the cause; None where there is none (any more)."""

    root: FindingSeen | None
    before: FindingSeen | None


@dataclass(frozen=True, slots=True)
class NoticesChanged:
    """What seems to be wrong at this moment, all of it; nothing of it stands in a log, and it may pass."""

    notices: tuple[FindingSeen, ...]


@dataclass(frozen=True, slots=True)
class LogChanged:
    """A log was found, grew or shrank."""

    log: str
    role: Role
    bytes: int
    lines: int
    """Complete lines read so far."""
    problem: str = ""
    """Why the log cannot be read now; empty when it can."""
    time: float | None = None
    """When it was last written to, as its file system tells."""


@dataclass(frozen=True, slots=True)
class JobChanged:
    """What the cluster says about the run's job."""

    state: JobState
    reason: str = ""
    time: float | None = None
    over: bool = False
    """The job is over, but only the logs can tell how it ended."""
    word: str = ""
    """The scheduler's own word for it: `TIMEOUT`, `NODE_FAIL` …"""
    job: str = ""
    """The scheduler's number of the job that this is said of."""
    exit_code: str = ""
    """As Slurm writes it, `code:signal`."""
    nodes: str = ""
    """Nodes of the allocation, as Slurm writes lists of them."""
    waits_for: str = ""
    """The scheduler's own word for why the job waits."""
    submitted: float | None = None
    began: float | None = None
    """When it got its nodes."""
    deadline: float | None = None
    """When its allocation ends."""
    starts: float | None = None
    """When the scheduler expects a waiting job to start."""
    unanswered: str = ""
    """Why the cluster gives no answer now, so that this is what it said last; empty when it does."""


def unanswered(last: JobChanged | None, problem: str) -> JobChanged:
    """Return what was said last, with why there is no answer now: nothing that was known is taken back."""
    if last is None or (last.state is JobState.UNKNOWN and not last.over):
        return JobChanged(JobState.UNKNOWN, f"the cluster gives no answer: {problem}", unanswered=problem)
    if last.state.ended or last.over:
        return last
    bare = f" ({last.reason})" if last.reason and not last.unanswered else ""
    reason = f"as the cluster said last{bare}; it gives no answer now: {problem}"
    return replace(last, reason=reason, unanswered=problem)


Event = (
    MilestoneReached
    | MetricRecorded
    | PlanSeen
    | StepBegan
    | CheckpointSaving
    | UnitsOnline
    | DriverEnded
    | LauncherEnded
    | FindingSeen
    | ExceptionSeen
    | Recovered
    | LogRestarted
    | TrackerFound
    | TrackerDirFound
    | RootFindingChanged
    | NoticesChanged
    | LogChanged
    | JobChanged
)


@dataclass(frozen=True, slots=True)
class MilestoneKind:
    """A milestone that every run is expected to reach, in this order."""

    id: str
    title: str
    waiting: str = field(default="")
    """What is going on while this milestone is awaited."""


MILESTONES: tuple[MilestoneKind, ...] = (
    MilestoneKind("head-up", "Ray head up", "starting the Ray head"),
    MilestoneKind("workers-connected", "All workers connected", "waiting for the workers"),
    MilestoneKind("driver-started", "Driver started", "starting the driver"),
    MilestoneKind("ray-attached", "Driver attached to Ray", "the driver is importing and attaching to Ray"),
    MilestoneKind("data-loaded", "Data loaded", "loading the data"),
    MilestoneKind("teacher-ready", "Teacher workers up", "starting the teacher"),
    MilestoneKind("generation-ready", "Generation engine ready", "starting the generation engine"),
    MilestoneKind("student-ready", "Student workers up", "starting the student"),
    MilestoneKind("setup-complete", "Setup complete", "finishing the set-up"),
    MilestoneKind("first-step", "First step done", "training, first step"),
    MilestoneKind("first-validation", "First validation done", "training"),
    MilestoneKind("first-checkpoint", "First checkpoint saving", "training"),
    MilestoneKind("completed", "Completed", "training"),
)
MILESTONE_TITLES = {kind.id: kind.title for kind in MILESTONES}
