"""Directories for recipes that exist only while an editor is open on them: the choices of a wizard.

Each is in the directory of drafts, which only the user can read, and names the process that made it: one that
a killed process left behind is removed at a later start, with the drafts of its recipe.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from launcher.storage.drafts import Draft, DraftStore
from launcher.storage.editors import drafts_root
from launcher.storage.private_files import read_private, write_private
from launcher.transports.base import ProcessId
from launcher.transports.local import LocalTransport, this_process

_PREFIX = "choices-"
_OWNER = "process.json"
_UNNAMED_S = 86400.0
"""Age past which a directory that names no process is removed: it was killed in between."""


def choices_name() -> str:
    """Return a new name of choices that are in memory only, beside a recipe of a host."""
    return f"{_PREFIX}{secrets.token_hex(4)}.yaml"


def _is_of_host(draft: Draft) -> bool:
    return (
        bool(draft.machine)
        and re.fullmatch(rf"{_PREFIX}[0-9a-f]{{8}}\.yaml", Path(draft.path).name) is not None
    )


def make_directory(environment: Mapping[str, str]) -> Path:
    """Return a new directory of this process; raises `OSError`."""
    root = drafts_root(environment)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    own = this_process()
    data = {"host": own.host, "boot": own.boot, "pid": own.pid, "started": own.started}
    write_private(directory / _OWNER, json.dumps(data).encode("ascii"))
    return directory


def remove_directory(directory: Path) -> None:
    """Remove a directory that `make_directory` made, as far as that is possible."""
    shutil.rmtree(directory, ignore_errors=True)


def remove_leftovers(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Remove the directories of processes of this host that are gone; return them."""
    root = drafts_root(environment)
    try:
        directories = [path for path in root.iterdir() if path.name.startswith(_PREFIX)]
    except OSError:
        return ()
    gone = tuple(path for path in directories if not path.is_symlink() and _is_left(path))
    for directory in gone:
        remove_directory(directory)
    store = DraftStore(root)
    for draft in store.orphans():
        if _is_of_host(draft) or draft.path.parent in gone:
            store.discard(draft)
    return gone


def _is_left(directory: Path) -> bool:
    owner = _owner(directory)
    if owner is not None:
        return LocalTransport().alive(owner) is False
    with contextlib.suppress(OSError):
        return time.time() - directory.stat().st_mtime > _UNNAMED_S
    return False


def _owner(directory: Path) -> ProcessId | None:
    try:
        data = json.loads(read_private(directory / _OWNER))
        return ProcessId(str(data["host"]), str(data["boot"]), int(data["pid"]), int(data["started"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
