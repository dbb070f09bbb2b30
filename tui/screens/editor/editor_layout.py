"""The editor as it is shown: what each pane says of session and analysis, and how they stay in step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.content import Content
from textual.timer import Timer

from launcher.errors import ConnectionLostError
from launcher.text import clean
from recipes.checks import Result
from recipes.editing import Placement
from recipes.remote_path import machine_of
from tui.chart_poller import AGAIN_S
from tui.screens.connection_words import connection_part
from tui.screens.editor.checks_panel import MEMORY_UNKNOWN
from tui.screens.editor.detail_lines import TEXT_MODE_HINTS, TREE_HINTS
from tui.screens.editor.editor_panes import EditorPanes
from tui.screens.editor.key_holds import LEAVING_KEYS, MOVING_KEYS
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.preflight_lines import (
    difference_text,
    findings_of,
    memory_strip,
    outcomes_by_key,
    placement_text,
    summary,
)
from tui.screens.editor.session_messages import (
    AnalysisReady,
    JobFailed,
    MeasurementRead,
    OutlineReady,
    PreviewRefused,
    SessionChanged,
    SessionView,
)
from tui.screens.editor.session_worker import OpenedFile, SessionWorker
from tui.screens.editor.text_view import RecipeTextView
from tui.screens.editor.title_text import title_text
from tui.screens.host import Host
from tui.widgets.choice_list import ChoiceList
from tui.widgets.entry_dialog import EntryDialog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from launcher.overview.measured_memory import MeasuredEstimate
    from recipes.editing import Analysis, KeyDetails, Outline, OutlineRow

_DETAILS_DELAY_S = 0.02
"""Pause of the cursor after which the details are looked up: holding a key down skips them."""


class EditorLayout(EditorPanes):
    """Shows a session and its analysis; the commands are those of its subclass."""

    def __init__(self, host: Host, file: OpenedFile, key: str = "", line: int = 0) -> None:
        super().__init__()
        self.host, self.file = host, file
        self._first_key, self._first_line = key, line
        self.placement = Placement()
        self._measured: MeasuredEstimate | None = None
        """Peak of an earlier run of the recipe."""
        self.worker = SessionWorker(self, file, self.placement)
        self.view: SessionView | None = None
        self.analysis: Analysis | None = None
        """The analysis of the present text, without what is still being typed."""
        self.findings: tuple[Result, ...] = ()
        self.others = ""
        """Who else edits the file."""
        self.next_key = ""
        """Key to go to once it is in the tree: the one that was set or added."""
        self.outline: Outline | None = None
        """The tree as it is shown, before the first analysis, too."""
        self._free_keys = LEAVING_KEYS
        """Keys that do not wait while the recipe is opened."""
        self._opening = True
        """Whether the recipe has not been analysed yet, or said to be unreadable."""
        self._has_error = False
        self._done = ""
        """Words for the edit that the next analysis follows."""
        self._details: KeyDetails | None = None
        self._details_timer: Timer | None = None
        self._in_step = False
        """Whether a pane is moved because the other one moved."""

    @property
    def machine_name(self) -> str:
        """Name of the host that has the recipe; empty for this machine."""
        return machine_of(self.file.path)

    def on_mount(self) -> None:
        """Show the frame; the file is read on a thread."""
        self.action_show_pane("tree")
        self.show_title()
        self.message.say("reading the recipe …")
        self.worker.start()
        if self.machine_name:
            self.set_interval(1.0, self.show_title)

    async def on_unmount(self) -> None:
        """End the thread; what was typed last is on disk then."""
        self.worker.stop()
        await asyncio.to_thread(self.worker.wait)

    def holds_key(self, key: str) -> bool:
        """Return whether a key has to wait: for the recipe, or for what the keys before it asked for."""
        if self._opening:
            return key not in self._free_keys
        return self.worker.holds.holds(key, in_dialog=self.app.screen is not self)

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
        self.text_view.show(state.text, event.view.changes.lines, state.error_line or 0)
        if event.done:
            self._done = event.done
            self.message.say(event.done)
            if self.text_area is not None and self.text_area.text != state.text:
                self.text_area.replace_by(state.text)
        self.show_title()

    def on_outline_ready(self, event: OutlineReady) -> None:
        """Show the tree; what the checks say of it follows."""
        event.stop()
        first, self.outline = self.outline is None, event.outline
        self._show_outline({}, first=first)
        if event.complete:
            self._free_keys = LEAVING_KEYS | MOVING_KEYS
        if first:
            self.message.say("checking …")
        if event.painted is not None:
            self.call_after_refresh(event.painted)

    def on_measurement_read(self, event: MeasurementRead) -> None:
        """Show what an earlier run of the recipe took."""
        event.stop()
        self._measured = event.measured
        if self.analysis is not None:
            self._show_checks(self.analysis)

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
        self.analysis, self._opening = analysis, False
        if before is None:
            self.call_after_refresh(self.host.opened)
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
        self._show_analysis(analysis)
        if self.next_key and self.go_to(self.next_key):
            self.next_key = ""

    def on_preview_refused(self, event: PreviewRefused) -> None:
        """Say why the value that is being typed cannot stand there."""
        event.stop()
        dialog = self.app.screen
        if isinstance(dialog, EntryDialog):
            dialog.say(_error_text(event.error), "fail")

    def on_job_failed(self, event: JobFailed) -> None:
        """Say why a job could not be done."""
        event.stop()
        self._opening, self.next_key = False, ""
        self.host.opened()
        is_lost = isinstance(event.error, ConnectionLostError)
        # An analysis that succeeds takes the message away.
        self._has_error = self._has_error or is_lost
        if self.view is None:
            self.details_panel.show_failure(event.error)
            if is_lost:
                self.set_timer(AGAIN_S, self.worker.open_again)
        if event.retry is not None:
            event.retry(event.error)
        self.message.say(_error_text(event.error), "fail")

    # ------------------------------------------------------------ showing

    def _show_all(self) -> None:
        self.show_title()
        if self.analysis is not None:
            self._show_checks(self.analysis)
            self._show_details()
        self.key_bar.update_keys()

    def _show_analysis(self, analysis: Analysis) -> None:
        first, self.outline = self.outline is None, analysis.outline
        self._show_outline(outcomes_by_key(analysis.report.results), first=first)
        self._show_checks(analysis)
        self._look_up_details()

    def _show_outline(self, outcomes: Mapping[str, str], *, first: bool) -> None:
        outline = self.outline
        assert outline is not None
        self.tree_view.show(outline, outcomes)
        own = sum(row.state == "own" and not row.size for row in outline.rows)
        self.tree_panel.set_title("1 recipe", f"{own} set here of {len(outline.rows)}")
        if first:
            self._go_first(outline)
        self._mark_text()

    def _go_first(self, outline: Outline) -> None:
        """Go to the key, or the line, that the editor was opened for."""
        index = outline.at_line(self._first_line) if self._first_line else None
        key = outline.rows[index].key if index is not None else self._first_key
        error_line = self.view.state.error_line if self.view is not None else None
        if key:
            self.go_to(key)
        elif error_line is not None and not outline.rows:
            # There is no tree yet: what can be corrected is the text.
            self.action_show_pane("text")
            self.text_view.go_to(error_line)

    def _show_checks(self, analysis: Analysis) -> None:
        width = max(self.size.width - 2, 1)
        self.checks_panel.show(analysis, self.placement, self._measured)
        if analysis.memory is not None:
            self.strip.set_lines([memory_strip(analysis.memory, width)])
        else:
            self.strip.set_lines([Content(MEMORY_UNKNOWN).stylize("dim")])
        place = placement_text(self.placement, analysis)
        line = Content.assemble(summary(analysis), (f"   on {place}", "dim"))
        self.summary_line.set_lines([line.truncate(width, ellipsis=True)])
        self.key_bar.update_keys()

    def show_title(self) -> None:
        """Show the file's name, and whether there is something to save."""
        connection = connection_part(self.host, self.machine_name)
        line = title_text(self.file.path, self.view, self.others, connection)
        self.title_line.set_lines([line.truncate(max(self.size.width, 1), ellipsis=True)])

    @property
    def row(self) -> OutlineRow | None:
        """The row of the current key."""
        return self.tree_view.current

    @property
    def current_line(self) -> int:
        """Line of the text that the user is at, counted from 1."""
        if self.text_area is not None:
            return self.text_area.cursor_location[0] + 1
        row = self.row
        if self.pane != "text" and row is not None and row.lines is not None:
            return row.lines.first
        return self.text_view.line

    def pane_shown(self) -> None:
        """Look up the details of what has the focus now."""
        self._look_up_details()

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
        broken = view is not None and view.state.error is not None
        if view is not None and broken and (self.text_area is not None or self.row is None):
            self.details_panel.show_error(view.state, has_tree=self.row is not None)
        elif self.pane == "checks" and finding is not None:
            self.details_panel.show_finding(finding)
        elif details is not None and self.analysis is not None:
            row = self.row
            if row is None or row.key != details.key:
                row = self.analysis.outline.row(details.key)
            hints = TREE_HINTS if self.text_area is None else TEXT_MODE_HINTS
            self.details_panel.show_key(row, details, hints)

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
        self.key_bar.update_keys()

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
        if self.outline is None:
            return
        self.set_text_title(f"line {line}")
        index = self.outline.at_line(line)
        if index is None:
            return
        row = self.outline.rows[index]
        if row.key != self.tree_view.key:
            self._in_step = True
            self.go_to(row.key)
        if row.lines is not None:
            self.text_view.mark_quietly(row.lines.first, row.lines.last)

    def set_text_title(self, subtitle: str) -> None:
        """Set what stands at the right of the text's title."""
        self.text_panel.set_title("2 file" if self.text_area is None else "2 file: text mode", subtitle)

    def on_choice_list_moved(self, event: ChoiceList.Moved) -> None:
        """Show the selected finding in full."""
        event.stop()
        self._look_up_details()
        self.key_bar.update_keys()


def _error_text(error: Exception) -> str:
    """Return an error on one line: what, where, and what to do."""
    return " · ".join(part.strip() for part in str(error).split("\n") if part.strip())
