"""What a screen says of the connection to the host that it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launcher.text import clean

if TYPE_CHECKING:
    from tui.screens.host import Host


def connection_words(host: Host, machine: str) -> str:
    """Return what is to be said of the connection; empty where it is up, and for this machine."""
    state = host.machine(machine).state() if machine else None
    return clean(state.in_words(host.now())) if state is not None else ""


def connection_part(host: Host, machine: str) -> tuple[str, str] | None:
    """Return the same as a part of a title line, with its style."""
    words = connection_words(host, machine)
    return (f"  ! {words}", "$text-warning") if words else None
