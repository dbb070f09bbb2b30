"""Import of the screens that the list does not need, once it is painted."""

from __future__ import annotations

import gc
from importlib import import_module


def import_screens(*, freeze: bool) -> None:
    """Import the screens; `freeze`: leave what is loaded by then out of garbage collection for good."""
    for name in (
        "home_actions",
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
