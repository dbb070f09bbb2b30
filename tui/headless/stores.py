"""The user's runs, as every command opens them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

    from launcher.overview.measured_memory import MeasuredEstimate
    from launcher.runs import RunStore
    from recipes.inheritance import EffectiveRecipe


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


def measured_here(recipe: EffectiveRecipe, path: Path) -> MeasuredEstimate | None:
    """Return the measured peak of the latest run of a recipe beside its estimate; None without one."""
    from launcher.overview.measured_memory import measured_memory, models_in
    from recipes.planning import Setup
    from recipes.remote_path import RemotePath

    if isinstance(path, RemotePath):  # its runs are on another machine
        return None

    try:
        store = run_store()
    except ExplainedError:  # settings that cannot be read: the memory of a recipe does not need them
        return None
    return measured_memory(
        store.transport, store.root, os.path.abspath(path), Setup.of(recipe).nodes, models_in(recipe)
    )
