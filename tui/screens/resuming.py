"""Resumption of a run that saved and stopped: the question, and one more job of the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.message import Message
from textual.screen import Screen

from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.opening import ActionFailed, local
from tui.screens.cancelling import ask_to_trust
from tui.screens.dialogs import ChoiceDialog, DialogChoice


class ResumeSent(Message):
    """One more job of the run was submitted."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory


def ask_to_resume(screen: Screen[None], directory: str, reason: str, new_run: Callable[[], None]) -> None:
    """Ask whether a run goes on, or `new_run` is prepared with its settings.

    The screen gets a `ResumeSent` message, or an `ActionFailed` where no job could be submitted.
    """

    def answered(answer: str | None) -> None:
        if answer == "resume":
            in_background(submit, "resume", failed)
        elif answer == "new":
            new_run()

    def submit(*, trust: bool = False) -> None:
        resume(directory, trust=trust)
        post(screen, ResumeSent(directory))

    def failed(error: ExplainedError) -> None:
        from launcher.ownership import ForeignRunError

        if isinstance(error, ForeignRunError):
            call_on(screen, partial(ask_to_trust, screen, error, partial(submit, trust=True)))
        else:
            post(screen, ActionFailed(error))

    choices = [
        DialogChoice("r", "resume from its checkpoint", "resume"),
        DialogChoice("n", "a new run with its settings", "new"),
    ]
    screen.app.push_screen(ChoiceDialog("Resume this run?", reason, choices), answered)


def resume(directory: str, *, trust: bool = False) -> None:
    """Submit one more job of a run, from its last checkpoint.

    Raises:
        ForeignRunError: others can write its directory, and `trust` is not given.
        InputError: its directory cannot be read, or it was moved.
        LaunchError: there is nothing left to do, or Slurm refuses the job.
        TransportError: its machine does not answer.
    """
    from launcher.runs import RunStore, load
    from launcher.submit.resume import go_on, lay_out_resume

    store = RunStore(local(), str(Path(directory).parent))
    go_on(lay_out_resume(load(store.transport, directory), store), store, trust=trust)
