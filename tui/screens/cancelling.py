"""Stopping a run: the question, what would be lost, and the doing."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from tui.background import in_background, post
from tui.opening import OpenFailed, local
from tui.screens.dialogs import Ask, DialogChoice


def what_is_lost(step: int, checkpoint: int | None) -> str:
    """Say what cancelling a run loses."""
    from launcher.monitor.checkpoints import LossAtRisk

    return LossAtRisk(step, checkpoint).in_words()


def ask_to_cancel(
    screen: Screen[None], directory: str, name: str, lost: str, begun: Callable[[], None]
) -> None:
    """Ask, then stop the run in the background; `begun` is called once that is under way.

    The screen gets a `OpenFailed` message if the run does not stop.
    """

    def answered(answer: str | None) -> None:
        if answer == "cancel":
            begun()
            in_background(lambda: cancel(directory), "cancel", lambda error: post(screen, OpenFailed(error)))

    text = f"{name}\n\n{lost}\nWhat it wrote so far stays."
    choices = [DialogChoice("y", "cancel the run", "cancel"), DialogChoice("n", "let it go on", "keep")]
    screen.app.push_screen(Ask("Cancel this run?", text, choices, chosen=1), answered)


def cancel(directory: str) -> None:
    """Stop a run and wait until its processes are gone; nothing happens to one that is over.

    Raises:
        InputError: its directory cannot be read.
        LaunchError: it does not stop.
        TransportError: its machine cannot be asked.
    """
    from launcher.monitor.watch_run import cluster_of
    from launcher.runs import load

    transport = local()
    run = load(transport, directory)
    if run.job is not None:
        cluster_of(run, transport).cancel(run, run.job)
