"""The editor's panes: the widgets, where each is, and which one has the keys."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen

from tui.commands import Scope, bindings
from tui.screens.editor.checks_panel import ChecksPanel
from tui.screens.editor.details_panel import DetailsPanel
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.text_mode import RecipeTextArea
from tui.screens.editor.text_view import RecipeTextView
from tui.widgets.keybar import KeyBar
from tui.widgets.message_line import MessageLine
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

PANES = ("tree", "text", "checks")
WIDE = 110
_COMMANDS_OF_PANE = {
    "tree": ("editor.edit", "editor.find", "editor.add", "editor.save", "editor.undo", "editor.fix"),
    "text": ("editor.edit", "editor.text", "editor.external", "editor.save"),
    "checks": ("editor.fix", "editor.fit", "editor.place", "editor.save"),
}


class EditorPanes(Screen[None]):
    """Tree, text, details and checks; one column where it is narrow."""

    BINDINGS = bindings(Scope.EDITOR)
    SCOPES: tuple[Scope, ...] = (Scope.EDITOR, Scope.OUTLINE, Scope.APP)
    ABOUT = (
        "A recipe: what NeMo-RL gets at the left, the file at the right. ● is set in this file, ◆ there over "
        "a parent's value, ▲ by an override, # commented out; ↳ follows another key, ? is unknown to "
        "NeMo-RL, ✗ would fail; without a mark: inherited. Unsaved edits are kept on disk after each change."
    )

    def __init__(self) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high")]
        self.pane = "tree"
        self.title_line = StyledLines(classes="title-line")
        self.tree_view = OutlineView()
        self.text_view = RecipeTextView()
        self.text_area: RecipeTextArea | None = None
        self.strip = StyledLines(id="editor-strip")
        self.summary_line = StyledLines(id="editor-summary")
        self.message = MessageLine()
        self.key_bar = KeyBar(*self.SCOPES)
        self.tree_panel = Panel(self.tree_view, title="1 recipe", id="editor-tree")
        self.text_panel = Panel(self.text_view, title="2 file", id="editor-text")
        self.details_panel = DetailsPanel()
        self.checks_panel = ChecksPanel()
        self.finding_list = self.checks_panel.finding_list

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title_line
        with Vertical(id="editor"):
            with Horizontal(id="editor-upper"):
                yield self.tree_panel
                yield self.text_panel
            with Horizontal(id="editor-lower"):
                yield self.details_panel
                yield self.checks_panel
        yield self.strip
        yield self.summary_line
        yield self.message
        yield self.key_bar

    @property
    def footer_first(self) -> tuple[str, ...]:
        """Commands that the footer shows first."""
        return _COMMANDS_OF_PANE[self.pane]

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane to the front and focus it."""
        self.pane = pane
        for name in PANES:
            self.set_class(name == pane, f"-{name}")
        shown = self.text_area or self.text_view
        self.set_focus({"tree": self.tree_view, "text": shown, "checks": self.finding_list}[pane])
        self.pane_shown()
        self.key_bar.update_keys()

    def action_next_pane(self, step: int) -> None:
        """Go to the next or the previous pane."""
        self.action_show_pane(PANES[(PANES.index(self.pane) + step) % len(PANES)])

    def pane_shown(self) -> None:
        """Note that another pane has the keys."""
