"""Typed events of a run: what readers of logs, trackers and clusters learn of it.

`RunState.apply` alone turns them into a run's state; `summary.event_json` and `tui/headless/plain.py` print
them as they come. Field names, and class names unless `summary` maps them, are the keys of `watch --json`.
Events of which a log holds one every few lines are named tuples, which are made in a third of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from launcher.logs.job_state import ENDED_STATES as ENDED_STATES
from launcher.logs.job_state import JobState as JobState
from launcher.logs.milestones import PHASES
from launcher.logs.signatures import SuggestedEdit


class Role(StrEnum):
    """Part of a run that wrote a log."""

    SLURM = "slurm"
    """Batch script: Slurm's output file, or the launcher's own log."""
    HEAD = "head"
    DRIVER = "driver"
    WORKER = "worker"
    COMPANION = "companion"


class Source(NamedTuple):
    """Log and line of an event. A named tuple: one is made for each line that matters."""

    log: str
    """Name of the log: its path relative to the watched directory."""
    role: Role
    line: int
    """Counted from 1, by newlines only; 0 for no line."""
    offset: int = 0
    """Byte offset of the line's first byte."""


@dataclass(frozen=True, slots=True)
class MilestoneReached:
    """A milestone was reached."""

    id: str
    source: Source
    time: float | None = None
    """Seconds since the epoch; None where line, clock and time of reading are all unknown."""


class MetricRecorded(NamedTuple):
    """Value of a metric at a training step (of validation metrics: the step they were taken at)."""

    name: str
    step: int
    value: float
    source: Source
    time: float | None = None


class PlanSeen(NamedTuple):
    """Length of the training as the driver prints it; unknown parts are None."""

    source: Source
    steps_per_epoch: int | None = None
    epochs: int | None = None
    batch: int | None = None
    """Samples generated per step."""
    samples: int | None = None
    """Samples in the training set."""
    max_steps: int | None = None
    """Steps of the whole run, by the configuration that the log prints."""
    epoch: int | None = None
    """The epoch that begins."""
    epoch_step: int | None = None
    """The step within the epoch that begins."""
    resumed: int | None = None
    """Step of the checkpoint that was loaded."""


@dataclass(frozen=True, slots=True)
class StepBegan:
    """A training step began; `step` counts over the whole run, not within the epoch."""

    step: int
    source: Source
    time: float | None = None


class PhaseBegan(NamedTuple):
    """The driver began a phase of a step: a generation, a validation, a save, or another."""

    phase: str
    """Id of a phase in `PHASES`."""
    step: int
    source: Source
    time: float | None = None

    def in_words(self) -> str:
        """Return the activity in words."""
        return PHASES[self.phase].format(step=self.step)


@dataclass(frozen=True, slots=True)
class StoppedToSave:
    """The driver saved and stopped, so as not to be stopped by its time limit."""

    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessSignalled:
    """A process of the run reported the signal that ended it."""

    signal: str
    """`SIGTERM` …"""
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
    """Number of worker_units that have joined the Ray cluster."""

    online: int
    wanted: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class DriverEnded:
    """The driver's process ended; `code` as reported by the launcher."""

    code: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class LauncherEnded:
    """The launcher printed its last line."""

    code: int
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class FindingSeen:
    """A recognised failure or warning; `diagnosis.diagnose` chooses the cause among them."""

    id: str
    title: str
    severity: str
    """`fatal` or `warning`."""
    text: str
    """Its line, cleaned."""
    source: Source
    fix: str = ""
    node: str | None = None
    rank: int | None = None
    causes: tuple[str, ...] = ()
    root: bool = False
    time: float | None = None
    tier: int = 2
    """1 explains a failure, 2 explains one where there is no tier 1, 3 only reports one."""
    edits: tuple[SuggestedEdit, ...] = ()
    """Recipe changes that help."""
    stamp: float | None = None
    """Time in the line itself: wall-clock seconds without a zone, comparable within a run."""
    pid: int | None = None
    retried: bool = False
    """The process tries again: the finding counts until that succeeds."""
    confidence: str = ""
    """Of the root finding: `high`, `medium` or `low`."""
    task: int | None = None
    """Number that srun put before its line."""


@dataclass(frozen=True, slots=True)
class ExceptionSeen:
    """A traceback ended in an exception; of each process the first that is its own, and the first relayed.

    It comes again, with the same source, when later lines of its message explain it or name the process.
    """

    message: str
    source: Source
    began: int
    """Number of the traceback's first line."""
    own: bool
    """True if the owner of the log printed it, not a worker through Ray."""
    wrapper: bool
    """True if it only carries another process's error."""
    node: str | None = None
    rank: int | None = None
    pid: int | None = None
    stamp: float | None = None
    signature: str = ""
    """Id of the signature that recognises its line; empty where none does."""
    chained: bool = False
    """True if it followed from another exception of the same traceback."""
    detail: str = ""
    """Line of its message that explains, where the first one does not."""
    frame: str = ""
    """Where it was raised: file and line."""
    task: int | None = None
    """Number that srun put before its line."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A retried operation succeeded: earlier failures in this log do not count."""

    source: Source


