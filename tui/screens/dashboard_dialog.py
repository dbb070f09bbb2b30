"""The Ray dashboard of a run: its port is opened, its address shown and copied."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.screen import Screen

from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.clipboard import copy_to_tmux, in_tmux
from tui.opening import ActionFailed
from tui.screens.dialogs import ChoiceDialog, DialogChoice

if TYPE_CHECKING:
    from launcher.runs import Run
    from tui.screens.host import Host
    from tui.work_machine import WorkMachine

_TEXT = (
    "{url}\n\nOn {node}. The address is copied, and works once, in one browser on this machine: a port of "
    "its loopback leads there until the app ends."
)


def show_dashboard(
    screen: Screen[None],
    host: Host,
    machine: WorkMachine,
    run: Run,
    *,
    note: Callable[[str], None],
) -> None:
    """Open a port to the dashboard of a run, show its address and copy it; `note` shows a sentence."""

    def open_port() -> None:
        url, node = host.dashboards.open(machine, run)
        copied = in_tmux(os.environ) and copy_to_tmux(url)
        call_on(screen, lambda: shown(url, node, copied=copied))

    def shown(url: str, node: str, *, copied: bool) -> None:
        note("")
        if not copied:
            screen.app.copy_to_clipboard(url)
        choices = [
            DialogChoice("o", "OK; the port stays open", "ok"),
            DialogChoice("x", "close the port", "close"),
        ]
        dialog = ChoiceDialog(f"Ray dashboard of {run.spec.name}", _TEXT.format(url=url, node=node), choices)
        screen.app.push_screen(dialog, answered)

    def answered(answer: str | None) -> None:
        if answer == "close":
            host.dashboards.close_port(machine.name, run.directory)
            note("the port to the dashboard is closed")

    def failed(error: ExplainedError) -> None:
        call_on(screen, lambda: note(""))
        post(screen, ActionFailed(error))

    note("looking for the run's Ray dashboard …")
    in_background(open_port, "dashboard", failed)
