"""`new`: the wizard, opened from the command line."""

from __future__ import annotations

import argparse
from typing import Any


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser(
        "new", help="prepare and submit a run, step by step", description=_new.__doc__
    )
    command.add_argument(
        "recipe", metavar="RECIPE", nargs="?", help="a recipe, or the name of a starting recipe"
    )
    command.add_argument("overrides", metavar="OVERRIDE", nargs="*", help="KEY=VALUE, as Hydra means it")
    command.set_defaults(handler=_new)


def _new(options: argparse.Namespace) -> int:
    """Open the wizard: cluster, recipe, job, sizes, review. `submit` does the same without a screen."""
    from tui.headless.tty import require_terminal

    require_terminal()
    from launcher.paths import runs_root
    from tui.app import run_app
    from tui.screens.wizard.model import WizardState

    texts = {"recipe": options.recipe} if options.recipe else {}
    draft = WizardState(texts, tuple(options.overrides))
    return run_app(runs_root=runs_root(), mouse=not options.no_mouse, draft=draft)
