"""The panel of details: the error of the text, a finding, or a key, in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.content import Content

from launcher.text import clean
from tui.screens.editor.detail_lines import DetailHints, detail_lines, finding_lines
from tui.widgets.line_wrap import wrapped
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from recipes.checks import Result
    from recipes.editing import KeyDetails, OutlineRow
    from recipes.editing.edit_state import EditState

_LEAST_WIDTH = 24


class DetailsPanel(Panel):
    """Shows what has the focus in full."""

    def __init__(self) -> None:
        self._lines = StyledLines()
        self._box = VerticalScroll(self._lines, can_focus=False)
        super().__init__(self._box, id="editor-details")

    @property
    def _width(self) -> int:
        return max(self._box.size.width - 3, _LEAST_WIDTH)

    def show_error(self, state: EditState, *, has_tree: bool) -> None:
        """Show why the text cannot be read."""
        remark = "the tree is the last good one" if has_tree else ""
        self._show(self._error_lines(state.error), f"not YAML: line {state.error_line}", remark)

    def show_failure(self, error: Exception) -> None:
        """Show why the file cannot be opened."""
        self._show(self._error_lines(error), "cannot be opened")

    def _error_lines(self, error: Exception | None) -> list[Content]:
        lines = [Content(clean(text)) for text in str(error).split("\n")]
        return [piece for line in lines for piece in wrapped(line, self._width)]

    def show_finding(self, finding: Result) -> None:
        """Show a finding of the checks."""
        self._show(finding_lines(finding, self._width), f"{finding.id}: {finding.title}")

    def show_key(self, row: OutlineRow | None, details: KeyDetails, hints: DetailHints) -> None:
        """Show a key; `row` is None for one that is not set."""
        self._show(detail_lines(row, details, self._width, hints), clean(details.key), clean(details.type))

    def _show(self, lines: list[Content], title: str, subtitle: str = "") -> None:
        self._lines.set_lines(lines)
        self.set_title(title, subtitle)
        self._box.scroll_home(animate=False)
