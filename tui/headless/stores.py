"""The user's runs, as every command opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.runs import RunStore


def run_store(host: str | None = None) -> RunStore:
    """Return the store of the user's runs on this machine, or on another one over SSH.

    Raises:
        InputError: the host's name or its configuration is invalid, or its settings cannot be read.
        TransportError: it cannot be reached, or does not let the user in.
    """
    if host is not None:
        from launcher.runs import store_on
        from tui.headless.hosts import transport_to

        return store_on(transport_to(host))
    from launcher.paths import runs_root
    from launcher.runs import user_store
    from launcher.transports.local import LocalTransport

    return user_store(LocalTransport(), runs_root())
