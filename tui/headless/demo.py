"""`demo`: the whole path on this machine, with stand-in models."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import Exit
from tui.headless.output import ask, say
from tui.headless.stores import run_store
from tui.terminal import Interrupts, require_terminal

if TYPE_CHECKING:
    import argparse

    from launcher.monitor.state import RunState
    from launcher.runs import Run, RunStore


def run(options: argparse.Namespace) -> int:
    """Run a tiny distillation on this machine and watch it, in the app or as lines."""
    recipe, overrides = _recipe_and_overrides(options)
    if not options.plain and not options.json:
        require_terminal()
    _agree_to_ray_here(yes=options.yes)
    if options.plain or options.json:
        return _follow(recipe, overrides, as_json=options.json)
    return _open_app(options, recipe, overrides)


def _recipe_and_overrides(options: argparse.Namespace) -> tuple[Path | None, tuple[str, ...]]:
    """Tell a recipe from overrides: `a=b` and `~a` are overrides, unless a file has that name."""
    overrides = tuple(options.override)
    if options.recipe is None:
        return None, overrides
    recipe = Path(options.recipe)
    if not recipe.exists() and ("=" in options.recipe or options.recipe.startswith("~")):
        return None, (options.recipe, *overrides)
    return recipe, overrides


def _agree_to_ray_here(*, yes: bool) -> None:
    """Ask first on a machine that others use too."""
    from launcher.errors import InputError
    from launcher.sites import inspect_machine, shared_login_node
    from launcher.transports.local import LocalTransport

    reason = None if yes else shared_login_node(inspect_machine(LocalTransport(), os.environ))
    if reason is None:
        return
    say(f"{reason}. The demo starts Ray here for about a minute: 2 cores, 1 GB of memory.")
    if not sys.stdin.isatty():
        raise InputError(
            "the demo was not started", fix="Give --yes to start it here, or run it on another machine."
        )
    if not ask("Start it here?"):
        raise InputError("the demo was not started")


def _start(store: RunStore, recipe: Path | None, overrides: tuple[str, ...]) -> Run:
    from launcher.submit.rehearsal import DEMO_RECIPE, start

    return start(store.transport, store, os.environ, recipe=recipe or DEMO_RECIPE, overrides=overrides)


def _follow(recipe: Path | None, overrides: tuple[str, ...], *, as_json: bool) -> int:
    with Interrupts() as interrupts:
        store = run_store()
        run = _start(store, recipe, overrides)
        say(f"run {run.spec.id} in {run.directory}")
        try:
            code = _print_until_end(store, run, interrupts, as_json=as_json)
        except BaseException:
            _stop(store, run)
            raise
        if interrupts.got:
            say("stopping …")
            _stop(store, run)
            say(f"stopped; the run's files are in {run.directory}")
            return 128 + interrupts.got
    return code


def _print_until_end(store: RunStore, run: Run, interrupts: Interrupts, *, as_json: bool) -> int:
    from launcher.monitor.watch_run import watch_run
    from tui.headless.stream import EventStream

    watch = watch_run(store.transport, run)
    stream = EventStream(as_json, poll_s=0.25)
    stream.follow(watch, lambda state: bool(interrupts.got) or _launcher_gone(state))
    if interrupts.got:
        return Exit.FAILED
    _wait_until_gone(store, run)
    stream.emit(watch.catch_up(final=True), watch.state)
    code = stream.close(run.spec.id, watch.state)
    say(f"logs and checkpoints are in {run.directory}")
    return code


def _launcher_gone(state: RunState) -> bool:
    return state.launcher_ended is not None or (state.job is not None and state.job.over)


def _wait_until_gone(store: RunStore, run: Run) -> None:
    import time

    from launcher.clusters.registry import cluster_of

    deadline = time.monotonic() + 30
    while run.job is not None and time.monotonic() < deadline:
        state = cluster_of(run, store.transport).state(run, run.job)
        if state is None or state.over or state.state.ended:
            return
        time.sleep(0.1)


def _stop(store: RunStore, run: Run) -> None:
    from launcher.stop_order import stop_run

    stop_run(store.transport, run.directory)


def _open_app(options: argparse.Namespace, recipe: Path | None, overrides: tuple[str, ...]) -> int:
    from launcher.paths import runs_root
    from tui.app import run_app
    from tui.demo_run import DemoStart

    def start() -> Run:
        return _start(run_store(), recipe, overrides)

    return run_app(runs_root=runs_root(), mouse=not options.no_mouse, demo=DemoStart(start))
