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
    StartRetried,
    StepBegan,
    StoppedToSave,
    TrackerDirFound,
    TrackerFound,
    UnitsOnline,
)
from launcher.logs.milestones import MILESTONES, MilestoneKind
from launcher.monitor.diagnosis import CANCELLED, Diagnosis, diagnose, is_failed_step, is_latent, source_order
from launcher.monitor.ending import RESUME_HINT, AttemptStatus, RunProgress, RunStatus
from launcher.monitor.lost_node import lost_node_findings
from launcher.monitor.open_evidence import OpenEvidence, retry_finding
from launcher.monitor.progress import phase_with_usual_time
from launcher.monitor.run_status import INTERRUPTED, SILENT, RunEvidence, is_settled, run_status

# What a head or a launcher failed at before these was tried again, and succeeded.
_STARTED = frozenset({(Role.HEAD, "head-up"), (Role.SLURM, "workers-connected")})
# Milestones of training; the others belong to the set-up.
_LAST_LINES = 25
"""Lines at the end of a log in which an error may be the reason that nothing follows."""
_LAST_WORDS = 3
"""The same for a warning."""
_TRAINING = frozenset({"first-step", "first-validation", "first-checkpoint", "completed"})


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
    _evidence_of_logs: OpenEvidence = field(default_factory=OpenEvidence)
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
            case FindingSeen() | ExceptionSeen() | Recovered() | StartRetried():
                self._apply_evidence(event)
            case NoticesChanged():
                self.notices = event.notices
            case RootFindingChanged():  # made from this state
                pass
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
                self._evidence_of_logs.note_progress(event.source)
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

    def _apply_evidence(self, event: FindingSeen | ExceptionSeen | Recovered | StartRetried) -> None:
        evidence = self._evidence_of_logs
        match event:
            case FindingSeen():
                evidence.add_finding(event)
            case ExceptionSeen():
                evidence.add_exception(event)
            case StartRetried():
                evidence.add_retry(event)
            case Recovered():
                if event.source.role is Role.WORKER:
                    self.joined.add(event.source.log)
                if event.source.role is Role.DRIVER:
                    evidence.note_recovery(event.source)
                else:
                    evidence.note_progress(event.source)

    def _apply_job(
        self,
        event: UnitsOnline | DriverEnded | LauncherEnded | JobChanged | StoppedToSave | ProcessSignalled,
    ) -> None:
        match event:
            case StoppedToSave():
                self.stopped_to_save = event
                self._evidence_of_logs.note_progress(event.source)
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
                # Its milestones and metrics are overwritten.
                self._evidence_of_logs.drop_log(event.source.log)
                self.joined.discard(event.source.log)
            case TrackerFound():
                self.trackers[event.path] = event.kind
            case TrackerDirFound():
                self.tracked.add(event.path)

    def _add_milestone(self, event: MilestoneReached) -> None:
        present = self.milestones.get(event.id)
        if present is None or source_order(event.source) <= source_order(present.source):
            self.milestones[event.id] = event
        evidence = self._evidence_of_logs
        if (event.source.role, event.id) in _STARTED or event.id in _TRAINING:
            evidence.note_progress(event.source)
        elif event.source.role is Role.DRIVER and event.id != "driver-started":
            evidence.note_recovery(event.source)

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
            retry = self._open_retry
            retrying = retry is not None
            evidence = self._evidence_of_logs
            retries = [retry_finding(retry)] if retry is not None else []
            self._diagnosis = diagnose(
                [*evidence.findings(retrying=retrying), *lost, *retries],
                evidence.exceptions(retrying=retrying),
                # The scheduler's own word for the same failure names no node.
                job=replace(self.job, word="") if self.job is not None and lost else self.job,
                failed=failed or self._job_is(JobState.FAILED),
                completed=completed,
                stopped=self._job_is(JobState.CANCELLED) or (ended is not None and ended.code in INTERRUPTED),
                silent_after=self._last_words() if self.job is not None and self.job.reason == SILENT else (),
            )
        return self._diagnosis

    @property
    def last_errors(self) -> tuple[ExceptionSeen, ...]:
        """Exceptions of workers near the end of their logs, after which nothing shows the run going on."""
        return tuple(
            item
            for item in self._evidence_of_logs.exceptions()
            if not item.own and self._is_last(item.source, _LAST_LINES)
        )

    def _last_words(self) -> tuple[ExceptionSeen | FindingSeen, ...]:
        """Return the last errors, and what warns of a failure in the very last lines of a log."""
        warnings = (
            item
            for item in self._evidence_of_logs.findings()
            if is_latent(item) and self._is_last(item.source, _LAST_WORDS)
        )
        return (*self.last_errors, *warnings)

    def _is_last(self, source: Source, lines: int) -> bool:
        """Return True for one of the last lines of a log, after which nothing shows the run going on."""
        return source.line > self._lines_of(source.log) - lines and not self._went_on(source)

    def _went_on(self, source: Source) -> bool:
        """Return True if the driver began another phase after a line of its log."""
        phase = self.phase
        return phase is not None and phase.source.log == source.log and phase.source.line > source.line

    def _lines_of(self, log: str) -> int:
        return self.logs[log].lines if log in self.logs else 0

    @property
    def _open_retry(self) -> StartRetried | None:
        """The start of Ray that is being tried again; None after it succeeded, or the run ended."""
        retry = self._evidence_of_logs.retry
        ended = self.driver_ended or self.launcher_ended or (self.job is not None and self.job.over)
        if retry is None or ended or self._evidence_of_logs.went_on_after(retry.source):
            return None
        return None if self.job is not None and self.job.state.ended else retry

    def _job_is(self, state: JobState) -> bool:
        return self.job is not None and self.job.state is state

    @property
    def findings(self) -> list[FindingSeen]:
        """Open findings: the cause first, then its consequences, then warnings and notices."""
        notices = self.notices
        if self.state.ended:  # a run that ended is not stuck; that no log can be read stays true
            notices = tuple(item for item in notices if not item.id.startswith("stuck-"))
        return [*self.diagnosis.findings, *notices]

    @property
    def traceback(self) -> ExceptionSeen | None:
        """Exception that reached the driver's top level, unless the driver went on after it."""
        items = self._evidence_of_logs.exceptions()
        reached = [item for item in items if item.own and item.source.role is Role.DRIVER]
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
            step_failed=any(map(is_failed_step, self._evidence_of_logs.findings())),
            cancelled=next((item.text for item in self.diagnosis.findings if item.id == CANCELLED), ""),
            launcher_raised=self._evidence_of_logs.launcher_raised,
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
        return None if one is None or self._evidence_of_logs.went_on_after(one.source) else one
