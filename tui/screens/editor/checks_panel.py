"""The panel of checks: a bar of memory for each phase, and the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from tui.screens.editor.finding_list import FindingList
from tui.screens.editor.preflight_lines import finding_choices, findings_of, memory_lines, placement_text
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from launcher.overview.measured_memory import MeasuredEstimate
    from recipes.editing import Analysis, Placement

MEMORY_UNKNOWN = "memory: unknown until the recipe can be read"
_LEAST_WIDTH = 20


class ChecksPanel(Panel):
    """Shows what the checks and the memory estimate say of the text as it stands."""

    def __init__(self) -> None:
        self._memory = StyledLines(id="editor-memory")
        self.finding_list = FindingList()
        super().__init__(self._memory, self.finding_list, title="3 checks", id="editor-checks")

    def show(
        self, analysis: Analysis, placement: Placement, measured: MeasuredEstimate | None = None
    ) -> None:
        """Show an analysis; the cursor stays where it is in the list."""
        if analysis.memory is not None:
            width = max(self.size.width - 2, _LEAST_WIDTH)
            self._memory.set_lines(memory_lines(analysis.memory, width, measured))
        else:
            self._memory.set_lines([Content(MEMORY_UNKNOWN).stylize("dim")])
        findings = findings_of(analysis)
        cursor = min(max(self.finding_list.cursor, 0), max(len(findings) - 1, 0))
        self.finding_list.show(finding_choices(findings), cursor)
        self.set_title("3 checks", placement_text(placement, analysis))
