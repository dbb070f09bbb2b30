"""Leaving the app: what is asked before, and the demo's run, which may be stopped first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App
from textual.message import Message
from textual.screen import Screen

from recipes.errors import ExplainedError
from tui.background import in_background, post

if TYPE_CHECKING:
    from tui.demo_run import DemoRun, DemoStart
    from tui.screens.monitor import MonitorScreen


class AppStopped(Message):
    """The demo's run was stopped."""


class StopFailed(Message):
    """The demo's run could not be stopped."""

    def __init__(self, error: ExplainedError) -> None:
        super().__init__()
        self.error = error


class Leaving:
    """The ways out of the app."""

    def __init__(self, app: App[None], has_unsaved_draft: Callable[[], bool], demo: DemoStart | None) -> None:
        self._app, self._has_unsaved_draft = app, has_unsaved_draft
        self.demo = _demo_run(demo) if demo is not None else None
        self.demo_screen: MonitorScreen | None = None
        """The monitor of the demo's run."""
        self._stopping = False
        self._busy: Screen[None] | None = None
        """The dialog while the run is stopped."""
        self._quit_dialog_open = False

    def note_demo(self, screen: Screen[None], *, ended: bool) -> None:
        """Note whether the demo's run has ended; then leaving needs no question."""
        if screen is self.demo_screen and self.demo is not None:
            self.demo.ended = ended

    def leave(self) -> None:
        """Leave; asks whether to stop the demo's run, and before entries would be lost."""
        if self.demo is None or self.demo.ended:
            if self._has_unsaved_draft():
                self._ask_about_drafts()
            else:
                self._exit_with_remarks()
            return
        from tui.screens.dialogs import ChoiceDialog, DialogChoice

        choices = [
            DialogChoice("l", "leave it running (`distill-tui` lists it)", "leave"),
            DialogChoice("s", "stop it and quit", "stop"),
            DialogChoice("n", "stay", "stay"),
        ]
        text = "The demo's run is still running, with a Ray cluster on this machine."
        self._app.push_screen(ChoiceDialog("Quit the demo?", text, choices, chosen=1), self._leave_by_answer)

    def _ask_about_drafts(self) -> None:
        from tui.screens.dialogs import ChoiceDialog, DialogChoice

        self._quit_dialog_open = True
        choices = [DialogChoice("y", "quit", "leave"), DialogChoice("n", "stay", "stay")]
        text = "The new run was not submitted, and no draft of it can be written: it would be lost."
        if edits_would_be_lost(self._app):
            text = "A recipe's edits are not saved, and no draft can be written: they would be lost."
        self._app.push_screen(ChoiceDialog("Quit?", text, choices, chosen=1), self._leave_by_answer)

    def _exit_with_remarks(self) -> None:
        """Leave; on the terminal stands what is kept: edits of recipes, drafts of runs."""
        remarks = [getattr(screen, "unsaved_remark", "") for screen in self._app.screen_stack]
        self._app.exit(message="\n".join(filter(None, remarks)) or None)

    def _leave_by_answer(self, answer: str | None) -> None:
        self._quit_dialog_open = False
        if answer == "leave":
            self._exit_with_remarks()
        elif answer == "stop":
            self.leave_now()

    def leave_now(self) -> None:
        """Leave at once; the demo's run is stopped first. Asks only before entries would be lost."""
        demo = self.demo
        if demo is None or demo.ended:
            if self._has_unsaved_draft() and not self._quit_dialog_open:
                self.leave()
            else:
                self._exit_with_remarks()
            return
        if self._stopping:
            return
        self._stopping = True
        if self.demo_screen is not None and self.demo_screen.is_attached:
            self.demo_screen.show_stopping()
        from tui.screens.dialogs import BusyDialog

        self._busy = BusyDialog("stopping …\n\nStopping the demo's run; this takes a few seconds.")
        self._app.push_screen(self._busy)

        def stop() -> None:
            demo.stop()
            post(self._app, AppStopped())

        in_background(stop, "stop", lambda error: post(self._app, StopFailed(error)))

    def stay(self, error: ExplainedError) -> None:
        """Show why the demo's run could not be stopped, and stay."""
        from tui.screens.dialogs import error_dialog

        self._stopping = False
        if self._busy is not None and self._busy in self._app.screen_stack:
            while self._app.screen is not self._busy:  # a dialog that opened meanwhile
                self._app.pop_screen()
            self._app.pop_screen()
        self._app.push_screen(error_dialog(error))


def edits_would_be_lost(app: App[None]) -> bool:
    """Return whether a recipe has edits that are neither saved nor kept as a draft."""
    return any(getattr(screen, "would_lose_edits", False) for screen in app.screen_stack)


def _demo_run(start: DemoStart) -> DemoRun:
    from tui.demo_run import DemoRun

    return DemoRun(start)
