"""Rows of the list of runs, jobs and drafts, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.logs.job_state import JobState
from launcher.text import clean

if TYPE_CHECKING:
    from launcher.clusters.job_list import ListedJob
    from launcher.runs import Damaged, Run

MAX_LOSSES = 64
"""Values of the loss that a row keeps for its curve."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of this program, a job that something else submitted, or a draft."""

    id: str
    name: str
    directory: str
    """Empty for a job of another program, and for a draft."""
    state: JobState | None = None
    """None while its logs are being read, for a damaged run and for a draft."""
    damaged: str = ""
    reason: str = ""
    step: int = 0
    max_steps: int | None = None
    checkpoint: int | None = None
    losses: tuple[float, ...] = ()
    started: float | None = None
    ended: float | None = None
    detail: str = ""
    recipe: str = ""
    """Path of the recipe as it was given."""
    student: str = ""
    teacher: str = ""
    nodes: int | None = None
    partition: str = ""
    job: str = ""
    """The scheduler's id of its latest job; empty on a machine without one."""
    jobs: tuple[str, ...] = ()
    """Ids of all of its jobs, such as the links of a chain."""
    step_s: float | None = None
    """Median of the last steps, in seconds."""
    deadline: float | None = None
    """End of its time limit, in seconds since the epoch; None where it has none, or has ended."""
    expected: float | None = None
    """Expected start of a job that waits."""
    durations: tuple[tuple[str, float], ...] = ()
    """Milestone -> seconds since the one before it, as pairs; `step` -> median seconds of a step."""
    bytes: int | None = None
    """Size on disk of the run's directory; None: not counted yet."""
    as_of: float | None = None
    """Time of the state where the scheduler gives no answer; None while it answers."""
    peak_gib: float | None = None
    """Largest memory in use on one of its GPUs; None where it was not recorded."""
    estimated_gib: float | None = None
    """What the largest phase was estimated to need on a GPU before the run was submitted."""
    draft: str = ""
    """File of a draft: of unsaved edits of `recipe`, or, without one, of a run that is being prepared."""
    host: str = ""
    """Name of the host that has it, as the user gives it; empty for this machine."""

    @property
    def key(self) -> str:
        """What tells rows apart, and stays."""
        key = self.directory or self.draft or f"job {self.job}"
        return f"{self.host}:{key}" if self.host else key

    @property
    def state_word(self) -> str:
        """The state in a word; of a row without one, what it is."""
        if self.state is not None:
            return self.state.value
        return "damaged" if self.damaged else "draft" if self.draft else "reading"

    @property
    def is_run(self) -> bool:
        """Whether it is a run of this program that can be read."""
        return bool(self.directory) and not self.damaged

    @property
    def is_job(self) -> bool:
        """Whether it is a job that something else submitted."""
        return bool(self.job) and not self.directory

    @property
    def has_ended(self) -> bool:
        """Whether it is known to have ended."""
        return self.state is not None and self.state.ended

    @property
    def removable(self) -> bool:
        """Whether it can be removed from the list: a run that has ended, a draft, a job that is over."""
        if self.is_run:
            return self.has_ended
        return bool(self.draft) or (self.is_job and not self.live)

    @property
    def live(self) -> bool:
        """Whether it may still run."""
        return self.state is not None and not self.state.ended and self.state is not JobState.UNKNOWN


def starting_row(run: Run) -> RunRow:
    """Return a run's row before its state is known."""
    spec = run.spec
    started = run.job.submitted if run.job is not None else spec.created
    return RunRow(
        clean(spec.id),
        clean(spec.name),
        run.directory,
        started=started.timestamp(),
        max_steps=spec.max_steps,
        detail=_detail(run),
        recipe=clean(spec.recipe.source),
        nodes=spec.nodes,
        partition=clean(spec.slurm.partition) if spec.slurm is not None else "",
        job=run.job.id if run.job is not None and spec.cluster == "slurm" else "",
        jobs=tuple(job.id for job in run.jobs) if spec.cluster == "slurm" else (),
        estimated_gib=spec.estimated_gib,
    )


def _detail(run: Run) -> str:
    spec = run.spec
    text = f"{clean(spec.host)} · {spec.nodes} {'node' if spec.nodes == 1 else 'nodes'}"
    if spec.kind == "rehearsal":  # its worker units need no GPU, whatever the recipe says
        text = f"rehearsal, stand-in models · {text}"
    elif spec.gpus_per_node:
        text += f" × {spec.gpus_per_node} {'GPU' if spec.gpus_per_node == 1 else 'GPUs'}"
    return f"{text} · {clean(spec.recipe.source)}"


def damaged_row(item: Damaged) -> RunRow:
    """Return the row of a directory that cannot be read as a run."""
    name = clean(Path(item.directory).name)
    return RunRow(name, name, item.directory, damaged=clean(item.problem))


def filled_row(row: RunRow, summary: Mapping[str, Any]) -> RunRow:
    """Return the row updated from a run's summary, a file that may have been edited."""
    from launcher.monitor.usual import durations_of

    metrics = summary.get("metrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    job, memory = (
        value if isinstance(value := summary.get(name), dict) else {} for name in ("job", "gpu_memory")
    )
    losses = [value if isinstance(value, float | int) else float("nan") for value in _list(metrics, "loss")]
    try:
        state = JobState(summary.get("state", ""))
    except ValueError:
        state = JobState.UNKNOWN
    return replace(
        row,
        state=state,
        damaged="",
        reason=clean(str(summary.get("reason") or "")),
        step=_integer(metrics.get("step")) or 0,
        max_steps=_integer(metrics.get("max_steps")) or row.max_steps,
        checkpoint=max(
            (step for step in _list(metrics, "checkpoints") if isinstance(step, int)), default=None
        ),
        losses=_thinned(losses),
        ended=_number(summary.get("ended")),
        durations=tuple(durations_of(summary).items()) if state.ended else (),
        step_s=_number(metrics.get("step_time_recent_s")),
        deadline=None if state.ended else _number(job.get("deadline")),
        expected=_number(job.get("starts")) if state is JobState.QUEUED else None,
        peak_gib=_number(memory.get("peak_gib")),
    )


def job_row(job: ListedJob) -> RunRow:
    """Return the row of a job that something else submitted."""
    status = job.status
    ended = status.state.ended
    waits = status.state is JobState.QUEUED
    nodes = f" on {status.nodes}" if status.nodes else ""
    return RunRow(
        job.id,
        job.name or f"job {job.id}",
        "",
        state=status.state,
        reason=clean(status.reason),
        started=job.submitted if waits else job.started or job.submitted,
        ended=job.ended if ended else None,
        detail=f"job of another program{nodes}",
        nodes=job.nodes,
        partition=job.partition,
        job=job.id,
        deadline=None if ended or waits else job.ended,
        expected=job.started if waits else None,
    )


def with_job(row: RunRow, job: ListedJob) -> RunRow:
    """Return a run's row with what the scheduler alone knows of its latest job."""
    if row.state is None or row.state.ended:
        return row
    waits = job.status.state is JobState.QUEUED
    return replace(
        row,
        partition=job.partition or row.partition,
        deadline=None if waits else job.ended or row.deadline,
        expected=job.started if waits else None,
    )


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return value if isinstance(value, list) else []


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, float | int) else None


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    """Keep as many values as a row can show; always the last one."""
    if len(values) <= MAX_LOSSES:
        return tuple(values)
    step = len(values) / MAX_LOSSES
    return (*(values[int((index + 1) * step) - 1] for index in range(MAX_LOSSES - 1)), values[-1])
