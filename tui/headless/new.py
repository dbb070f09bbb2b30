"""`new`: the wizard, opened from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.terminal import require_terminal

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Open the wizard with a recipe and overrides filled in, for this machine or a host."""
    require_terminal()
    from launcher.fields.assignments import read_assignments
    from launcher.paths import runs_root
    from tui.app import run_app
    from tui.screens.wizard.model import WizardState

    texts = {"recipe": options.recipe} if options.recipe else {}
    texts |= read_assignments(options.assignments)
    wizard_state = WizardState(texts, tuple(options.override))
    return run_app(
        runs_root=runs_root(), mouse=not options.no_mouse, wizard_state=wizard_state, host=options.host or ""
    )
