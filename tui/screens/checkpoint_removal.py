"""Removal of a smoke run's checkpoint from its monitor: the confirmation, and the removal itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import Screen

from tui.background import call_on, in_background, post
from tui.opening import ActionFailed, local
from tui.screens.dialogs import ChoiceDialog, DialogChoice

if TYPE_CHECKING:
    from launcher.runs import Run


def ask_to_remove(screen: Screen[None], run: Run, on_removed: Callable[[], None]) -> None:
    """Ask, then remove the checkpoints of a smoke run or rehearsal in the background.

    The screen gets an `ActionFailed` message if they cannot be removed.
    """
    from launcher.storage.size import gigabytes

    def remove() -> None:
        from launcher.runs import RunStore
        from launcher.storage.removal import remove_checkpoints

        removed = remove_checkpoints(RunStore(local(), str(Path(run.directory).parent)), run)

        def tell() -> None:
            on_removed()
            text = f"{gigabytes(removed.bytes)} in {removed.directory}"
            screen.app.push_screen(ChoiceDialog("Removed", text, [DialogChoice("o", "OK", "ok")]))

        call_on(screen, tell)

    def answered(answer: str | None) -> None:
        if answer == "remove":
            in_background(remove, "remove", lambda error: post(screen, ActionFailed(error)))

    text = f"{run.spec.id}\n\nIts logs and settings are kept. A real run does not start from this checkpoint."
    choices = [DialogChoice("y", "remove the checkpoint", "remove"), DialogChoice("n", "keep it", "keep")]
    screen.app.push_screen(ChoiceDialog("Remove its checkpoint?", text, choices, chosen=1), answered)
