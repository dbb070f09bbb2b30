"""Unsaved edits of recipes, kept in the user's state directory until they are saved or discarded.

Each editor has a file of its own for each recipe, so that two editors of one recipe do not overwrite each
other's edits. A draft whose editor is gone is offered to the next one. It is written after each change,
without a flush to the disk (that follows when the typing pauses): a killed process loses nothing that was
written.
The file is a line of JSON and the text as it is, so that it can be rescued by hand, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote_to_bytes

from pydantic import Field, ValidationError

from launcher.storage.editors import EditorProcess, drafts_root, file_id, open_processes
from launcher.storage.private_files import read_private, write_private
from launcher.transports.base import ProcessId
from launcher.transports.local import LocalTransport, this_process
from recipes.limits import FILE_SECONDS
from recipes.reading import within
from recipes.remote_path import machine_of

_SUFFIX = ".draft.json"
_PAUSE_S = 1.0
"""Pause in the typing after which a draft is flushed to the disk."""
_LEFTOVER_S = 86400.0
"""Age of a temporary file past which the process that wrote it must have been killed."""


class DraftRecord(EditorProcess):
    """Draft as it is written."""

    path: str
    """Percent-encoded: a path may hold bytes that are no UTF-8."""
    opened_sha256: str
    """Digest of the recipe file that was edited, "" where there was none."""
    saved_at: Annotated[float, Field(ge=0, le=1e11)]
    closed: bool = False
    """Whether the editor was left, though its process may go on."""
    machine: str = ""
    """Name of the host that has the recipe; empty for this machine."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Unsaved text of a recipe; `saved_at` is in seconds since 1970."""

    file: Path
    path: Path
    text: str
    opened_sha256: str
    saved_at: float
    machine: str = ""
    """Name of the host that has the recipe; empty for this machine."""

    @property
    def age_s(self) -> float:
        """Seconds since the last change."""
        return max(time.time() - self.saved_at, 0.0)

    def differs_from(self, data: bytes | None) -> bool:
        """Return whether the text is another one than a file's."""
        return data is None or self.text.encode("utf-8", "surrogatepass") != data

    def is_of(self, data: bytes | None) -> bool:
        """Return whether the edits began with these bytes; otherwise the file changed since."""
        return self.opened_sha256 == digest(data)


def digest(data: bytes | None) -> str:
    """Return the digest of a file's bytes; "" for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


class DraftStore:
    """Drafts of one user."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> DraftStore:
        """Return the user's drafts."""
        return cls(drafts_root(environment))

    def save(
        self,
        token: str,
        path: Path,
        text: str,
        opened: bytes | None,
        *,
        flush: bool = False,
        closed: bool = False,
    ) -> Path:
        """Write a draft; raises `OSError`. `token` tells the editors of one recipe apart."""
        own = this_process()
        record = DraftRecord(
            path=quote(os.fsencode(str(path.absolute()))),
            machine=machine_of(path),
            opened_sha256=digest(opened),
            saved_at=time.time(),
            host=own.host,
            boot=own.boot,
            pid=own.pid,
            started=own.started,
            closed=closed,
        )
        file = self.file(token, path)
        header = record.model_dump_json().encode("ascii")
        write_private(file, header + b"\n" + text.encode("utf-8", "surrogatepass"), flush=flush)
        return file

    def file(self, token: str, path: Path) -> Path:
        """Return the file of an editor's draft."""
        return self.directory / f"{file_id(path)}.{token}{_SUFFIX}"

    def writer(self, path: Path, token: str = "") -> DraftWriter:
        """Return the writer of this editor's draft of a recipe."""
        return DraftWriter(self, path, token or f"{os.getpid()}-{os.urandom(4).hex()}")

    def orphans(self, path: Path | None = None) -> tuple[Draft, ...]:
        """Return the drafts, of one recipe or of all, whose editor is gone; the latest first.

        Temporary files of killed editors are removed. There are none where their directory gives no answer.
        """
        try:
            return within(lambda: self._orphans(path), FILE_SECONDS.value, self.directory)
        except TimeoutError:
            return ()

    def _orphans(self, path: Path | None) -> tuple[Draft, ...]:
        try:
            files = list(self.directory.iterdir())
        except OSError:
            return ()
        start = file_id(path) if path is not None else ""
        opened = open_processes(self.directory)
        drafts = []
        for file in files:
            if file.name.startswith("."):
                _remove_leftover(file)
            elif file.name.endswith(_SUFFIX) and file.name.startswith(start):
                draft = _orphan(file, opened)
                if draft is not None:
                    drafts.append(draft)
        return tuple(sorted(drafts, key=lambda draft: -draft.saved_at))

    def discard(self, draft: Draft) -> None:
        """Remove a draft."""
        with contextlib.suppress(OSError):
            draft.file.unlink()


