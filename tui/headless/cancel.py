"""`cancel`: stop a run, at once or as soon as its next checkpoint is complete."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import AmbiguousError, InputError, LaunchError
from launcher.logs.events import ENDED_STATES, JobState
from launcher.monitor.checkpoints import complete_checkpoint, loss_of, next_checkpoint, save_period
from launcher.monitor.watch_run import watch_run
from launcher.ownership import ForeignRunError
from launcher.run_reference import is_job_id
from launcher.runs import JOBS, SUMMARY
from launcher.saved_summary import load_summary
from launcher.stop_order import stop_run
from recipes.errors import Exit
from tui.headless.output import ask, say
from tui.headless.stores import run_store
from tui.terminal import Interrupts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from launcher.monitor.watch import Watch
    from launcher.runs import Run, RunStore

POLL_S = 1.0


def run(options: argparse.Namespace) -> int:
    """Stop a run and wait until none of its processes is left on any node."""
    store = run_store(options.host)
    target = _target(store, options.run)
    summary = load_summary(store.transport, target) if _is_summed_up(store, target) else None
    watch = watch_run(store.transport, target)
    if summary is None:
        watch.catch_up()
    state = str(summary["state"]) if summary is not None else watch.state.state.value
    settled = summary is not None or watch.state.settled
    if state in ENDED_STATES and settled and _is_over(target, summary, watch):
        say(f"{target.spec.id} has already ended ({state})")
        return Exit.OK
    say(loss_of(watch.state, time.time()).in_words())
    if options.after_checkpoint and not _wait(store, target, watch):
        return Exit.FAILED if watch.state.state in (JobState.FAILED, JobState.CANCELLED) else Exit.OK
    return _stop(store, target, trust=options.trust)


def _is_over(run: Run, summary: Mapping[str, Any] | None, watch: Watch) -> bool:
    """Return whether the scheduler has said so: what a log says of an end keeps no job from running."""
    if run.spec.cluster != "slurm":
        return True
    if summary is None:
        job = watch.state.job
        return job is not None and (job.state.ended or job.over)
    job_status = summary.get("job")
    return isinstance(job_status, dict) and job_status.get("state") in ENDED_STATES


def _is_summed_up(store: RunStore, run: Run) -> bool:
    """Return whether the summary is newer than the last job: one of before says nothing about that."""
    summary = store.transport.stat(str(Path(run.directory, SUMMARY)))
    jobs = store.transport.stat(str(Path(run.directory, JOBS)))
    return summary is not None and (jobs is None or summary.mtime >= jobs.mtime)


def _target(store: RunStore, reference: str) -> Run:
    try:
        return store.find(reference)
    except AmbiguousError:
        raise
    except InputError as error:
        if not is_job_id(reference):
            raise
        raise InputError(
            f"job {reference} belongs to no run here",
            where=store.root,
            fix=f"`scancel {reference}` ends a Slurm job.",
        ) from error


def _stop(store: RunStore, run: Run, *, trust: bool) -> int:
    say(f"stopping {run.spec.id} …")
    try:
        stopped = stop_run(store.transport, run.directory, trust=trust, say=say)
    except ForeignRunError as error:
        if not sys.stdin.isatty() or not ask(error.question):
            raise
        stopped = stop_run(store.transport, run.directory, trust=True, say=say)
    say("stopped" if stopped else "no job of it was left to stop; a submission under way submits none")
    return Exit.OK


def _wait(store: RunStore, run: Run, watch: Watch) -> bool:
    """Wait for the next complete checkpoint; False where the run ended before.

    Raises:
        InputError: the run saves no checkpoints.
        LaunchError: the user stopped waiting; the run continues.
    """
    period = save_period(store.transport, run.directory)
    if period == 0:
        raise InputError(
            "this run saves no checkpoints", fix="Stop it with `cancel` without --after-checkpoint."
        )
    before, announced = complete_checkpoint(watch.state), ""
    with Interrupts() as interrupts:
        while not interrupts.got:
            following = next_checkpoint(watch.state, period)
            what = f"the checkpoint of step {following}" if following is not None else "the next checkpoint"
            if what != announced:
                say(f"waiting for {what} to be complete; ctrl-c stops waiting, not the run")
                announced = what
            time.sleep(0 if watch.behind else POLL_S)
            watch.poll()
            if watch.state.state.ended:
                say(f"{run.spec.id} ended by itself ({watch.state.state.value})")
                return False
            if complete_checkpoint(watch.state) != before:
                say(loss_of(watch.state, time.time()).in_words())
                return True
    raise LaunchError(
        f"not cancelled: {run.spec.id} is still running",
        fix="`cancel` without --after-checkpoint stops it at once.",
    )
