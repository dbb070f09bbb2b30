"""The state of a run: the one place where events become what people and scripts are told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from launcher.logs.events import (
    MILESTONES,
    CheckpointSaving,
    DriverEnded,
    Event,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
    LogChanged,
    LogRestarted,
    MetricRecorded,
    MilestoneKind,
    MilestoneReached,
    NoticesChanged,
    PlanSeen,
    Recovered,
    Role,
    RootFindingChanged,
    Source,
    StepBegan,
    TrackerDirFound,
    TrackerFound,
    UnitsOnline,
)
from launcher.logs.lines import Segment
from launcher.monitor.diagnosis import UNKNOWN, Diagnosis, diagnose, is_interrupt, place

# Exit codes of a shell whose child was ended by SIGINT or SIGTERM.
INTERRUPTED = (130, 143)
# What a driver reaches only after everything before it went well; the others are steps of its set-up.
_TRAINING = frozenset({"first-step", "first-validation", "first-checkpoint", "completed"})
# What Ray's processes say of each other when all of them are being stopped.
_FOLLOWS_A_STOP = frozenset({"ray-gcs", "ray-register", "ray-node-dead", UNKNOWN})
_EARLIER_S = 1.0
"""So much earlier must a later line of the same finding have happened, by its own words, to be the first."""
_REASON_LIMIT = 100


@dataclass(slots=True)
class RunState:
    """Everything known of a run. Changed by `apply` alone, with the same result whichever log came first."""

    milestones: dict[str, MilestoneReached] = field(default_factory=dict)
    metrics: dict[str, dict[int, float]] = field(default_factory=dict)
    """Metric name -> step -> value."""
    logs: dict[str, LogChanged] = field(default_factory=dict)
    checkpoints: dict[int, CheckpointSaving] = field(default_factory=dict)
    plan_max_steps: int | None = None
    """Steps of the whole run as its recipe says, where the recipe is known."""
    steps_per_epoch: int | None = None
    epochs: int | None = None
    batch: int | None = None
    samples: int | None = None
    current: StepBegan | None = None
    units: UnitsOnline | None = None
    units_since: float | None = None
    """When so many of them had joined for the first time."""
    joined: set[str] = field(default_factory=set)
    """Logs of heads and workers whose Ray has started."""
    notices: tuple[FindingSeen, ...] = ()
    """What seems to be wrong at this moment."""
    job: JobChanged | None = None
    driver_ended: DriverEnded | None = None
    launcher_ended: LauncherEnded | None = None
    trackers: dict[str, str] = field(default_factory=dict)
    """Path -> kind of what the driver also writes for."""
    tracked: set[str] = field(default_factory=set)
    """Directories that the driver named for such files; they may be out of reach from here."""
    deadline: float | None = None
    """When the allocation ends, in seconds since the epoch, where that is known."""
    _seen: dict[tuple[str, str], FindingSeen] = field(default_factory=dict)
    """Log and id -> its first occurrence."""
    _exceptions: list[ExceptionSeen] = field(default_factory=list)
    _trained: dict[str, int] = field(default_factory=dict)
    """Log -> the last line that shows its owner going on; what failed before it was not the end."""
    _set_up: dict[str, int] = field(default_factory=dict)
    """Log -> the last line that shows that what is retried succeeded."""
    _diagnosis: Diagnosis | None = None

    def apply(self, event: Event) -> None:  # noqa: C901 - one branch per kind of event
        """Take one event into the state."""
        self._diagnosis = None
        match event:
            case MilestoneReached():
                self._reach(event)
            case MetricRecorded():
                self.metrics.setdefault(event.name, {})[event.step] = event.value
            case StepBegan():
                self.current = event
                _mark(self._trained, event.source)
            case LogChanged():
                self.logs[event.log] = event
            case FindingSeen():
                self._find(event)
            case ExceptionSeen():
                if event not in self._exceptions:
                    self._exceptions.append(event)
            case Recovered():
                if event.source.role is Role.WORKER:
                    self.joined.add(event.source.log)
                later = self._trained if event.source.role is not Role.DRIVER else self._set_up
                _mark(later, event.source)
            case LogRestarted():
                self._forget(event.source.log)
            case TrackerFound():
                self.trackers[event.path] = event.kind
            case TrackerDirFound():
                self.tracked.add(event.path)
            case RootFindingChanged():
                pass
            case NoticesChanged():
                self.notices = event.notices
            case PlanSeen():
                self._plan_seen(event)
            case CheckpointSaving():
                self.checkpoints[event.step] = event
            case UnitsOnline():
                if self.units is None or self.units.online != event.online:
                    self.units_since = event.time
                self.units = event
            case DriverEnded():
                self.driver_ended = event
            case LauncherEnded():
                self.launcher_ended = event
            case JobChanged():
                self.job = event
                self.deadline = event.deadline
            case _:
                assert_never(event)

    def _reach(self, event: MilestoneReached) -> None:
        known = self.milestones.get(event.id)
        if known is None or place(event.source) <= place(known.source):
            self.milestones[event.id] = event
        if (event.source.role is Role.HEAD and event.id == "head-up") or event.id in _TRAINING:
            _mark(self._trained, event.source)
        elif event.source.role is Role.DRIVER and event.id != "driver-started":
            _mark(self._set_up, event.source)

    def _forget(self, log: str) -> None:
        """Drop the evidence of a log that began anew; its milestones and metrics are written over."""
        self._seen = {key: item for key, item in self._seen.items() if key[0] != log}
        self._exceptions = [item for item in self._exceptions if item.source.log != log]
        self._trained.pop(log, None)
        self._set_up.pop(log, None)
        self.joined.discard(log)

    def _find(self, event: FindingSeen) -> None:
        key = (event.source.log, event.id)
        known = self._seen.get(key)
        if known is None or not self._counts(known) or _is_earlier(event, known):
            self._seen[key] = event
        elif known.node is None and event.node is not None and event.source.line - known.source.line <= 3:
            self._seen[key] = replace(known, node=event.node, rank=event.rank, pid=event.pid)

    def _counts(self, item: FindingSeen) -> bool:
        """Tell whether nothing after it shows that it was overcome."""
        log, line = item.source.log, item.source.line
        if line <= self._trained.get(log, 0) and item.severity == "fatal":
            return False
        return not (item.retried and line <= self._set_up.get(log, 0))

    @property
    def diagnosis(self) -> Diagnosis:
        """What went wrong, the cause first."""
        if self._diagnosis is None:
            ended = self.driver_ended or self.launcher_ended
            failed = ended is not None and ended.code != 0
            completed = (ended is not None and ended.code == 0) or (
                ended is None and ("completed" in self.milestones or self._job_is(JobState.COMPLETED))
            )
            self._diagnosis = diagnose(
                filter(self._counts, self._seen.values()),
                self._standing_exceptions(),
                job=self.job,
                failed=failed or self._job_is(JobState.FAILED),
                completed=completed,
                stopped=self._job_is(JobState.CANCELLED) or (ended is not None and ended.code in INTERRUPTED),
            )
        return self._diagnosis

    def _job_is(self, state: JobState) -> bool:
        return self.job is not None and self.job.state is state

    @property
    def findings(self) -> list[FindingSeen]:
        """The findings that stand: the cause first, then its consequences, then warnings and notices."""
        notices = self.notices
        if self.state.ended:  # nothing is stuck any more; that no log can be read stays true
            notices = tuple(item for item in notices if not item.id.startswith("stuck-"))
        return [*self.diagnosis.findings, *notices]

    def _standing_exceptions(self) -> list[ExceptionSeen]:
        return [item for item in self._exceptions if item.source.line > self._trained.get(item.source.log, 0)]

    @property
    def traceback(self) -> ExceptionSeen | None:
        """The exception that reached the driver's top level, unless the driver went on after it."""
        reached = [
            item for item in self._standing_exceptions() if item.own and item.source.role is Role.DRIVER
        ]
        inner = [item for item in reached if not item.wrapper]
        return min(inner or reached, key=lambda item: place(item.source), default=None)

    def _plan_seen(self, event: PlanSeen) -> None:
        self.steps_per_epoch = event.steps_per_epoch or self.steps_per_epoch
        self.epochs = event.epochs or self.epochs
        self.batch = event.batch or self.batch
        self.samples = event.samples or self.samples

    @property
    def step(self) -> int:
        """Steps of the whole run that are done."""
        return max(self.metrics.get("loss", {0: 0.0}))

    @property
    def max_steps(self) -> int | None:
        """Steps the run will do at most; from the recipe, else worked out from what the driver printed.

        The banner's count is the smaller of the steps in an epoch and the steps of the run
        (nemo_rl/algorithms/distillation.py); it is the epoch's where it equals samples / batch.
        """
        if self.plan_max_steps is not None:
            return self.plan_max_steps
        if "completed" in self.milestones and self.step:
            return self.step
        if self.steps_per_epoch is None:
            return None
        bounded_by_data = bool(
            self.samples and self.batch and self.samples // self.batch == self.steps_per_epoch
        )
        return max(
            self.step, self.steps_per_epoch * (self.epochs or 1) if bounded_by_data else self.steps_per_epoch
        )

    @property
    def awaited(self) -> MilestoneKind | None:
        """The next milestone of the run's way that is not reached."""
        reached = [place for place, kind in enumerate(MILESTONES) if kind.id in self.milestones]
        following = MILESTONES[max(reached, default=-1) + 1 :]
        return following[0] if following and not self.state.ended else None

    @property
    def state(self) -> JobState:
        """What the run is doing."""
        return self._judge()[0]

    @property
    def settled(self) -> bool:
        """Whether it has ended and all is told: of a failure, the scheduler may know the cause."""
        if self.state is not JobState.FAILED or self.job is None or not self.job.word:
            return self.state.ended
        return self.job.state.ended or self.job.over

    @property
    def reason(self) -> str:
        """Why it is in this state, in words; empty where that says nothing more."""
        return self._judge()[1]

    def _judge(self) -> tuple[JobState, str]:
        job = self.job
        ended = self.driver_ended or self.launcher_ended
        if job is not None and job.state is JobState.CANCELLED and not (ended and ended.code == 0):
            return job.state, job.reason
        if ended is not None:
            return self._ended_with(ended.code)
        if job is not None and job.state.ended:
            return job.state, self._failure_reason(job.reason) if job.state is JobState.FAILED else job.reason
        if "completed" in self.milestones:
            return JobState.COMPLETED, ""
        if self.traceback is not None and is_interrupt(self.traceback):
            return JobState.CANCELLED, "interrupted"
        if self.traceback is not None:
            return JobState.FAILED, self._failure_reason(self.traceback.message)
        if job is not None and job.over:
            return JobState.FAILED, self._failure_reason(job.reason)
        return self._live_state()

    def _ended_with(self, code: int) -> tuple[JobState, str]:
        if code == 0:
            return JobState.COMPLETED, ""
        root = self.diagnosis.root
        if code in INTERRUPTED and (root is None or root.id in _FOLLOWS_A_STOP):
            return JobState.CANCELLED, "stopped by a signal"
        who = "driver" if self.driver_ended is not None else "launcher"
        return JobState.FAILED, self._failure_reason(f"the {who} exited with {code}")

    def _failure_reason(self, otherwise: str) -> str:
        root = self.diagnosis.root
        if root is not None:
            return _in_few_words(root)
        return self.traceback.message if self.traceback is not None else otherwise

    def _live_state(self) -> tuple[JobState, str]:
        job_state = self.job.state if self.job is not None else JobState.UNKNOWN
        reason = self.job.reason if self.job is not None else "nothing says whether it still runs"
        if job_state in (JobState.STARTING, JobState.RUNNING):
            started = "setup-complete" in self.milestones or self.current is not None
            return (JobState.RUNNING if started else JobState.STARTING), reason
        root = self.diagnosis.root
        if job_state is JobState.UNKNOWN and root is not None and root.tier < 3:
            return JobState.FAILED, _in_few_words(root)
        return job_state, reason


def _mark(lines: dict[str, int], source: Source) -> None:
    lines[source.log] = max(lines.get(source.log, 0), source.line)


def _is_earlier(one: FindingSeen, other: FindingSeen) -> bool:
    if one.stamp is not None and other.stamp is not None and abs(one.stamp - other.stamp) > _EARLIER_S:
        return one.stamp < other.stamp
    return one.source.line < other.source.line


def _in_few_words(root: FindingSeen) -> str:
    """Return a cause as a line: its title, and what the log says."""
    said = Segment(root.text).body.strip()
    if root.id != UNKNOWN:
        said = said.partition(". ")[0]
    said = said if len(said) <= _REASON_LIMIT else f"{said[: _REASON_LIMIT - 1]}…"
    if root.id == UNKNOWN:
        return said
    return root.title if root.title in said else f"{root.title}: {said}"