def read_draft(file: Path) -> tuple[DraftRecord, str] | None:
    """Return a draft's record and its text; None for a damaged one, and for one that is gone."""
    try:
        header, _, body = read_private(file).partition(b"\n")
        return DraftRecord.model_validate_json(header), body.decode("utf-8", "surrogatepass")
    except (OSError, ValidationError, UnicodeDecodeError):
        return None


def _orphan(file: Path, opened: frozenset[ProcessId]) -> Draft | None:
    """Read a draft; None for one whose editor is open, and for a damaged one."""
    held = read_draft(file)
    if held is None:
        return None
    record, text = held
    if not record.closed and (record.process in opened or LocalTransport().alive(record.process)):
        return None
    path = Path(os.fsdecode(unquote_to_bytes(record.path).replace(b"\0", b"")))
    return Draft(file, path, text, record.opened_sha256, record.saved_at, record.machine)


def _remove_leftover(file: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - file.stat().st_mtime > _LEFTOVER_S:
            file.unlink()


class DraftWriter:
    """Writer of one editor's draft of one recipe, on a thread of its own: the latest text wins."""

    def __init__(self, store: DraftStore, path: Path, token: str) -> None:
        self.store = store
        self.path = path
        self.token = token
        self.error: OSError | None = None
        """Why the last text could not be written; None where it was."""
        self._condition = threading.Condition()
        self._pending: tuple[str, bytes | None] | None = None
        self._kept: tuple[str, bytes | None] | None = None
        """The last text, unless it was discarded."""
        self._writing = False
        self._discarded = False
        self._closing = False
        self._saved = False
        """Whether the file was written and not discarded."""
        self._thread: threading.Thread | None = None

    def put(self, text: str, opened: bytes | None) -> None:
        """Have a text written; returns at once. `opened` are the bytes of the file that is edited."""
        with self._condition:
            self._pending = self._kept = (text, opened)
            self._discarded = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="drafts", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the last text is written; False if it takes longer."""
        with self._condition:
            return self._condition.wait_for(lambda: self._pending is None and not self._writing, timeout_s)

    def discard(self) -> None:
        """Remove the draft: the text was saved, or is not wanted."""
        with self._condition:
            self._pending, self._kept, self._discarded = None, None, True
            self._condition.wait_for(lambda: not self._writing, 5.0)
            self._saved = False
        with contextlib.suppress(OSError):
            self.store.file(self.token, self.path).unlink()

    def close(self, timeout_s: float = 5.0) -> None:
        """Write the last text, and leave the draft to the next editor of the file."""
        with self._condition:
            self._closing = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _work(self) -> None:
        written: tuple[str, bytes | None] | None = None
        closing = False
        while not closing:
            with self._condition:
                self._condition.wait_for(
                    lambda: self._pending is not None or self._closing,
                    None if written is None else _PAUSE_S,
                )
                flush, closing = self._pending is None, self._closing
                job = self._kept if closing else written if flush else self._pending
                self._pending, written = None, None if flush else job
                self._writing = job is not None and not self._discarded
            if self._writing and job is not None:
                self._write(job, flush=flush or closing, closed=closing)
            with self._condition:
                self._writing = False
                self._condition.notify_all()

    def _write(self, job: tuple[str, bytes | None], *, flush: bool, closed: bool) -> None:
        if flush and self._saved and not self.store.file(self.token, self.path).exists():
            return  # it was taken over, or discarded, by another one
        try:
            self.store.save(self.token, self.path, job[0], job[1], flush=flush, closed=closed)
            self._saved, self.error = True, None
        except OSError as error:
            self.error = error
