"""The panels of the wizard, and how they share the screen: form, field, facts, checks, review."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.screen import Screen

from tui.commands import Scope, bindings
from tui.widgets.form import Form
from tui.widgets.keybar import KeyBar
from tui.widgets.lines_box import LinesBox
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

WIDE = 110
"""Columns from which facts stand beside the form."""
_FRAME_ROWS = 4
"""Rows of title line, memory or message, summary and key bar."""
_LEAST_FIELD_ROWS = 6
"""Rows that the details of the field keep, however long the form is."""
_LEAST_CHECK_ROWS = 10
_LEAST_CHOSEN_ROWS = 6
_CHECK_STEP = 4
_MARGIN = 3
"""Columns beside the lines of a box: its padding, and its scroll bar."""


class StepLayout(Screen[None]):
    """Lays the wizard out; what the panels show is decided by its subclass."""

    BINDINGS = bindings(Scope.WIZARD)
    SCOPES = (Scope.WIZARD, Scope.APP)

    def __init__(self) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high")]
        self.title_line = StyledLines(classes="title-line")
        self.form = Form()
        self.field_box, self.check_box, self.fact_box = LinesBox(), LinesBox(), LinesBox()
        self.chosen_box, self.review_box = LinesBox(), LinesBox()
        self.form_panel = Panel(self.form, id="wizard-form")
        self.field_panel = Panel(self.field_box, id="wizard-field")
        self.facts_panel = Panel(self.fact_box, title="facts", id="wizard-facts")
        self.checks_panel = Panel(self.check_box, title="checks", id="wizard-checks")
        self.chosen_panel = Panel(self.chosen_box, title="your changes", id="wizard-chosen")
        self.review_panel = Panel(self.review_box, title="review", id="wizard-review")
        self.strip = StyledLines(id="wizard-strip")
        self.summary = StyledLines(id="wizard-summary")
        self.key_bar = KeyBar(*self.SCOPES)

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        yield self.title_line
        with Container(id="wizard"):
            with Vertical(id="wizard-left"):
                yield self.form_panel
                yield self.field_panel
            yield self.review_panel
            with Vertical(id="wizard-right"):
                yield self.facts_panel
                yield self.checks_panel
                yield self.chosen_panel
        yield self.strip
        yield self.summary
        yield self.key_bar

    @property
    def is_wide(self) -> bool:
        """Whether the facts stand beside the form."""
        return self.size.width >= WIDE

    @property
    def column_width(self) -> int:
        """Cells of a line in one of the columns."""
        return max((self.size.width // 2 if self.is_wide else self.size.width) - _MARGIN - 1, 24)

    def share_rows(self, fact_rows: int, check_rows: int) -> None:
        """Share the rows out: the form gets what it needs, as long as the details keep a few."""
        free = max(self.size.height - _FRAME_ROWS + self.is_wide, 1)
        roomy = self.has_class("-wide") and self.has_class("-high")
        needed = len(self.form.rows) + 2 + 2 * roomy
        self.form_panel.styles.height = min(needed, max(free - _LEAST_FIELD_ROWS, 3))
        facts = min(fact_rows + 2, max(free - _LEAST_CHECK_ROWS, 3)) if fact_rows else 0
        if not self.is_wide:
            return
        self.facts_panel.display = bool(facts)
        self.facts_panel.styles.height = facts
        # In steps: a finding more or less is no reason to lay the screen out again.
        checks = -(-(check_rows + 2) // _CHECK_STEP) * _CHECK_STEP
        self.chosen_panel.display = free - facts - checks >= _LEAST_CHOSEN_ROWS
        self.checks_panel.styles.height = checks if self.chosen_panel.display else "1fr"
