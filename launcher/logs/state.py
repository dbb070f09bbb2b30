"""The state of a run: the one place where events become what people and scripts are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from launcher.logs.events import (
    MILESTONES,
    CheckpointSaving,
    DriverEnded,
    DriverTraceback,
    Event,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
    LogChanged,
    MetricRecorded,
    MilestoneKind,
    MilestoneReached,
    PlanSeen,
    Role,
    Source,
    StepBegan,
    UnitsOnline,
)

# Exit codes of a shell whose child was ended by SIGINT or SIGTERM.
INTERRUPTED = (130, 143)
_ROLE_ORDER = {role: place for place, role in enumerate(Role)}


@dataclass(slots=True)
class RunState:
    """Everything known of a run. Changed by `apply` alone, with the same result whichever log came first."""

    milestones: dict[str, MilestoneReached] = field(default_factory=dict)
    metrics: dict[str, dict[int, float]] = field(default_factory=dict)
    """Metric name -> step -> value."""
    findings: list[FindingSeen] = field(default_factory=list)
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
    job: JobChanged | None = None
    driver_ended: DriverEnded | None = None
    launcher_ended: LauncherEnded | None = None
    traceback: DriverTraceback | None = None

    def apply(self, event: Event) -> None:  # noqa: C901 - one branch per kind of event
        """Take one event into the state."""
        match event:
            case MilestoneReached():
                self._reach(event)
            case MetricRecorded():
                self.metrics.setdefault(event.name, {})[event.step] = event.value
            case StepBegan():
                self.current = event
                self._progressed(event.source)
            case LogChanged():
                self.logs[event.log] = event
            case FindingSeen():
                if event not in self.findings:
                    self.findings.append(event)
                    self.findings.sort(key=lambda item: _place(item.source))
            case PlanSeen():
                self._plan_seen(event)
            case CheckpointSaving():
                self.checkpoints[event.step] = event
            case UnitsOnline():
                self.units = event
            case DriverEnded():
                self.driver_ended = event
            case LauncherEnded():
                self.launcher_ended = event
            case DriverTraceback():
                self.traceback = event
            case JobChanged():
                self.job = event
            case _:
                assert_never(event)

    def _reach(self, event: MilestoneReached) -> None:
        known = self.milestones.get(event.id)
        if known is None or _place(event.source) <= _place(known.source):
            self.milestones[event.id] = event
        if event.source.role is Role.DRIVER:
            self._progressed(event.source)

    def _progressed(self, source: Source) -> None:
        """Forget a traceback that the driver went on after."""
        if (
            self.traceback is not None
            and source.log == self.traceback.source.log
            and source.line > self.traceback.source.line
        ):
            self.traceback = None

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
        return self._verdict[0]

    @property
    def reason(self) -> str:
        """Why it is in this state, in words; empty where that says nothing more."""
        return self._verdict[1]

    @property
    def _verdict(self) -> tuple[JobState, str]:
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
        if self.traceback is not None:
            return JobState.FAILED, self._failure_reason(self.traceback.message)
        if job is not None and job.over:
            return JobState.FAILED, self._failure_reason(job.reason)
        return self._live_state()

    def _ended_with(self, code: int) -> tuple[JobState, str]:
        if code == 0:
            return JobState.COMPLETED, ""
        if code in INTERRUPTED:
            return JobState.CANCELLED, "stopped by a signal"
        who = "driver" if self.driver_ended is not None else "launcher"
        return JobState.FAILED, self._failure_reason(f"the {who} exited with {code}")

    def _failure_reason(self, otherwise: str) -> str:
        fatal = next((item for item in self.findings if item.severity == "fatal"), None)
        if fatal is not None:
            return fatal.title
        return self.traceback.message if self.traceback is not None else otherwise

    def _live_state(self) -> tuple[JobState, str]:
        job_state = self.job.state if self.job is not None else JobState.UNKNOWN
        reason = self.job.reason if self.job is not None else "nothing says whether it still runs"
        if job_state in (JobState.STARTING, JobState.RUNNING):
            started = "setup-complete" in self.milestones or self.current is not None
            return (JobState.RUNNING if started else JobState.STARTING), reason
        return job_state, reason


def _place(source: Source) -> tuple[int, str, int]:
    return (_ROLE_ORDER[source.role], source.log, source.line)
