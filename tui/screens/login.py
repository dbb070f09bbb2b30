"""Questions of a host before it lets the user in, such as the code of a second factor.

An answer goes to the connection that asked, and is kept nowhere.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from launcher.text import clean, clean_lines
from tui.background import call_on
from tui.widgets.dialog_text import DialogWithText

if TYPE_CHECKING:
    from launcher.transports.ssh.authentication import LoginPrompt

ANSWER_S = 105.0
"""Longest wait for an answer: a server closes the connection 120 s after it was made (LoginGraceTime)."""


class LoginDialog(DialogWithText[str | None]):
    """Asks one question of a login; None where it is dismissed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("f1", "app.help", "Help", show=False),
    ]
    DEFAULT_CSS = "LoginDialog Input { width: 100%; background: $panel; margin-bottom: 1; }"

    def __init__(self, prompt: LoginPrompt) -> None:
        text = "\n".join(filter(None, (clean_lines(prompt.instructions), clean(prompt.text).strip())))
        super().__init__(f"{text}\n\nenter answers, esc gives up. The answer is used once and not kept.")
        self._title = f"Log in to {clean(prompt.host)}"
        self.field = Input(password=not prompt.echo, compact=True)
        self.field.cursor_blink = False

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(self._title)
            yield self.dialog_text
            yield self.field

    def on_mount(self) -> None:
        """Focus the field."""
        self.field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer; the field is emptied, so that the answer is in no widget any longer."""
        event.stop()
        answer = event.value
        self.field.value = ""
        self.dismiss(answer)

    def action_leave(self) -> None:
        """Give up."""
        self.dismiss(None)


def ask_login(app: App[None], prompt: LoginPrompt) -> str:
    """Ask a question of a login on the screen, and return the answer; called on a thread, which waits.

    Raises:
        LoginError: the user gave up, or did not answer in time.
    """
    from launcher.transports.ssh.authentication import LoginError

    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    dialog = LoginDialog(prompt)
    call_on(app, lambda: _push(app, dialog, answers))
    try:
        answer = answers.get(timeout=ANSWER_S)
    except queue.Empty:
        call_on(app, lambda: _withdraw(dialog))
        raise LoginError(f"{clean(prompt.host)}: no answer in time; not connected") from None
    if answer is None:
        raise LoginError(f"{clean(prompt.host)}: no answer; not connected")
    return answer


def _push(app: App[None], dialog: LoginDialog, answers: queue.SimpleQueue[str | None]) -> None:
    app.push_screen(dialog, answers.put)


def _withdraw(dialog: LoginDialog) -> None:
    if dialog.is_active:
        dialog.dismiss(None)
