"""What a screen says of the connection to the host that it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from launcher.text import clean
from tui.background import in_background

if TYPE_CHECKING:
    from tui.screens.host import Host
    from tui.work_machine import WorkMachine

TitlePart = tuple[str, str]
"""Words of a title line, with their style."""
ConnectionTeller = Callable[[], TitlePart | None]
"""Returns what is to be said of a connection now; None where it is up."""


class Reconnector:
    """Makes a lost connection to a host again, for a screen on which nothing else asks the host."""

    def __init__(self, host: Host, machine: str) -> None:
        self._machine = host.machine(machine)
        self._trying = False

    def try_now(self) -> None:
        """Try, on a thread, where it is lost and an attempt is due."""
        state = self._machine.state()
        if state is None or state.kind != "lost" or state.next_attempt_s or self._trying:
            return
        self._trying = True

        def attempt() -> None:
            try:
                self._machine.transport().run(["true"])
            finally:
                self._trying = False

        in_background(attempt, "reconnect", lambda _: None)  # the state of the connection says why it failed


def connection_part(host: Host, machine: str) -> TitlePart | None:
    """Return what is to be said of the connection to a host; None where it is up, and for this machine."""
    return connections_part(host, [host.machine(machine)]) if machine else None


def connections_part(host: Host, machines: Sequence[WorkMachine]) -> TitlePart | None:
    """Return the same of the first of several machines whose connection is not up."""
    states = [state for machine in machines if (state := machine.state()) is not None]
    words = next((text for state in states if (text := state.in_brief(host.now()))), "")
    return (f"  ! {clean(words)}", "$text-warning") if words else None
