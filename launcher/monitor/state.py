"""State of a run, made from its events: what the app displays and the commands print."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from launcher.logs.events import (
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
    MilestoneReached,
    NoticesChanged,
    PhaseBegan,
    PlanSeen,
    ProcessSignalled,
    Recovered,
    Role,
    RootFindingChanged,
    Source,
    StepBegan,
    StoppedToSave,
    TrackerDirFound,
    TrackerFound,
    UnitsOnline,
)
from launcher.logs.milestones import MILESTONES, MilestoneKind
from launcher.monitor.diagnosis import Diagnosis, diagnose, source_order
from launcher.monitor.ending import RESUME_HINT, AttemptStatus, RunProgress, RunStatus
from launcher.monitor.lost_node import lost_node_findings
from launcher.monitor.progress import phase_with_usual_time
from launcher.monitor.run_status import INTERRUPTED, RunEvidence, is_settled, run_status

# Milestones of training; the others belong to the set-up.
_TRAINING = frozenset({"first-step", "first-validation", "first-checkpoint", "completed"})
_PROCESSES_LIMIT = 1024
"""Processes of which a finding is kept, for each kind and log: all of them may print it."""
FindingKey = tuple[str, str, str | None, int | None, int | None]
"""Log, id, node, rank, pid."""
_EARLIER_S = 1.0
"""A later line of the same finding is the first one if its own time is earlier by more than this."""


@dataclass(slots=True)
class RunState:
    """State of a run. Changed by `apply` alone, with the same result in whatever order the logs are read."""

    milestones: dict[str, MilestoneReached] = field(default_factory=dict)
    metrics: dict[str, dict[int, float]] = field(default_factory=dict)
    """Metric name -> step -> value."""
    logs: dict[str, LogChanged] = field(default_factory=dict)
    checkpoints: dict[int, CheckpointSaving] = field(default_factory=dict)
    plan_max_steps: int | None = None
    """Steps of the whole run by its recipe; None where the recipe is unknown."""
    steps_per_epoch: int | None = None
    epochs: int | None = None
    batch: int | None = None
    samples: int | None = None
    epoch: int | None = None
    epoch_step: int | None = None
    resumed: int | None = None
    """Step of the checkpoint that was loaded."""
    current: StepBegan | None = None
    phase: PhaseBegan | None = None
    """The driver's latest phase."""
    stopped_to_save: StoppedToSave | None = None
    signalled: ProcessSignalled | None = None
    resume_hint: str = RESUME_HINT
    """How the run is resumed, in words."""
    units: UnitsOnline | None = None
    units_since: float | None = None
    """When the present number of units was first reported."""
    joined: set[str] = field(default_factory=set)
    """Logs of heads and workers whose Ray has started."""
    notices: tuple[FindingSeen, ...] = ()
    """Warnings about what seems wrong now (`stuck.py`)."""
    job: JobChanged | None = None
    driver_ended: DriverEnded | None = None
    launcher_ended: LauncherEnded | None = None
    trackers: dict[str, str] = field(default_factory=dict)
    """Path -> kind of tracking files."""
    tracked: set[str] = field(default_factory=set)
    """Directories that the driver printed for such files; they may be out of reach from here."""
    deadline: float | None = None
    """When the allocation ends, in seconds since the epoch; None where unknown."""
    _findings: dict[FindingKey, FindingSeen] = field(default_factory=dict)
    """Its first occurrence in each log and process."""
    _kinds: dict[tuple[str, str], int] = field(default_factory=dict)
    """(log, id) -> processes of which it is kept."""
    _exceptions: list[ExceptionSeen] = field(default_factory=list)
    _last_progress: dict[str, int] = field(default_factory=dict)
    """Log -> last line that shows its owner going on; failures before it were not the end."""
    _last_recovery: dict[str, int] = field(default_factory=dict)
    """Log -> last line that shows that what is retried succeeded."""
    _diagnosis: Diagnosis | None = None

    def apply(self, event: Event) -> None:
        """Apply an event to the state."""
        self._diagnosis = None
        match event:
            case (
                MilestoneReached()
                | MetricRecorded()
                | PlanSeen()
                | StepBegan()
                | PhaseBegan()
                | CheckpointSaving()
            ):
                self._apply_progress(event)
            case FindingSeen() | ExceptionSeen() | Recovered() | NoticesChanged() | RootFindingChanged():
                self._apply_evidence(event)
            case (
                UnitsOnline()
                | DriverEnded()
                | LauncherEnded()
                | JobChanged()
                | StoppedToSave()
                | ProcessSignalled()
            ):
                self._apply_job(event)
            case LogChanged() | LogRestarted() | TrackerFound() | TrackerDirFound():
                self._apply_files(event)
            case _:
                assert_never(event)

    def _apply_progress(
        self, event: MilestoneReached | MetricRecorded | PlanSeen | StepBegan | PhaseBegan | CheckpointSaving
    ) -> None:
        match event:
            case MilestoneReached():
                self._add_milestone(event)
            case MetricRecorded():
                self.metrics.setdefault(event.name, {})[event.step] = event.value
            case PlanSeen():
                self._apply_plan(event)
            case StepBegan():
                self.current = event
                _advance(self._last_progress, event.source)
            case PhaseBegan():
                self.phase = event
            case CheckpointSaving():
                self.checkpoints[event.step] = event

    def _apply_plan(self, event: PlanSeen) -> None:
        self.steps_per_epoch = event.steps_per_epoch or self.steps_per_epoch
        self.epochs = event.epochs or self.epochs
        self.batch = event.batch or self.batch
        self.samples = event.samples or self.samples
        self.epoch = event.epoch or self.epoch
        self.resumed = event.resumed or self.resumed
        if event.epoch is not None:
            self.epoch_step = None
        self.epoch_step = event.epoch_step or self.epoch_step
        if self.plan_max_steps is None:
            self.plan_max_steps = event.max_steps

    def _apply_evidence(
        self, event: FindingSeen | ExceptionSeen | Recovered | NoticesChanged | RootFindingChanged
    ) -> None:
        match event:
            case FindingSeen():
                self._add_finding(event)
            case ExceptionSeen():
                # It comes again when later lines say more about it.
                self._exceptions = [item for item in self._exceptions if item.source != event.source]
                self._exceptions.append(event)
            case Recovered():
                if event.source.role is Role.WORKER:
                    self.joined.add(event.source.log)
                of_driver = event.source.role is Role.DRIVER
                _advance(self._last_recovery if of_driver else self._last_progress, event.source)
            case NoticesChanged():
                self.notices = event.notices
            case RootFindingChanged():  # made from this state
                pass

    def _apply_job(
        self,
        event: UnitsOnline | DriverEnded | LauncherEnded | JobChanged | StoppedToSave | ProcessSignalled,
    ) -> None:
        match event:
            case StoppedToSave():
                self.stopped_to_save = event
                _advance(self._last_progress, event.source)
            case ProcessSignalled():
                self.signalled = event
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

    def _apply_files(self, event: LogChanged | LogRestarted | TrackerFound | TrackerDirFound) -> None:
        match event:
            case LogChanged():
                self.logs[event.log] = event
            case LogRestarted():
                self._drop_evidence(event.source.log)
            case TrackerFound():
                self.trackers[event.path] = event.kind
            case TrackerDirFound():
                self.tracked.add(event.path)

    def _add_milestone(self, event: MilestoneReached) -> None:
        present = self.milestones.get(event.id)
        if present is None or source_order(event.source) <= source_order(present.source):
            self.milestones[event.id] = event
        if (event.source.role is Role.HEAD and event.id == "head-up") or event.id in _TRAINING:
            _advance(self._last_progress, event.source)
        elif event.source.role is Role.DRIVER and event.id != "driver-started":
            _advance(self._last_recovery, event.source)

    def _drop_evidence(self, log: str) -> None:
        """Drop the evidence of a log that restarted; its milestones and metrics are overwritten."""
        self._findings = {key: item for key, item in self._findings.items() if key[0] != log}
        self._kinds = {kind: count for kind, count in self._kinds.items() if kind[0] != log}
        self._exceptions = [item for item in self._exceptions if item.source.log != log]
        self._last_progress.pop(log, None)
        self._last_recovery.pop(log, None)
        self.joined.discard(log)

    def _add_finding(self, event: FindingSeen) -> None:
        nameless = self._findings.get((event.source.log, event.id, None, None, None))
        if (
            nameless is not None
            and nameless.node is None
            and event.node is not None
            and 0 <= event.source.line - nameless.source.line <= 3  # the next lines tell where it happened
        ):
            named = replace(nameless, node=event.node, rank=event.rank, pid=event.pid)
            self._findings[nameless.source.log, nameless.id, None, None, None] = named
            return
        key = (event.source.log, event.id, event.node, event.rank, event.pid)
        first = self._findings.get(key)
        if first is None:
            kind = (event.source.log, event.id)
            if self._kinds.get(kind, 0) >= _PROCESSES_LIMIT:
                return
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if first is None or not self._is_open(first) or _is_earlier(event, first):
            self._findings[key] = event

    def _is_open(self, item: FindingSeen) -> bool:
        """Return True unless a later line of its log shows that it was overcome."""
        log, line = item.source.log, item.source.line
        if line <= self._last_progress.get(log, 0) and item.severity == "fatal":
            return False
        return not (item.retried and line <= self._last_recovery.get(log, 0))

    @property
    def diagnosis(self) -> Diagnosis:
        """Findings, the cause first."""
        if self._diagnosis is None:
            ended = self.driver_ended or self.launcher_ended
            failed = ended is not None and ended.code != 0
            said = "completed" in self.milestones or self.stopped_to_save is not None
            completed = (ended is not None and ended.code == 0) or (
                ended is None and (said or self._job_is(JobState.COMPLETED))
            )
            lost = lost_node_findings(self.job, self.units)
            self._diagnosis = diagnose(
                [*filter(self._is_open, self._findings.values()), *lost],
                self._open_exceptions(),
                # The scheduler's own word for the same failure names no node.
                job=replace(self.job, word="") if self.job is not None and lost else self.job,
                failed=failed or self._job_is(JobState.FAILED),
                completed=completed,
                stopped=self._job_is(JobState.CANCELLED) or (ended is not None and ended.code in INTERRUPTED),
            )
        return self._diagnosis

    def _job_is(self, state: JobState) -> bool:
        return self.job is not None and self.job.state is state

    @property
    def findings(self) -> list[FindingSeen]:
        """Open findings: the cause first, then its consequences, then warnings and notices."""
        notices = self.notices
        if self.state.ended:  # a run that ended is not stuck; that no log can be read stays true
            notices = tuple(item for item in notices if not item.id.startswith("stuck-"))
        return [*self.diagnosis.findings, *notices]

    def _open_exceptions(self) -> list[ExceptionSeen]:
        return [
            item
            for item in self._exceptions
            if item.source.line > self._last_progress.get(item.source.log, 0)
        ]

    @property
    def traceback(self) -> ExceptionSeen | None:
        """Exception that reached the driver's top level, unless the driver went on after it."""
        reached = [item for item in self._open_exceptions() if item.own and item.source.role is Role.DRIVER]
        inner = [item for item in reached if not item.wrapper]
        return min(inner or reached, key=lambda item: source_order(item.source), default=None)

    @property
    def step(self) -> int:
        """Finished steps of the whole run."""
        return max(self.metrics.get("loss", {0: 0.0}))

    @property
    def max_steps(self) -> int | None:
        """Maximum number of steps; from the recipe, else derived from what the driver printed.

        The banner's count is the smaller of the steps in an epoch and the steps of the run
        (nemo_rl/algorithms/distillation.py); it is the epoch's where it equals samples / batch.
        """
        if self.plan_max_steps is not None:
            return self.plan_max_steps
        if "completed" in self.milestones and self.step:
            return self.step
        if self.steps_per_epoch is None:
            return None
        epochs = (self.epochs or 1) if self._is_bounded_by_data else 1
        return max(self.step, self.steps_per_epoch * epochs)

    @property
    def _is_bounded_by_data(self) -> bool:
        """True if an epoch ends with its data, not with the steps of the run."""
        return bool(self.samples and self.batch and self.samples // self.batch == self.steps_per_epoch)

    @property
    def awaited(self) -> MilestoneKind | None:
        """Next milestone that is not reached; None after the last, and for a run that ended."""
        reached = [index for index, kind in enumerate(MILESTONES) if kind.id in self.milestones]
        following = MILESTONES[max(reached, default=-1) + 1 :]
        return following[0] if following and not self.state.ended else None

    @property
    def status(self) -> RunStatus:
        """State of the run with its reason."""
        return run_status(self._evidence())

    @property
    def state(self) -> JobState:
        """State of the run."""
        return self.status.state

    @property
    def reason(self) -> str:
        """Reason of the state, in words; empty where there is nothing to add."""
        return self.status.reason

    @property
    def attempts(self) -> tuple[AttemptStatus, ...]:
        """Attempts of the run in order, where it can have several."""
        return ()

    @property
    def settled(self) -> bool:
        """True if the run has ended and neither its state nor its cause will change."""
        return is_settled(self.status, self.job)

    def _evidence(self) -> RunEvidence:
        return RunEvidence(
            job=self.job,
            driver_ended=self.driver_ended,
            launcher_ended=self.launcher_ended,
            progress=self._progress(),
            signalled=self._open_signal(),
            training="setup-complete" in self.milestones or self.current is not None,
            root=self.diagnosis.root,
            traceback=self.traceback,
            activity=phase_with_usual_time(self.phase, self.metrics),
        )

    @property
    def activity(self) -> str:
        """The driver's latest phase of training, in words; empty before the first."""
        return self.phase.in_words() if self.phase is not None else ""

    def _progress(self) -> RunProgress:
        return RunProgress(
            step=self.step,
            max_steps=self.plan_max_steps if self.plan_max_steps is not None else self.max_steps,
            epoch=self.epoch,
            epochs=self.epochs,
            epoch_step=self.epoch_step,
            steps_per_epoch=self.steps_per_epoch,
            resumed=self.resumed,
            current=self.current.step if self.current is not None else None,
            samples=self.samples,
            bounded_by_data=self._is_bounded_by_data,
            set_up="setup-complete" in self.milestones,
            said_completed="completed" in self.milestones,
            said_saved=self.stopped_to_save is not None,
            resume_hint=self.resume_hint,
        )

    def _open_signal(self) -> ProcessSignalled | None:
        """Return the signal that ended the driver, unless its log goes on after it."""
        one = self.signalled
        if one is None or one.source.line <= self._last_progress.get(one.source.log, 0):
            return None
        return one


def _advance(lines: dict[str, int], source: Source) -> None:
    lines[source.log] = max(lines.get(source.log, 0), source.line)


def _is_earlier(one: FindingSeen, other: FindingSeen) -> bool:
    if one.stamp is not None and other.stamp is not None and abs(one.stamp - other.stamp) > _EARLIER_S:
        return one.stamp < other.stamp
    return one.source.line < other.source.line
