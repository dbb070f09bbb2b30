"""Imports of the screens that are not shown at first."""

from __future__ import annotations

import gc
from importlib import import_module


def import_screens(*, freeze: bool) -> None:
    """Import what later screens need; for a thread, since a file system may be slow."""
    for name in (
        "monitor",
        "help",
        "dialogs",
        "cancelling",
        "wizard.screen",
        "editor.recipe_editor",
        "editor.choose_recipe",
        "doctor",
    ):
        import_module(f"tui.screens.{name}")
    if freeze:
        # Loaded modules are no garbage: scanning them delayed the screen, on a busy machine by 0.3 s.
        gc.freeze()
