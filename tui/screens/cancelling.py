"""Cancellation of a run: the confirmation, with the steps at risk, and the cancellation itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.screen import Screen

from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.opening import ActionFailed, local
from tui.screens.dialogs import ChoiceDialog, DialogChoice

if TYPE_CHECKING:
    from launcher.ownership import ForeignRunError
    from tui.work_machine import WorkMachine


def what_is_lost(step: int, checkpoint: int | None) -> str:
    """Describe the progress that cancelling a run loses."""
    from launcher.monitor.checkpoints import LossAtRisk

    return LossAtRisk(step, checkpoint).in_words()


def ask_to_cancel(
    screen: Screen[None],
    directory: str,
    name: str,
    lost: str,
    on_start: Callable[[], None],
    later: Callable[[], None] | None = None,
    machine: WorkMachine | None = None,
) -> None:
    """Ask, then cancel the run of a machine (None: this one); `on_start` is called when that begins.

    `later`, where given, is called if the run is to be cancelled after its next checkpoint.
    The screen gets an `ActionFailed` message if the run does not stop.
    """
    order = partial(cancel, directory, machine)

    def on_error(error: ExplainedError) -> None:
        from launcher.ownership import ForeignRunError

        if isinstance(error, ForeignRunError):
            call_on(screen, partial(ask_to_trust, screen, error, partial(order, trust=True)))
        else:
            post(screen, ActionFailed(error))

    def answered(answer: str | None) -> None:
        if answer == "later" and later is not None:
            later()
        if answer == "cancel":
            on_start()
            in_background(order, "cancel", on_error)

    text = f"{name}\n\n{lost}\nFiles written so far are kept."
    choices = [DialogChoice("y", "cancel the run", "cancel"), DialogChoice("n", "keep it running", "keep")]
    if later is not None:
        choices.append(DialogChoice("k", "cancel it after its next checkpoint", "later"))
    screen.app.push_screen(ChoiceDialog("Cancel this run?", text, choices, chosen=1), answered)


def ask_to_trust(screen: Screen[None], error: ForeignRunError, act: Callable[[], None]) -> None:
    """Ask whether an order about a run that others can write is carried out; the command is shown."""

    def answered(answer: str | None) -> None:
        if answer == "trust":
            in_background(act, "trusted order", lambda failed: post(screen, ActionFailed(failed)))
        else:
            post(screen, ActionFailed(error))

    choices = [DialogChoice("y", "run this command", "trust"), DialogChoice("n", "do nothing", "leave")]
    screen.app.push_screen(ChoiceDialog("Not only yours", error.question, choices, chosen=1), answered)


def cancel(directory: str, machine: WorkMachine | None = None, *, trust: bool = False) -> None:
    """Cancel a run of a machine and wait until its processes have ended; nothing if it has ended already.

    Raises:
        ForeignRunError: others can write its directory, and `trust` is not given.
        InputError: its directory cannot be read.
        LaunchError: it does not stop.
        TransportError: its machine does not answer.
    """
    from launcher.stop_order import stop_run

    stop_run(local() if machine is None else machine.transport(), directory, trust=trust)
