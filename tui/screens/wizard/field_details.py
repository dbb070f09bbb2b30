"""What is said of the field that has the focus: its findings in full, its legal values, its help. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.text import clean
from tui.screens.wizard.findings import MARKS, Assessment
from tui.theme import CURRENT
from tui.widgets.fact_lines import Fact, fact_lines
from tui.widgets.panel import fitted

if TYPE_CHECKING:
    from launcher.fields import Field
    from tui.screens.wizard.alternatives import FieldChoice

_MOST_ON_A_LINE = 24
_SHORT_NOTE = 20
"""Cells that the note beside a field has on a small terminal: a longer description is repeated here."""
_LONGEST_VALUE = 24
"""Values that are longer are listed by F2 alone, not on the line of values."""


@dataclass(frozen=True, slots=True)
class FieldDetails:
    """A field with everything that is known of it."""

    item: Field
    text: str
    """As it is now."""
    choices: Sequence[FieldChoice]
    """Its values, legal ones first."""
    assessment: Assessment
    guide: Sequence[str]
    """What it does, what stock recipes have, what follows."""

    def lines(self, width: int, rows: int) -> list[Content]:
        """Return the lines in `width` cells; values one below the other where `rows` are left for them."""
        lines = fact_lines(self._facts(listed=bool(rows)), width)
        if not rows or not self.choices:
            return lines
        return [*lines, Content(""), *self._listed(width, rows)]

    def _facts(self, *, listed: bool) -> Iterator[Fact]:
        for finding in self.assessment.on_field(self.item.name):
            glyph, style = MARKS[finding.level]
            yield Fact("finding", Content(clean(finding.text)), style, glyph)
        current = next((choice for choice in self.choices if choice.value == self.text), None)
        if current is not None and len(current.description) > _SHORT_NOTE and not listed:
            yield Fact("value", f"{clean(current.label or current.value)}: {clean(current.description)}")
        values = [choice for choice in self.choices if choice.value]
        if values and not listed and all(len(choice.value) <= _LONGEST_VALUE for choice in values):
            yield Fact("values", _values(values[:_MOST_ON_A_LINE], self.text))
        for sentence in self.guide:
            yield Fact("about", clean(sentence))

    def _listed(self, width: int, rows: int) -> list[Content]:
        """Return the values as a list around the present one: text, and description at a common column."""
        choices = list(self.choices)
        at = next((index for index, item in enumerate(choices) if item.value == self.text), 0)
        first = max(min(at - rows // 2, len(choices) - rows), 0)
        shown = choices[first : first + rows]
        texts = [clean(item.label or item.value or "none") for item in shown]
        described = any(item.description for item in shown)
        column = min(max(map(len, texts)) + 2, width * 2 // 3) if described else width - 2
        lines = []
        for item, text in zip(shown, texts, strict=True):
            here = item.value == self.text
            mark = (f"{CURRENT.glyph} " if here else "  ", CURRENT.style)
            note = fitted(clean(item.description), max(width - column - 2, 0)).rstrip()
            lines.append(
                Content.assemble(mark, (fitted(text, column), "bold" if here else ""), (note, "dim"))
            )
        if len(choices) > len(shown):
            lines.append(Content(f"  F2 lists all {len(choices)}").stylize("dim"))
        return lines


def _values(choices: Sequence[FieldChoice], text: str) -> Content:
    """Return values on one line, the present one bold and in brackets."""
    parts: list[tuple[str, str]] = []
    for choice in choices:
        shown, present = clean(choice.value), choice.value == text
        parts += [(f"[{shown}]" if present else shown, "bold" if present else ""), ("  ", "")]
    return Content.assemble(*parts[:-1])
