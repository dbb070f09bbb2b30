"""Completion of typed paths: shown behind the cursor, where the right arrow takes it, and by tab.

Tab completes as far as it is certain, as in a shell, and lists the continuations where there are several;
where nothing is left to complete, it goes to the next field.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester

from tui.widgets.line_input import LineInput

_MOST = 2000
"""Entries of a directory that are looked at."""


class PathSuggester(Suggester):
    """Suggests how a path goes on; directories are read on a thread."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the path as far as it is certain, else its first continuation; None for none."""
        return await asyncio.to_thread(completed_path, value)


class PathInput(LineInput):
    """Input for a path, or for one of several known values that a part of a name is enough for."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", "Complete", show=False)]

    class Ambiguous(Message):
        """Several continuations are there to choose from."""

        def __init__(self, field: PathInput, candidates: tuple[str, ...]) -> None:
            super().__init__()
            self.field = field
            self.candidates = candidates

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=True, suggester=PathSuggester())
        self._known: tuple[str, ...] = ()

    def set_values(self, values: Sequence[str]) -> None:
        """Set known values, which count besides the paths that exist."""
        self._known = tuple(values)

    async def action_complete(self) -> None:
        """Complete what was typed, or list how it may go on; else go to the next field."""
        typed = self.value
        if not typed or not self.selection.is_empty or not self.cursor_at_end:
            self.screen.focus_next()
            return
        text, candidates = await asyncio.to_thread(completion, typed, self._known)
        if text != typed:
            self.value = text
            self.cursor_position = len(text)
        elif candidates:
            self.post_message(self.Ambiguous(self, candidates))
        else:
            self.screen.focus_next()


def completion(text: str, known: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """Return a typed text as far as its continuation is certain, and the candidates where that is no further.

    Candidates are the paths that begin so, then known values whose name contains the text.
    """
    paths = continuations(text)
    part = text.casefold()
    named = [value for value in known if part in Path(value).name.casefold() and value not in paths]
    if text in (*paths, *known):
        return text, ()
    if paths and len(shared := _shared_start(paths[0], paths[-1])) > len(text):
        return shared, ()
    candidates = (*paths, *named)
    return (candidates[0], ()) if len(candidates) == 1 else (text, candidates)


def completed_path(text: str) -> str | None:
    """Return a typed path, continued: to the part that all entries share, else to the first of them."""
    paths = continuations(text)
    if not paths:
        return None
    shared = _shared_start(paths[0], paths[-1])
    path = shared if len(shared) > len(text) else paths[0]
    return path if path != text else None


def continuations(text: str) -> tuple[str, ...]:
    """Return the existing paths that a typed one may become, one level down; directories with a slash."""
    folder, _, start = text.rpartition("/")
    if not text or (not folder and not text.startswith("/") and start.startswith("~")):
        return ()
    typed_folder = text[: len(text) - len(start)]
    return tuple(typed_folder + name for name in _entries(Path(typed_folder or ".").expanduser(), start))


def _shared_start(first: str, last: str) -> str:
    """Return what the first and the last of sorted names, and so all of them, begin with."""
    pairs = zip(first, last, strict=False)
    length = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))
    return first[:length]


def _entries(directory: Path, start: str) -> list[str]:
    """Return the names that begin so, directories with a slash; hidden ones only where asked for."""
    try:
        with os.scandir(directory) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry, _ in zip(entries, range(_MOST), strict=False)
                if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith("."))
            ]
    except OSError:  # there is no such directory, or it may not be read
        return []
    return sorted(names)
