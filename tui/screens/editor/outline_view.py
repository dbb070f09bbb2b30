"""The effective recipe as a tree: a row for each key, foldable, marked by where its value comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.geometry import Offset, Size
from textual.message import Message
from textual.strip import Strip

from launcher.text import clean
from tui.commands import Scope, bindings
from tui.theme import FAILURE, OUTCOME_MARKS, UNDECIDED, StyledGlyph
from tui.widgets.line_view import LineView
from tui.widgets.panel import fitted

if TYPE_CHECKING:
    from recipes.editing import Outline, OutlineRow

OWN = StyledGlyph("●", "$text-primary")
REPLACING = StyledGlyph("◆", "$text-primary")
OVERRIDDEN = StyledGlyph("▲", "$text-warning")
COMMENTED = StyledGlyph("#", "dim")
INHERITED = StyledGlyph(" ", "")
LEGEND: tuple[tuple[StyledGlyph, str], ...] = (
    (OWN, "set in this file"),
    (REPLACING, "set in this file, over a parent's value"),
    (OVERRIDDEN, "set by an override"),
    (COMMENTED, "commented out"),
    (StyledGlyph("↳", ""), "interpolated: follows another key"),
    (UNDECIDED, "unknown to NeMo-RL"),
    (FAILURE, "would fail"),
)
"""Marks of the tree; a key without one is inherited."""
_MARKS = 4
"""Columns of the marks before the name."""
_LEAST_NAME = 14


def state_mark(row: OutlineRow) -> StyledGlyph:
    """Return the mark of where a row's value comes from."""
    if row.state == "override":
        return OVERRIDDEN
    if row.state == "commented":
        return COMMENTED
    if row.state == "own":
        return REPLACING if row.replaces else OWN
    return INHERITED


