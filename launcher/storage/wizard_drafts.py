"""Runs that are being prepared, kept in the user's state directory until they are submitted or discarded.

Each wizard has a file of its own, so that there may be several. It is written after each key, by a thread
(`launcher.storage.drafts`): after a kill at most the last key is lost. A draft is offered again when its
wizard was left, or its process is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.base_directories import RUN_DRAFTS, state_root
from launcher.storage.drafts import DraftRecord, DraftStore, DraftWriter, read_draft
from launcher.transports.local import LocalTransport
from recipes.limits import FILE_SECONDS
from recipes.reading import within

_SUBJECT = Path("/new-run")
"""The one name of all drafts of runs in their directory."""
_FOREIGN_S = 600.0
"""Age past which a draft of a wizard on another host, which may still be open, is offered."""


@dataclass(frozen=True, slots=True)
class RunDraft:
    """A run that is being prepared."""

    state: str
    """What was typed and chosen, as JSON (`WizardState.as_json`)."""
    step: str = ""
    """Step that was shown last."""
    title: str = ""
    """Description in one line: recipe, student, teacher."""
    saved_at: float = 0.0
    """Last change, in seconds since 1970."""
    file: Path | None = None
    host: str = ""
    """Name of the host that the run is for; empty for this machine."""

    @property
    def age_s(self) -> float:
        """Seconds since the last change."""
        return max(time.time() - self.saved_at, 0.0)


class RunDraftWriter:
    """Writer of one wizard's draft, on a thread of its own: the latest wins."""

    def __init__(self, writer: DraftWriter) -> None:
        self._writer = writer
        self._last: RunDraft | None = None

    @property
    def error(self) -> OSError | None:
        """Why the last draft could not be written; None where it was."""
        return self._writer.error

    def put(self, draft: RunDraft) -> None:
        """Have a draft written; returns at once."""
        self._last = draft
        self._writer.put(_encoded(draft, is_open=True), None)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until the last draft is written; False if it takes longer."""
        return self._writer.flush(timeout_s)

    def leave(self) -> None:
        """Keep the draft for later: it is offered from now on."""
        if self._last is not None:
            self._writer.put(_encoded(self._last, is_open=False), None)
            self._writer.flush()

    def discard(self) -> None:
        """Remove the draft: the run was submitted, or is not wanted."""
        self._last = None
        self._writer.discard()


class RunDrafts:
    """Drafts of runs of one user."""

    def __init__(self, directory: Path) -> None:
        self._store = DraftStore(directory)

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> RunDrafts:
        """Return the user's drafts: $XDG_STATE_HOME/distill-tui/run-drafts."""
        return cls(state_root(environment) / RUN_DRAFTS)

    def writer(self) -> RunDraftWriter:
        """Return the writer of a new draft; nothing is written before something is put."""
        return RunDraftWriter(self._store.writer(_SUBJECT))

    def offered(self) -> tuple[RunDraft, ...]:
        """Return the drafts that no wizard is open with, the latest first; damaged ones are left out.

        There are none where their directory gives no answer.
        """
        try:
            return within(self._offered, FILE_SECONDS.value, self._store.directory)
        except TimeoutError:
            return ()

    def _offered(self) -> tuple[RunDraft, ...]:
        try:
            files = [file for file in self._store.directory.iterdir() if not file.name.startswith(".")]
        except OSError:
            return ()
        drafts = []
        for file in files:
            held = read_draft(file)
            draft = _decoded(*held, file) if held is not None else None
            if draft is not None:
                drafts.append(draft)
        return tuple(sorted(drafts, key=lambda draft: -draft.saved_at))

    def discard(self, draft: RunDraft) -> None:
        """Remove a draft."""
        if draft.file is not None:
            with contextlib.suppress(OSError):
                draft.file.unlink()

    def take(self, draft: RunDraft) -> RunDraftWriter:
        """Return a writer that goes on with a draft; its file is removed once the new one is written."""
        writer = self.writer()
        writer.put(replace(draft, file=None))
        if writer.flush() and writer.error is None:
            self.discard(draft)
        return writer


def _encoded(draft: RunDraft, *, is_open: bool) -> str:
    data = {"state": draft.state, "step": draft.step, "title": draft.title, "open": is_open}
    data |= {"host": draft.host} if draft.host else {}
    return json.dumps(data, ensure_ascii=False)


def _decoded(record: DraftRecord, text: str, file: Path) -> RunDraft | None:
    """Return a draft that may be offered; None for one that is open, and for a damaged one."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("state"), str):
        return None
    if data.get("open") and _is_open(record):
        return None
    step, title, host = (str(data.get(name) or "") for name in ("step", "title", "host"))
    return RunDraft(data["state"], step, title, record.saved_at, file, host)


def _is_open(record: DraftRecord) -> bool:
    alive = LocalTransport().alive(record.process)
    return time.time() - record.saved_at < _FOREIGN_S if alive is None else alive
