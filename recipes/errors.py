"""Errors a user can act on: what happened, where, what to do."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from recipes.printable import visible
from recipes.secrets import masked

if TYPE_CHECKING:
    from pathlib import Path


class Exit(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    FAILED = 1
    """The command failed."""
    USAGE = 2
    """The command or its input is wrong."""
    OUTSIDE = 3
    """A file system, a scheduler or a connection failed."""


class FilePosition(NamedTuple):
    """Position in a file; line and column count from 1, 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Render as `file:line:column`, leaving out what is unknown."""
        parts = [self.file]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


class ExplainedError(Exception):
    """Error that a user can act on. Shown as at most three lines, never as a traceback."""

    exit_code: Exit = Exit.FAILED

    def __init__(self, what: str, *, where: FilePosition | Path | str | None = None, fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        """Render what, where and what to do on up to three lines, as they may be printed."""
        lines = [self.what]
        if self.where is not None:
            lines.append(f"  in {self.where}")
        if self.fix:
            lines.append(f"  {self.fix}")
        return "\n".join(visible(masked(line)) for line in lines)


class RecipeError(ExplainedError):
    """Error in a recipe: it cannot be read, or a request for it is invalid."""

    exit_code = Exit.USAGE
