"""`demo`: the whole path on this machine, with stand-in models."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from launcher.monitor.state import RunState
    from launcher.runs import Run, RunStore
    from tui.headless.interrupts import Interrupts


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser(
        "demo",
        help="run a small distillation with stand-in models on this machine",
        description=_demo.__doc__,
    )
    command.add_argument("recipe", metavar="RECIPE", nargs="?", help="a recipe (default: the demo's own)")
    command.add_argument("overrides", metavar="KEY=VALUE", nargs="*", help="overrides, as Hydra takes them")
    command.add_argument("--plain", action="store_true", help="print events line by line")
    command.add_argument("--json", action="store_true", help="print events as JSON, one a line")
    command.add_argument(
        "--yes", action="store_true", help="start Ray here even if this is a shared login node"
    )
    command.set_defaults(handler=_demo)


def _demo(options: argparse.Namespace) -> int:
    """Read a recipe, start a real Ray cluster on this machine, distil a tiny model on it, and watch it.

    The models are stand-ins that need no GPU; everything around them is what a real run uses.
    """
    recipe, overrides = _recipe_and_overrides(options)
    if not options.plain and not options.json:
        from tui.headless.tty import require_terminal

        require_terminal()
    _agree_to_ray_here(yes=options.yes)
    if options.plain or options.json:
        return _follow(recipe, overrides, as_json=options.json)
    return _open_app(options, recipe, overrides)


def _recipe_and_overrides(options: argparse.Namespace) -> tuple[Path | None, tuple[str, ...]]:
    """Tell a recipe from overrides: `a=b` and `~a` are overrides, unless a file has that name."""
    from pathlib import Path

    overrides = tuple(options.overrides)
    if options.recipe is None:
        return None, overrides
    recipe = Path(options.recipe)
    if not recipe.exists() and ("=" in options.recipe or options.recipe.startswith("~")):
        return None, (options.recipe, *overrides)
    return recipe, overrides


def _agree_to_ray_here(*, yes: bool) -> None:
    """Say so and ask where others use this machine too."""
    from launcher.errors import InputError
    from launcher.sites import look_at, shared_login_node
    from launcher.transports.local import LocalTransport

    why = None if yes else shared_login_node(look_at(LocalTransport(), os.environ))
    if why is None:
        return
    say(f"{why}. The demo starts Ray here for about a minute: 2 cores, 1 GB of memory.")
    if not sys.stdin.isatty():
        raise InputError(
            "the demo was not started", fix="Say --yes to start it here, or run it on another machine."
        )
    say("Start it here? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("the demo was not started")


def _start(store: RunStore, recipe: Path | None, overrides: tuple[str, ...]) -> Run:
    from launcher.submit.rehearsal import DEMO_RECIPE, start

    return start(store.transport, store, os.environ, recipe=recipe or DEMO_RECIPE, overrides=overrides)


def _follow(recipe: Path | None, overrides: tuple[str, ...], *, as_json: bool) -> int:
    from tui.headless.interrupts import Interrupts
    from tui.headless.runs import store

    with Interrupts() as interrupts:
        known = store()
        run = _start(known, recipe, overrides)
        say(f"run {run.spec.id} in {run.directory}")
        try:
            code = _print_until_end(known, run, interrupts, as_json=as_json)
        except BaseException:
            _stop(known, run)
            raise
        if interrupts.got:
            say("stopping …")
            _stop(known, run)
            say(f"stopped; the run's files are in {run.directory}")
            return 128 + interrupts.got
    return code


def _print_until_end(known: RunStore, run: Run, interrupts: Interrupts, *, as_json: bool) -> int:
    from launcher.monitor.watch_run import watch_run
    from tui.headless.stream import EventStream

    watch = watch_run(known.transport, run)
    stream = EventStream(as_json, poll_s=0.25)
    stream.follow(watch, lambda state: bool(interrupts.got) or _launcher_gone(state))
    if interrupts.got:
        return Exit.FAILED
    _wait_until_gone(known, run)
    stream.emit(watch.catch_up(final=True), watch.state)
    code = stream.close(run.spec.id, watch.state)
    say(f"logs and checkpoints are in {run.directory}")
    return code


def _launcher_gone(state: RunState) -> bool:
    return state.launcher_ended is not None or (state.job is not None and state.job.over)


def _wait_until_gone(known: RunStore, run: Run) -> None:
    import time

    from launcher.monitor.watch_run import cluster_of

    deadline = time.monotonic() + 30
    while run.job is not None and time.monotonic() < deadline:
        state = cluster_of(run, known.transport).state(run, run.job)
        if state is None or state.over or state.state.ended:
            return
        time.sleep(0.1)


def _stop(known: RunStore, run: Run) -> None:
    from launcher.monitor.watch_run import cluster_of

    if run.job is not None:
        cluster_of(run, known.transport).cancel(run, run.job)


def _open_app(options: argparse.Namespace, recipe: Path | None, overrides: tuple[str, ...]) -> int:
    from launcher.paths import runs_root
    from tui.app import DemoStart, run_app

    def start() -> Run:
        from tui.headless.runs import store

        return _start(store(), recipe, overrides)

    return run_app(runs_root=runs_root(), mouse=not options.no_mouse, demo=DemoStart(start))
