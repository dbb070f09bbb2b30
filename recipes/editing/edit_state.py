"""Text of a recipe under edit, with the last reading of it that is YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.errors import FilePosition, RecipeError
from recipes.revision import Revision
from recipes.yaml.offsets import LINE_BREAK
from recipes.yaml.parse import parse

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class EditState:
    """One state of the text; immutable, so that a thread may read it.

    `revision` is the text parsed. Where `error` says why the text is no YAML, it is the last earlier
    text that was.
    """

    path: Path
    text: str
    revision: Revision
    error: RecipeError | None = None

    @property
    def is_yaml(self) -> bool:
        """Return whether the text is YAML, so that `revision` is its own."""
        return self.error is None

    @property
    def error_line(self) -> int | None:
        """Line of the error, counted from 1; None where there is none.

        An error at the end of the text, such as a bracket that is not closed, counts for the last line.
        """
        where = self.error.where if self.error is not None else None
        if not isinstance(where, FilePosition) or not where.line:
            return None
        return max(min(where.line, len(LINE_BREAK.split(self.text.rstrip()))), 1)


def first_state(path: Path, text: str) -> EditState:
    """Read a text that has no earlier state; one that is no YAML begins with an empty tree."""
    try:
        return EditState(path, text, Revision(parse(text, str(path))))
    except RecipeError as error:
        return EditState(path, text, Revision(parse("", str(path))), error)


def read_text(state: EditState, text: str) -> EditState:
    """Return the state with another text; of one that is no YAML the tree stays the last good one."""
    if text == state.text:
        return state
    try:
        return EditState(state.path, text, Revision(parse(text, str(state.path))))
    except RecipeError as error:
        return EditState(state.path, text, state.revision, error)
