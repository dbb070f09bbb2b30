"""`cancel`: stop a run, at once or as soon as its next checkpoint is complete."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.output import say

if TYPE_CHECKING:
    from launcher.monitor.watch import Watch
    from launcher.runs import Run, RunStore

POLL_S = 1.0


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser("cancel", help="stop a run", description=_cancel.__doc__)
    command.add_argument("run", metavar="RUN", help="a run's name or an unambiguous part of it")
    command.add_argument(
        "--after-checkpoint",
        action="store_true",
        help="wait until the next checkpoint is complete; ctrl-c leaves the run alone",
    )
    command.set_defaults(handler=_cancel)


def _cancel(options: argparse.Namespace) -> int:
    """Stop a run and wait until nothing of it is left on any node. Checkpoints stay."""
    from launcher.monitor.checkpoints import loss_of
    from launcher.monitor.watch_run import watch_run
    from launcher.runs import load_summary
    from tui.headless.runs import store

    known = store()
    run = known.find(options.run)
    kept = load_summary(known.transport, run)
    watch = watch_run(known.transport, run)
    if kept is None:
        watch.catch_up()
    state = kept["state"] if kept is not None else watch.state.state.value
    if run.job is None or state in ("completed", "failed", "cancelled"):
        say(f"{run.spec.id} has ended already ({state})")
        return Exit.OK
    say(loss_of(watch.state, time.time()).in_words())
    if options.after_checkpoint and not _wait(known, run, watch):
        return Exit.FAILED if watch.state.state.value in ("failed", "cancelled") else Exit.OK
    return _stop(known, run)


def _stop(known: RunStore, run: Run) -> int:
    from launcher.monitor.watch_run import cluster_of
    from launcher.runs import load

    run = load(known.transport, run.directory)
    if run.job is not None:
        say(f"stopping {run.spec.id} …")
        cluster_of(run, known.transport).cancel(run, run.job)
        say("stopped")
    return Exit.OK


def _wait(known: RunStore, run: Run, watch: Watch) -> bool:
    """Wait for the next complete checkpoint; False where the run ended before.

    Raises:
        InputError: the run saves nothing, so that nothing would ever come.
        LaunchError: the user gave up waiting; the run goes on.
    """
    from launcher.errors import InputError, LaunchError
    from launcher.monitor.checkpoints import complete_checkpoint, loss_of, next_checkpoint, save_period
    from tui.headless.interrupts import Interrupts

    period = save_period(known.transport, run.directory)
    if period == 0:
        raise InputError("this run saves no checkpoints", fix="`cancel` without --after-checkpoint ends it.")
    before, told = complete_checkpoint(watch.state), ""
    with Interrupts() as interrupts:
        while not interrupts.got:
            following = next_checkpoint(watch.state, period)
            what = f"the checkpoint of step {following}" if following is not None else "the next checkpoint"
            if what != told:
                say(f"waiting for {what} to be complete; ctrl-c leaves the run alone")
                told = what
            time.sleep(0 if watch.behind else POLL_S)
            watch.poll()
            if watch.state.state.ended:
                say(f"{run.spec.id} has ended by itself ({watch.state.state.value})")
                return False
            if complete_checkpoint(watch.state) != before:
                say(loss_of(watch.state, time.time()).in_words())
                return True
    raise LaunchError(f"not cancelled: {run.spec.id} goes on", fix="`cancel` stops it at once.")
