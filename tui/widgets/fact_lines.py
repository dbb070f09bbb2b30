"""Two-column facts: a label and its value, wrapped under itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.content import Content

from tui.theme import LABEL_COLUMNS
from tui.widgets.line_wrap import wrapped

_LEAST = 16


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled value; a label is given once for several values that follow each other."""

    label: str
    value: Content | str
    style: str = ""
    mark: str = ""
    """Glyph in front of the value."""

    @property
    def content(self) -> Content:
        """The value with its style."""
        value = self.value if isinstance(self.value, Content) else Content(self.value)
        return value.stylize(self.style) if self.style else value


def fact_lines(facts: Iterable[Fact], width: int, *, label_columns: int = LABEL_COLUMNS) -> list[Content]:
    """Lay facts out in `width` cells: values wrap at words, under the value's first column."""
    room = max(width - label_columns, _LEAST)
    lines: list[Content] = []
    label = ""
    for item in facts:
        head = "" if item.label == label else item.label
        label = item.label
        mark = f"{item.mark} " if item.mark else ""
        pieces = wrapped(item.content, room - len(mark))
        for index, piece in enumerate(pieces):
            first = index == 0
            lines.append(
                Content.assemble(
                    (f"{head if first else '':<{label_columns}}", "dim"),
                    (mark if first else " " * len(mark), item.style),
                    piece,
                )
            )
    return lines