@dataclass(frozen=True, slots=True)
class OutlineCells:
    """Widths of the columns: of a name with its indentation, and of the value."""

    name: int
    value: int

    @classmethod
    def of(cls, width: int, longest: int) -> OutlineCells:
        """Divide a width: names as wide as the longest, but at most three fifths."""
        room = max(width - _MARKS, 2)
        name = min(max(longest + 2, _LEAST_NAME), room * 3 // 5)
        return cls(name, room - name)


class RowId(NamedTuple):
    """What tells a row from the others: a key may be set, and commented out elsewhere."""

    key: str
    commented: bool = False

    @classmethod
    def of(cls, row: OutlineRow) -> RowId:
        """Return a row's identity."""
        return cls(row.key, row.state == "commented")


class OutlineView(LineView, can_focus=True, inherit_bindings=False):
    """Rows of the outline, one of them the current key."""

    BINDINGS = bindings(Scope.OUTLINE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "outline--cursor", "outline--quiet", "outline--section", "outline--own", "outline--fail",
        "outline--warn", "outline--mark", "outline--preview",
    }  # fmt: skip

    class KeyFocused(Message):
        """The cursor moved to another key."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class ValueRequested(Message):
        """A key was opened with the mouse."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[OutlineRow, ...] = ()
        self._shown: list[int] = []
        self._at: dict[RowId, int] = {}
        self._folded: set[str] = set()
        self._outcomes: Mapping[str, str] = {}
        self._cells = OutlineCells(20, 20)
        self._row_id = RowId("")
        self.cursor = 0

    # ------------------------------------------------------------ content

    def show(self, outline: Outline, outcomes: Mapping[str, str]) -> None:
        """Show an outline; `outcomes`: the worst outcome of a check by key. The cursor stays on its key."""
        self._rows, self._outcomes = outline.rows, outcomes
        self._layout()
        self._settle()

    @property
    def key(self) -> str:
        """The key under the cursor."""
        return self._row_id.key

    @property
    def current(self) -> OutlineRow | None:
        """The row under the cursor."""
        return self._rows[self._shown[self.cursor]] if self.cursor < len(self._shown) else None

    def go_to(self, key: str) -> bool:
        """Move the cursor to a key, unfolding what is around it; False where there is no such key."""
        row = self._row_id if self._row_id.key == key else RowId(key)
        return self._go(row) or self._go(RowId(key)) or self._go(RowId(key, commented=True))

    def _go(self, row: RowId) -> bool:
        if row not in self._at:
            return False
        self._unfold_around(self._at[row])
        self._layout()
        self._move_to(self._shown.index(self._at[row]), jump=True)
        return True

    def value_region(self) -> tuple[Offset, int]:
        """Return where the current row's value is painted on the screen, and its width."""
        x = self.region.x + _MARKS + self._cells.name
        y = self.region.y + self.cursor - self.scroll_offset.y
        return Offset(x, y), self._cells.value

    def _layout(self) -> None:
        self._at = {RowId.of(row): index for index, row in enumerate(self._rows)}
        shown: list[int] = []
        hidden_below = -1
        for index, row in enumerate(self._rows):
            if hidden_below >= 0 and row.depth > hidden_below:
                continue
            hidden_below = row.depth if row.key in self._folded else -1
            shown.append(index)
        self._shown = shown
        self._measure()
        self.virtual_size = Size(0, len(shown))
        self.refresh()

    def _measure(self) -> None:
        longest = max((2 * row.depth + 2 + cell_len(row.name) for row in self._rows), default=0)
        self._cells = OutlineCells.of(max(self.scrollable_content_region.width, 1), longest)

    def _settle(self) -> None:
        """Keep the cursor on its key, or where the key is gone, on the nearest one around it."""
        row = self._row_id
        if row not in self._at:  # commented out, or taken back in
            row = RowId(row.key, commented=not row.commented)
        while row.key and row not in self._at:
            row = RowId(row.key.rpartition(".")[0])
        if row in self._at:
            self._unfold_around(self._at[row])
            self._layout()
            self._move_to(self._shown.index(self._at[row]))
        elif self._shown:
            self._move_to(min(self.cursor, len(self._shown) - 1))

    def _unfold_around(self, index: int) -> None:
        depth = self._rows[index].depth
        for row in reversed(self._rows[:index]):
            if row.depth < depth:
                self._folded.discard(row.key)
                depth = row.depth

    def _move_to(self, cursor: int, *, jump: bool = False) -> None:
        if not self._shown:
            return
        self.cursor = min(max(cursor, 0), len(self._shown) - 1)
        self._reveal(jump=jump)
        self.refresh()
        row = RowId.of(self._rows[self._shown[self.cursor]])
        if row != self._row_id:
            self._row_id = row
            self.post_message(self.KeyFocused(row.key))

    def _reveal(self, *, jump: bool = False) -> None:
        """Bring the cursor into view; after a jump with what is around it."""
        height, top = self.size.height, self.scroll_offset.y
        if not height:  # not laid out: the resize reveals it
            return
        if jump and not top <= self.cursor < top + height:
            self.scroll_to(y=max(self.cursor - height // 3, 0), animate=False, force=True)
        elif self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def on_resize(self) -> None:
        """Divide the new width, and keep the cursor in view."""
        self._measure()
        self._reveal(jump=True)
        self.refresh()

    def on_click(self, event: Click) -> None:
        """Move to the row that was clicked; a second click opens it."""
        event.stop()
        row = event.y + self.scroll_offset.y
        if row == self.cursor and self.has_focus:
            self.post_message(self.ValueRequested())
        elif row < len(self._shown):
            self._move_to(row)
        self.focus()

    # ------------------------------------------------------------ moving

    def action_cursor(self, step: int) -> None:
        """Move by rows."""
        self._move_to(self.cursor + step)

    def action_page(self, direction: int) -> None:
        """Move by a page."""
        self._move_to(self.cursor + direction * max(self.size.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move to the first or the last row."""
        self._move_to(0 if direction < 0 else len(self._shown) - 1)

    def toggle_fold(self) -> None:
        """Fold or unfold the section."""
        row = self.current
        if row is not None and row.size:
            self._folded ^= {row.key}
            self._layout()

    def action_fold(self) -> None:
        """Fold the section; a key's cursor goes to the section around it."""
        row = self.current
        if row is None:
            return
        if row.size and row.key not in self._folded:
            self._folded.add(row.key)
            self._layout()
            self._move_to(self.cursor)
            return
        for index in reversed(range(self.cursor)):
            if self._rows[self._shown[index]].depth < row.depth:
                self._move_to(index)
                return

    def action_unfold(self) -> None:
        """Unfold the section, or go to its first key."""
        row = self.current
        if row is None or not row.size:
            return
        if row.key in self._folded:
            self._folded.discard(row.key)
            self._layout()
        else:
            self._move_to(self.cursor + 1)

    def action_fold_all(self) -> None:
        """Fold all sections, or unfold them all."""
        sections = {row.key for row in self._rows if row.size and row.depth == 0}
        row = self.current
        if sections & self._folded:
            self._folded.clear()
        else:
            self._folded |= sections
        self._layout()
        if row is not None:
            near = (RowId.of(row), RowId(row.key.partition(".")[0]))
            at = next((self._at[item] for item in near if self._at.get(item) in self._shown), None)
            self._move_to(self._shown.index(at) if at is not None else 0)

    # ------------------------------------------------------------ painting

    def render_line(self, y: int) -> Strip:
        """Return a row: outcome, origin, name and value."""
        index, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        base = self.rich_style
        if index >= len(self._shown):
            return Strip.blank(width, base)
        row = self._rows[self._shown[index]]
        if index == self.cursor:
            base = base + self.fill("outline--cursor")
        segments = [
            *self._mark_segments(row, base),
            *self._text_segments(row, base, current=index == self.cursor),
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _mark_segments(self, row: OutlineRow, base: Style) -> list[Segment]:
        outcome = self._outcome_of(row)
        glyph = OUTCOME_MARKS[outcome].glyph if outcome else UNDECIDED.glyph if row.unknown else " "
        style = self.ink(f"outline--{outcome}") if outcome else self.ink("outline--quiet")
        mark = state_mark(row)
        return [
            Segment(f" {glyph}", base + style),
            Segment(f"{mark.glyph} ", base + self.ink("outline--mark")),
        ]

    def _outcome_of(self, row: OutlineRow) -> str:
        """Return a row's outcome; a folded section shows the worst one inside."""
        if row.key not in self._folded:
            return self._outcomes.get(row.key, "")
        inside = {
            value for key, value in self._outcomes.items() if key == row.key or key.startswith(f"{row.key}.")
        }
        return next((outcome for outcome in ("fail", "warn") if outcome in inside), "")

    def _text_segments(self, row: OutlineRow, base: Style, *, current: bool) -> list[Segment]:
        fold = ("▸ " if row.key in self._folded else "▾ ") if row.size else "  "
        name = f"{'  ' * row.depth}{fold}{clean(row.name)}"
        quiet = base + self.ink("outline--quiet")
        own = base + self.ink("outline--own")
        name_style = base + self.ink("outline--section") if row.size else own if row.state == "own" else base
        value_style = own if row.state in ("own", "override") else base if current else quiet
        if row.state == "commented":
            name_style = value_style = quiet
        cells = self._cells
        value, source = value_parts(row, folded=row.key in self._folded)
        used = min(cell_len(value), cells.value)
        return [
            Segment(f"{fitted(name, cells.name - 1)} ", name_style),
            Segment(fitted(value, used), value_style),
            Segment(fitted(source, cells.value - used), quiet),
        ]


def value_parts(row: OutlineRow, *, folded: bool) -> tuple[str, str]:
    """Return a row's value on one line, and what it follows where it is interpolated."""
    if row.size:
        return (
            "",
            f"{row.size} keys"
            if folded and row.kind == "section"
            else f"{row.size} items"
            if row.kind == "list" and folded
            else "",
        )
    value = clean(row.effective) if row.effective or not row.written else clean(row.written)
    return value, f"  ↳ {clean(row.written)}" if row.interpolated else ""
