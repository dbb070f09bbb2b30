"""The user's runs, as every command opens them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.runs import RunStore


def run_store() -> RunStore:
    """Return the store of the user's runs on this machine."""
    from launcher.paths import runs_root
    from launcher.runs import user_store
    from launcher.transports.local import LocalTransport

    return user_store(LocalTransport(), runs_root())