@dataclass(frozen=True, slots=True)
class StartRetried:
    """The launcher starts a node's Ray again, which did not start in time."""

    node: str
    attempt: int
    """Number of the start that begins now; the first one is 1."""
    of: int
    """Starts at most."""
    text: str
    """Its line, cleaned."""
    source: Source
    time: float | None = None


@dataclass(frozen=True, slots=True)
class LogRestarted:
    """A log was truncated or replaced: earlier events from it belong to a previous run of its writer."""

    source: Source


@dataclass(frozen=True, slots=True)
class TrackerFound:
    """Files of a tracking tool were found."""

    kind: str
    """`tensorboard` or `wandb-offline`."""
    path: str


@dataclass(frozen=True, slots=True)
class TrackerDirFound:
    """The driver printed its directory for a tracking tool."""

    path: str
    """Absolute, or relative to the driver's working directory."""
    source: Source


@dataclass(frozen=True, slots=True)
class RootFindingChanged:
    """The finding taken for the cause changed; None where there is none (any more)."""

    root: FindingSeen | None
    before: FindingSeen | None


@dataclass(frozen=True, slots=True)
class NoticesChanged:
    """All present notices: what seems wrong now. They are in no log and may go away."""

    notices: tuple[FindingSeen, ...]


@dataclass(frozen=True, slots=True)
class LogChanged:
    """A log appeared, grew or shrank."""

    log: str
    role: Role
    bytes: int
    lines: int
    """Complete lines read so far."""
    problem: str = ""
    """Why the log cannot be read now; empty if it can."""
    time: float | None = None
    """Its modification time."""


@dataclass(frozen=True, slots=True)
class LostNode:
    """A node that went down under a job."""

    name: str
    since: float | None = None
    """When the scheduler marked it down, in seconds since the epoch."""
    reason: str = ""
    """The scheduler's own reason."""


@dataclass(frozen=True, slots=True)
class JobChanged:
    """The cluster's status of the run's job changed."""

    state: JobState
    reason: str = ""
    time: float | None = None
    over: bool = False
    """True if the job is over, but only the logs can say how it ended."""
    word: str = ""
    """The scheduler's own state: `TIMEOUT`, `NODE_FAIL` …"""
    job: str = ""
    """The scheduler's job id."""
    exit_code: str = ""
    """In Slurm's notation, `code:signal`."""
    nodes: str = ""
    """Nodes of the allocation, in Slurm's notation."""
    waits_for: str = ""
    """The scheduler's own reason why the job waits."""
    stuck: bool = False
    """Whether a waiting job does not start unless somebody does something."""
    fix: str = ""
    """What to change about a waiting job; empty where nothing need be done."""
    unavailable_nodes: str = ""
    """Nodes that a waiting job needs and cannot get, in Slurm's notation."""
    submitted: float | None = None
    began: float | None = None
    """When it got its nodes."""
    deadline: float | None = None
    """When its allocation ends."""
    starts: float | None = None
    """When the scheduler expects a waiting job to start."""
    unanswered: str = ""
    """Why the cluster does not answer, so that this is its last known status; empty if it does."""
    lost_nodes: tuple[LostNode, ...] = ()
    """Nodes of it that went down."""
    jobs: tuple[JobChanged, ...] = ()
    """Every job of the run that began, and the present one, in the order of their submission."""
    asked: float | None = field(default=None, compare=False)
    """When the scheduler gave this answer; a log that is newer knows more. None where it is new."""


def unanswered(last: JobChanged | None, problem: str) -> JobChanged:
    """Return the last known status with the reason why there is no answer now; nothing is taken back."""
    if last is None or (last.state is JobState.UNKNOWN and not last.over):
        return JobChanged(JobState.UNKNOWN, f"the cluster does not answer: {problem}", unanswered=problem)
    if last.state.ended or last.over:
        return last
    last_reason = f" ({last.reason})" if last.reason and not last.unanswered else ""
    reason = f"last known status{last_reason}; the cluster does not answer: {problem}"
    return replace(last, reason=reason, unanswered=problem)


Event = (
    MilestoneReached
    | MetricRecorded
    | PlanSeen
    | StepBegan
    | PhaseBegan
    | StoppedToSave
    | ProcessSignalled
    | CheckpointSaving
    | UnitsOnline
    | DriverEnded
    | LauncherEnded
    | FindingSeen
    | ExceptionSeen
    | Recovered
    | StartRetried
    | LogRestarted
    | TrackerFound
    | TrackerDirFound
    | RootFindingChanged
    | NoticesChanged
    | LogChanged
    | JobChanged
)
