"""Editors of a recipe that are open, told of each other by small files in the state directory.

Nothing is locked: an editor that was killed leaves a file behind, which is recognised by its process (host,
boot, process number, start time). An editor on another host counts as open while it renews its file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from launcher.base_directories import DRAFTS, state_root
from launcher.storage.private_files import read_private, write_private
from launcher.transports.base import ProcessId
from launcher.transports.local import LocalTransport, this_process
from recipes.remote_path import identity_of, machine_of

RENEW_S = 30.0
"""Time between renewals of an open editor's file."""
_STALE_S = 150.0
"""Age past which the file of an editor on another host counts as left behind."""
_SUFFIX = ".editor.json"


class EditorProcess(BaseModel):
    """The process of an editor, as files of the state directory hold it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str
    boot: str
    pid: Annotated[int, Field(ge=1, le=2**31)]
    started: Annotated[int, Field(ge=0, le=2**63)]

    @property
    def process(self) -> ProcessId:
        """The process as transports identify it."""
        return ProcessId(self.host, self.boot, self.pid, self.started)


class EditorRecord(EditorProcess):
    """One open editor, as it is written."""

    path: str
    user: str = ""
    opened_at: Annotated[float, Field(ge=0, le=1e11)]
    renewed_at: Annotated[float, Field(ge=0, le=1e11)]

    def is_open(self, now: float) -> bool:
        """Return whether the editor's process still runs, as far as this host can know."""
        alive = LocalTransport().alive(self.process)
        return now - self.renewed_at < _STALE_S if alive is None else alive


@dataclass(frozen=True, slots=True)
class OtherEditor:
    """Another editor of the same file; `since` is when it was opened, in seconds since 1970."""

    pid: int
    host: str
    user: str
    since: float


def drafts_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of unsaved edits: $XDG_STATE_HOME/distill-tui/drafts."""
    return state_root(environment) / DRAFTS


def file_id(path: Path) -> str:
    """Return the name under which a recipe is kept: the same for all paths that lead to it."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # a loop of symlinks
        real = path.absolute()
    return hashlib.sha256(_identity(real)).hexdigest()[:20]


def _identity(path: Path) -> bytes:
    return os.fsencode(identity_of(path) if machine_of(path) else path)


class EditorPresence:
    """Mark of this process as an editor of one file."""

    def __init__(self, directory: Path, path: Path) -> None:
        self.directory = directory
        self.id = file_id(path)
        self.token = f"{os.getpid()}-{secrets.token_hex(4)}"
        now = time.time()
        own = this_process()
        self.record = EditorRecord(
            path=_text_of(path.absolute()), host=own.host, boot=own.boot, pid=own.pid, started=own.started,
            user=os.environ.get("USER", ""), opened_at=now, renewed_at=now,
        )  # fmt: skip

    @classmethod
    def enter(cls, path: Path, environment: Mapping[str, str] = os.environ) -> EditorPresence:
        """Mark this process as an editor of a file; without effect where the directory cannot be written."""
        presence = cls(drafts_root(environment), path)
        presence.renew()
        return presence

    @property
    def file(self) -> Path:
        """File of the mark."""
        return self.directory / f"{self.id}.{self.token}{_SUFFIX}"

    def renew(self) -> None:
        """Say that the editor is still open; to be called every `RENEW_S`."""
        self.record = self.record.model_copy(update={"renewed_at": time.time()})
        with contextlib.suppress(OSError):
            write_private(self.file, self.record.model_dump_json().encode())

    def others(self) -> tuple[OtherEditor, ...]:
        """Return the other editors of the file, the earliest first; marks of killed ones are removed."""
        others = []
        for file, record in _records(self.directory, self.id):
            if file == self.file:
                continue
            if record.is_open(time.time()):
                others.append(OtherEditor(record.pid, record.host, record.user, record.opened_at))
            else:
                with contextlib.suppress(OSError):
                    file.unlink()
        return tuple(sorted(others, key=lambda other: other.since))

    def leave(self) -> None:
        """Take the mark away."""
        with contextlib.suppress(OSError):
            self.file.unlink()


def open_processes(directory: Path) -> frozenset[ProcessId]:
    """Return the processes of all editors that are open."""
    now = time.time()
    return frozenset(record.process for _, record in _records(directory, "") if record.is_open(now))


def _records(directory: Path, id_: str) -> list[tuple[Path, EditorRecord]]:
    records = []
    try:
        files = [file for file in directory.iterdir() if file.name.endswith(_SUFFIX)]
    except OSError:
        return []
    for file in files:
        if not file.name.startswith(id_) or file.name.startswith("."):
            continue
        try:
            records.append((file, EditorRecord.model_validate_json(read_private(file))))
        except (OSError, ValidationError):  # gone meanwhile, or damaged: then it tells nothing
            continue
    return records


def _text_of(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode()
