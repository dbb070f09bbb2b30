"""Resumption of a run that ended: one more job of the same run, from its last checkpoint.

    resumption = lay_out_resume(run, store)      nothing is written, nothing submitted
    run = go_on(resumption, store)               submits the job as a further link of the run

The job is the one that was submitted before: same recipe, same scripts, same request, another token. Its
command is made anew from the request (`resume_plan`). It carries the same name and waits for others of that
name, so that two of them never write the same checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.clusters.registry import cluster_of
from launcher.effective import directory_overrides, distillation, own_directory_keys
from launcher.errors import InputError, LaunchError
from launcher.logs.events import ENDED_STATES
from launcher.monitor.watch_run import summary_of
from launcher.ownership import require_own
from launcher.plan import LaunchPlan
from launcher.request import Cost
from launcher.runs import Run, RunStore, SlurmRequest, effective_values
from launcher.saved_summary import drop_summary
from launcher.submit.resume_plan import plan_of_resumption
from launcher.transports.base import Transport
from recipes.errors import ExplainedError

_STEP = re.compile(r"step_(\d+)")
_OUT_OF_TIME = b"Timeout has been reached"
_TAIL = 20_000


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """The job that would resume a run."""

    run: Run
    plan: LaunchPlan
    request: SlurmRequest
    cost: Cost
    state: str
    reason: str
    done: int
    """Completed steps."""
    step: int | None
    """Step of the checkpoint that is loaded; None: it starts from the beginning."""
    max_steps: int | None
    changed: tuple[str, ...] | None
    """Keys changed in the recipe's file since, without effect. None: it can no longer be read."""

    @property
    def left(self) -> int | None:
        """Remaining steps; None where unknown."""
        return None if self.max_steps is None else max(self.max_steps - (self.step or 0), 0)


def lay_out_resume(run: Run, store: RunStore, *, time_s: int | None = None) -> ResumePlan:
    """Return the plan to resume a run. Nothing is written.

    Args:
        run: The run.
        store: Where runs are kept.
        time_s: Another time limit, in seconds.

    Raises:
        InputError: the run did not run in Slurm, or was moved.
        LaunchError: a job of it is still there, or there is nothing left to do.
    """
    transport = store.transport
    request = _request(run)
    summary = summary_of(transport, run)
    state = str(summary["state"])
    _require_ended(run, state, str(summary["reason"]))
    effective = effective_values(transport, run.directory)
    step = _last_checkpoint(transport, run, effective)
    _require_work(transport, run, state, step)
    if time_s is not None:
        request = request.model_copy(update={"time_s": time_s})
    return ResumePlan(
        run=run,
        plan=plan_of_resumption(transport, run, request, effective),
        request=request,
        cost=Cost.of(run.spec.nodes, run.spec.gpus_per_node, request.time_s),
        state=state,
        reason=str(summary["reason"]),
        done=int(summary["metrics"]["step"] or 0),
        step=step,
        max_steps=run.spec.max_steps,
        changed=_changed(transport, run, effective),
    )


def go_on(resumption: ResumePlan, store: RunStore, *, trust: bool = False) -> Run:
    """Submit the job, once; returns the run with it.

    Args:
        resumption: What `lay_out_resume` returned.
        store: Where runs are kept.
        trust: The user has agreed to an order about a run that others can write.

    Raises:
        ForeignRunError: the run is another user's, or others can write it.
        RefusedError: Slurm refused; the run records that.
        UnreachableError: it is not clear whether Slurm accepted the job; watching the run resolves it.
    """
    require_own(store.transport, resumption.run, resumption.plan.argv, trust=trust, starts=True)
    drop_summary(store.transport, resumption.run)
    return cluster_of(resumption.run, store.transport).submit(resumption.run, resumption.plan)


def _request(run: Run) -> SlurmRequest:
    if run.spec.cluster != "slurm" or run.spec.slurm is None:
        raise InputError(
            f"{run.spec.id} ran on this machine, not in Slurm",
            where=run.directory,
            fix="Start it again with `demo RECIPE`; a rehearsal takes a minute.",
        )
    if run.spec.kind == "doctor":
        raise InputError(
            f"{run.spec.id} measured nodes and trained nothing",
            where=run.directory,
            fix="`distill-tui doctor --on devel` measures them again.",
        )
    return run.spec.slurm


def _require_ended(run: Run, state: str, reason: str) -> None:
    if state not in ENDED_STATES:
        raise LaunchError(
            f"{run.spec.id} has not ended: it is {state}" + f" ({reason})" * bool(reason),
            where=run.directory,
            fix="Try again when `watch` shows how it ended."
            if state == "unknown"
            else "Stop it with `cancel`, or follow it with `watch`.",
        )


def _last_checkpoint(transport: Transport, run: Run, effective: Mapping[str, Any]) -> int | None:
    """Return the step of the checkpoint that NeMo-RL loads: the highest `step_N`."""
    section = effective.get("checkpointing")
    configured = section.get("checkpoint_dir") if isinstance(section, dict) else None
    if not isinstance(configured, str) or not configured:
        return None
    # A relative directory counts from where the driver runs.
    folder = str(Path(run.spec.checkout or run.directory, configured))
    entry = transport.stat(folder)
    if entry is None or not entry.is_dir:
        return None
    matches = (_STEP.fullmatch(item.name) for item in transport.listdir(folder) if item.is_dir)
    return max((int(match[1]) for match in matches if match), default=None)


def _require_work(transport: Transport, run: Run, state: str, step: int | None) -> None:
    """Refuse where the next job would have nothing to do."""
    steps = run.spec.max_steps
    if steps is not None and step is not None and step >= steps:
        raise LaunchError(
            f"{run.spec.id} has done all of its {steps} steps; its last checkpoint is of step {step}",
            where=run.directory,
            fix="For more, submit the recipe with a higher distillation.max_num_steps: it resumes there.",
        )
    if state == "completed" and not _ran_out_of_time(transport, run):
        raise LaunchError(
            f"{run.spec.id} is finished: its driver ended by itself, not because of its time limit",
            where=run.directory,
            fix="For more, submit the recipe with more steps or epochs: it resumes from its checkpoint.",
        )


def _ran_out_of_time(transport: Transport, run: Run) -> bool:
    """Return whether the driver stopped at `checkpoint_must_save_by`; early summaries say completed then."""
    if transport.stat(run.logs) is None:
        return False
    names = [entry.name for entry in transport.listdir(run.logs)]
    log_directories = [
        name for job in run.jobs for name in names if re.fullmatch(rf"{re.escape(job.id)}(-\d+)?-logs", name)
    ]
    for name in reversed(log_directories):
        log = str(Path(run.logs, name, "ray-driver.log"))
        entry = transport.stat(log)
        if entry is not None:
            return _OUT_OF_TIME in transport.read(log, max(entry.size - _TAIL, 0))
    return False


def _changed(transport: Transport, run: Run, effective: Mapping[str, Any]) -> tuple[str, ...] | None:
    from recipes.compare import differences

    source = transport.path(run.spec.recipe.source)
    overrides = (*run.spec.recipe.overrides, *directory_overrides(run.spec.kind, run.directory))
    try:
        recipe = distillation(source, overrides)
    except (ExplainedError, OSError):
        return None
    moved = own_directory_keys(run.spec.kind)
    changes = differences(dict(effective), dict(recipe.values))
    return tuple(item.key for item in changes if item.key not in moved)
