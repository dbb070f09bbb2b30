"""Completion of typed paths: shown behind the cursor, where the right arrow takes it, and by tab.

Tab completes as far as it is certain, as in a shell, and lists the continuations where there are several;
where nothing is left to complete, it goes to the next field.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester

from recipes.errors import ExplainedError
from recipes.remote_path import on_machine_of
from tui.widgets.line_input import LineInput

PathBase = Callable[[], Path]
"""Returns a path of the machine whose paths are typed; called on a thread."""
_MOST = 2000
"""Entries of a directory that are looked at."""


class PathSuggester(Suggester):
    """Suggests how a path goes on; directories are read on a thread."""

    def __init__(self, base: PathBase | None = None) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._base = base

    async def get_suggestion(self, value: str) -> str | None:
        """Return the path as far as it is certain, else its first continuation; None for none."""
        return await asyncio.to_thread(completed_path, value, self._base)


class PathInput(LineInput):
    """Input for a path, or for one of several known values that a part of a name is enough for."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "complete", "Complete", show=False)]

    class Ambiguous(Message):
        """Several continuations are there to choose from."""

        def __init__(self, field: PathInput, candidates: tuple[str, ...]) -> None:
            super().__init__()
            self.field = field
            self.candidates = candidates

    def __init__(self, base: PathBase | None = None) -> None:
        super().__init__(compact=True, select_on_focus=True, suggester=PathSuggester(base))
        self._base = base
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
        text, candidates = await asyncio.to_thread(completion, typed, self._known, self._base)
        if text != typed:
            self.value = text
            self.cursor_position = len(text)
        elif candidates:
            self.post_message(self.Ambiguous(self, candidates))
        else:
            self.screen.focus_next()


def completion(
    text: str, known: Sequence[str] = (), base: PathBase | None = None
) -> tuple[str, tuple[str, ...]]:
    """Return a typed text as far as its continuation is certain, and the candidates where that is no further.

    Candidates are the paths that begin so, then known values whose name contains the text.
    """
    paths = continuations(text, base)
    part = text.casefold()
    named = [value for value in known if part in Path(value).name.casefold() and value not in paths]
    if text in (*paths, *known):
        return text, ()
    if paths and len(shared := _shared_start(paths[0], paths[-1])) > len(text):
        return shared, ()
    candidates = (*paths, *named)
    return (candidates[0], ()) if len(candidates) == 1 else (text, candidates)


def completed_path(text: str, base: PathBase | None = None) -> str | None:
    """Return a typed path, continued: to the part that all entries share, else to the first of them."""
    paths = continuations(text, base)
    if not paths:
        return None
    shared = _shared_start(paths[0], paths[-1])
    path = shared if len(shared) > len(text) else paths[0]
    return path if path != text else None


def continuations(text: str, base: PathBase | None = None) -> tuple[str, ...]:
    """Return the existing paths that a typed one may become, one level down; directories with a slash.

    `base` returns a path of the machine that is meant; without it, this one is.
    """
    folder, _, start = text.rpartition("/")
    if not text or (not folder and not text.startswith("/") and start.startswith("~")):
        return ()
    typed_folder = text[: len(text) - len(start)]
    if base is not None:
        return tuple(typed_folder + name for name in _entries_there(base, typed_folder, start))
    return tuple(typed_folder + name for name in _entries(Path(typed_folder or ".").expanduser(), start))


def _shared_start(first: str, last: str) -> str:
    """Return what the first and the last of sorted names, and so all of them, begin with."""
    pairs = zip(first, last, strict=False)
    length = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))
    return first[:length]


def _entries_there(base: PathBase, folder: str, start: str) -> list[str]:
    """Return the names in a directory of a host that begin so; none where it does not answer."""
    hidden = start.startswith(".")
    try:
        paths = islice(on_machine_of(base(), folder or ".").expanduser().iterdir(), _MOST)
        names = [path for path in paths if path.name.startswith(start) and (hidden or path.name[0] != ".")]
        return sorted(f"{path.name}/" if path.is_dir() else path.name for path in names)
    except (OSError, ExplainedError):
        return []


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
