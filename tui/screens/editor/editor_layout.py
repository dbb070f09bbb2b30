"""The editor's panes: tree, text, details, checks; what each shows, and how they stay in step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer

from launcher.text import clean
from recipes.checks import Result
from recipes.editing import Placement
from tui.commands import Scope, bindings
from tui.screens.editor.checks_panel import MEMORY_UNKNOWN, ChecksPanel
from tui.screens.editor.details_panel import DetailsPanel
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.preflight_lines import (
    difference_text,
    findings_of,
    memory_strip,
    outcomes_by_key,
    placement_text,
    summary,
)
from tui.screens.editor.session_worker import (
    AnalysisReady,
    JobFailed,
    OpenedFile,
    PreviewRefused,
    SessionChanged,
    SessionView,
    SessionWorker,
)
from tui.screens.editor.text_mode import RecipeTextArea
from tui.screens.editor.text_view import RecipeTextView
from tui.screens.editor.title_text import title_text
from tui.screens.host import Host
from tui.widgets.choice_list import ChoiceList
from tui.widgets.entry_dialog import EntryDialog
from tui.widgets.keybar import KeyBar
from tui.widgets.message_line import MessageLine
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from recipes.editing import Analysis, KeyDetails, OutlineRow

PANES = ("tree", "text", "checks")
WIDE = 110
_DETAILS_DELAY_S = 0.02
"""Pause of the cursor after which the details are looked up: holding a key down skips them."""
_COMMANDS_OF_PANE = {
    "tree": ("editor.edit", "editor.find", "editor.add", "editor.save", "editor.undo", "editor.fix"),
    "text": ("editor.edit", "editor.text", "editor.external", "editor.save"),
    "checks": ("editor.fix", "editor.fit", "editor.place", "editor.save"),
}


class EditorLayout(Screen[None]):
    """Shows a session and its analysis; the commands are those of its subclass."""

    BINDINGS = bindings(Scope.EDITOR)
    SCOPES: tuple[Scope, ...] = (Scope.EDITOR, Scope.OUTLINE, Scope.APP)
    ABOUT = (
        "A recipe: what NeMo-RL gets at the left, the file at the right. ● is set in this file, ◆ there over "
        "a parent's value, ▲ by an override, # commented out; ↳ follows another key, ? is unknown to "
        "NeMo-RL, ✗ would fail; without a mark: inherited. Unsaved edits are kept on disk after each change."
    )

    def __init__(self, host: Host, file: OpenedFile, key: str = "", line: int = 0) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high")]
        self.host, self.file = host, file
        self._first_key, self._first_line = key, line
        self.placement = Placement()
        self.worker = SessionWorker(self, file, self.placement)
        self.view: SessionView | None = None
        self.analysis: Analysis | None = None
        """The analysis of the present text, without what is still being typed."""
        self.findings: tuple[Result, ...] = ()
        self.pane = "tree"
        self.others = ""
        """Who else edits the file."""
        self._has_error = False
        self._done = ""
        """Words for the edit that the next analysis follows."""
        self._details: KeyDetails | None = None
        self._details_timer: Timer | None = None
        self._in_step = False
        """Whether a pane is moved because the other one moved."""
        self.title_line = StyledLines(classes="title-line")
        self.tree_view = OutlineView()
        self.text_view = RecipeTextView()
        self.text_area: RecipeTextArea | None = None
        self.strip = StyledLines(id="editor-strip")
        self.summary_line = StyledLines(id="editor-summary")
        self.message = MessageLine()
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
        yield KeyBar(*self.SCOPES)

    def on_mount(self) -> None:
        """Show the frame; the file is read on a thread."""
        self.action_show_pane("tree")
        self.show_title()
        self.message.say("reading the recipe …")
        self.worker.start()

    async def on_unmount(self) -> None:
        """End the thread; what was typed last is on disk then."""
        self.worker.stop()
        await asyncio.to_thread(self.worker.wait)

    @property
    def unsaved_remark(self) -> str:
        """Words for unsaved edits that are kept; empty where there are none."""
        if self.view is None or not self.view.dirty:
            return ""
        return f"unsaved edits of {clean(self.file.path.name)} are kept, and offered the next time"

    @property
    def would_lose_edits(self) -> bool:
        """Whether leaving would lose edits: they are not saved, and no draft can be written."""
        return self.view is not None and self.view.dirty and self.view.unsaved_draft

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.call_after_refresh(self._show_all)

    # ------------------------------------------------------------ what the worker reports

    def on_session_changed(self, event: SessionChanged) -> None:
        """Show the text at once; the tree follows with its analysis."""
        event.stop()
        self.view = event.view
        state = event.view.state
        self.text_view.show(state.text, event.view.changed_lines, state.error_line or 0)
        if event.done:
            self._done = event.done
            self.message.say(event.done)
            if self.text_area is not None and self.text_area.text != state.text:
                self.text_area.replace_by(state.text)
        self.show_title()

    def on_analysis_ready(self, event: AnalysisReady) -> None:
        """Show what the checks say; of a preview only that, for its tree is not the text's."""
        event.stop()
        analysis, before = event.analysis, self.analysis
        text, outcome = difference_text(before, analysis)
        dialog = self.app.screen
        if event.preview:
            if isinstance(dialog, EntryDialog):
                dialog.say(text or "no new failure", outcome or "pass")
            self._show_checks(analysis)
            return
        self.analysis = analysis
        self.findings = findings_of(analysis)
        self._show_details()
        had_error, self._has_error = self._has_error, analysis.error is not None
        if analysis.error is not None:
            self.message.say(_error_text(analysis.error), "fail")
        elif text:
            # What would fail is said first: the line may be too short for both.
            parts = (text, self._done) if outcome == "fail" else (self._done, text)
            self.message.say(" · ".join(filter(None, parts)), outcome)
        elif before is None or had_error:
            self.message.say(self._done)
        self._done = ""
        self._show_analysis(analysis, first=before is None)

    def on_preview_refused(self, event: PreviewRefused) -> None:
        """Say why the value that is being typed cannot stand there."""
        event.stop()
        dialog = self.app.screen
        if isinstance(dialog, EntryDialog):
            dialog.say(_error_text(event.error), "fail")

    def on_job_failed(self, event: JobFailed) -> None:
        """Say why a job could not be done."""
        event.stop()
        if event.retry is not None:
            event.retry(event.error)
        self.message.say(_error_text(event.error), "fail")

    # ------------------------------------------------------------ showing

    def _show_all(self) -> None:
        self.show_title()
        if self.analysis is not None:
            self._show_checks(self.analysis)
            self._show_details()
        self.query_one(KeyBar).update_keys()

    def _show_analysis(self, analysis: Analysis, *, first: bool) -> None:
        self.tree_view.show(analysis.outline, outcomes_by_key(analysis.report.results))
        self.tree_panel.set_title(
            "1 recipe", f"{self._own_keys(analysis)} set here of {len(analysis.outline.rows)}"
        )
        if first:
            self._go_first(analysis)
        self._show_checks(analysis)
        self._look_up_details()
        self._mark_text()

    @staticmethod
    def _own_keys(analysis: Analysis) -> int:
        return sum(row.state == "own" and not row.size for row in analysis.outline.rows)

    def _go_first(self, analysis: Analysis) -> None:
        """Go to the key, or the line, that the editor was opened for."""
        index = analysis.outline.at_line(self._first_line) if self._first_line else None
        key = analysis.outline.rows[index].key if index is not None else self._first_key
        if key:
            self.go_to(key)

    def _show_checks(self, analysis: Analysis) -> None:
        width = max(self.size.width - 2, 1)
        self.checks_panel.show(analysis, self.placement)
        if analysis.memory is not None:
            self.strip.set_lines([memory_strip(analysis.memory, width)])
        else:
            self.strip.set_lines([Content(MEMORY_UNKNOWN).stylize("dim")])
        place = placement_text(self.placement, analysis)
        line = Content.assemble(summary(analysis), (f"   on {place}", "dim"))
        self.summary_line.set_lines([line.truncate(width, ellipsis=True)])
        self.query_one(KeyBar).update_keys()

    def show_title(self) -> None:
        """Show the file's name, and whether there is something to save."""
        line = title_text(self.file.path, self.view, self.others)
        self.title_line.set_lines([line.truncate(max(self.size.width, 1), ellipsis=True)])

    @property
    def row(self) -> OutlineRow | None:
        """The row of the current key."""
        return self.tree_view.current if self.analysis is not None else None

    @property
    def current_line(self) -> int:
        """Line of the text that the user is at, counted from 1."""
        if self.text_area is not None:
            return self.text_area.cursor_location[0] + 1
        row = self.row
        if self.pane != "text" and row is not None and row.lines is not None:
            return row.lines.first
        return self.text_view.line

    def _look_up_details(self) -> None:
        if self._details_timer is not None:
            self._details_timer.stop()
        self._details_timer = self.set_timer(_DETAILS_DELAY_S, self._ask_details)

    def _ask_details(self) -> None:
        key = self.details_key
        if self.pane == "checks":
            self._show_details()
        if not key or self.analysis is None:
            return

        def answered(details: KeyDetails) -> None:
            if details.key == self.details_key:
                self._details = details
                self._show_details()

        self.worker.ask(lambda analyser, analysis: analyser.details(analysis, key), answered)

    @property
    def details_key(self) -> str:
        """The key whose details are shown: the current one, in the list of findings that of the finding."""
        if self.pane == "checks":
            finding = self.current_finding
            if finding is not None and finding.where:
                return finding.where[0].key
        row = self.row
        return row.key if row is not None else ""

    @property
    def current_finding(self) -> Result | None:
        """The selected finding in the list."""
        index = self.finding_list.cursor
        return self.findings[index] if 0 <= index < len(self.findings) else None

    def _show_details(self) -> None:
        """Show what has the focus in full: the error of the text, the finding, or the key."""
        details, finding, view = self._details, self.current_finding, self.view
        if self.text_area is not None and view is not None and view.state.error is not None:
            self.details_panel.show_error(view.state)
        elif self.pane == "checks" and finding is not None:
            self.details_panel.show_finding(finding)
        elif details is not None and self.analysis is not None:
            self.details_panel.show_key(self.analysis.outline.row(details.key), details)

    # ------------------------------------------------------------ in step

    def go_to(self, key: str) -> bool:
        """Move to a key, in the tree and in the text; False where it is not set."""
        return self.tree_view.go_to(key)

    def on_outline_view_key_focused(self, event: OutlineView.KeyFocused) -> None:
        """Bring the key's lines into view."""
        event.stop()
        self._look_up_details()
        if not self._in_step:
            self._mark_text()
        self._in_step = False
        self.query_one(KeyBar).update_keys()

    def _mark_text(self) -> None:
        row = self.row
        if row is not None and row.lines is not None:
            self.text_view.mark(row.lines.first, row.lines.last)
            lines = f"line {row.lines.first}" + (
                f"–{row.lines.last}" if row.lines.last > row.lines.first else ""
            )
            self.set_text_title(lines)
        else:
            self.text_view.mark(0, 0)
            self.set_text_title("not set in this file" if row is not None else "")

    def on_recipe_text_view_line_focused(self, event: RecipeTextView.LineFocused) -> None:
        """Move to the key that is written on the line."""
        event.stop()
        self._go_to_line(event.line)

    def _go_to_line(self, line: int) -> None:
        if self.analysis is None:
            return
        index = self.analysis.outline.at_line(line)
        if index is None:
            return
        row = self.analysis.outline.rows[index]
        if row.key != self.tree_view.key:
            self._in_step = True
            self.go_to(row.key)
        if row.lines is not None:
            self.text_view.mark_quietly(row.lines.first, row.lines.last)
        self.set_text_title(f"line {line}")

    def set_text_title(self, subtitle: str) -> None:
        """Set what stands at the right of the text's title."""
        self.text_panel.set_title("2 file" if self.text_area is None else "2 file: text mode", subtitle)

    def on_choice_list_moved(self, event: ChoiceList.Moved) -> None:
        """Show the selected finding in full."""
        event.stop()
        self._look_up_details()
        self.query_one(KeyBar).update_keys()

    # ------------------------------------------------------------ panes

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
        self._look_up_details()
        if self.is_mounted:
            self.query_one(KeyBar).update_keys()

    def action_next_pane(self, step: int) -> None:
        """Go to the next or the previous pane."""
        self.action_show_pane(PANES[(PANES.index(self.pane) + step) % len(PANES)])


def _error_text(error: Exception) -> str:
    """Return an error on one line: what, where, and what to do."""
    return " · ".join(part.strip() for part in str(error).split("\n") if part.strip())
