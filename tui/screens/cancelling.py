"""Cancellation of a run: the confirmation, with the steps at risk, and the cancellation itself."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from recipes.errors import ExplainedError
from tui.background import in_background, post
from tui.opening import ActionFailed, local
from tui.screens.dialogs import ChoiceDialog, DialogChoice


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
) -> None:
    """Ask, then cancel the run in the background; `on_start` is called when that begins.

    `later`, where given, is called if the run is to be cancelled after its next checkpoint.
    The screen gets an `ActionFailed` message if the run does not stop.
    """

    def on_error(error: ExplainedError) -> None:
        post(screen, ActionFailed(error))

    def answered(answer: str | None) -> None:
        if answer == "later" and later is not None:
            later()
        if answer == "cancel":
            on_start()
            in_background(
                lambda: cancel(directory), "cancel", lambda error: post(screen, ActionFailed(error))
            )

    text = f"{name}\n\n{lost}\nFiles written so far are kept."
    choices = [DialogChoice("y", "cancel the run", "cancel"), DialogChoice("n", "keep it running", "keep")]
    if later is not None:
        choices.append(DialogChoice("k", "cancel it after its next checkpoint", "later"))
    screen.app.push_screen(ChoiceDialog("Cancel this run?", text, choices, chosen=1), answered)


def cancel(directory: str) -> None:
    """Cancel a run and wait until its processes have ended; does nothing if it has ended already.

    Raises:
        InputError: its directory cannot be read.
        LaunchError: it does not stop.
        TransportError: its machine does not answer.
    """
    from launcher.clusters.registry import cluster_of
    from launcher.runs import load

    transport = local()
    run = load(transport, directory)
    if run.job is not None:
        cluster_of(run, transport).cancel(run, run.job)
