"""The list of runs: the app's first screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen

from tui.commands import Scope, bindings
from tui.formatting import duration, plural
from tui.opening import ActionFailed
from tui.run_list import HomePoller, RunListChanged, RunRow
from tui.screens.host import Host
from tui.widgets.keybar import KeyBar
from tui.widgets.run_table import RunHeader, RunTable, state_label
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from textual.widgets import Input

ABOUT = (
    "Your runs, newest first. The state of each comes from its logs. Runs are changed only if you confirm."
)
FILTER_HINT = "text in name, id, state or reason; enter applies, esc clears"
EMPTY = """\
No runs yet. Press n to create one.

To see a complete run in a minute, with small stand-in models on this machine:

    distill-tui demo

It starts a real Ray cluster here, trains, and appears in this list.
You can also watch the logs of runs started by other tools:

    distill-tui watch DIRECTORY
"""


class HomeScreen(Screen[None]):
    """Lists, opens, filters and cancels runs."""

    BINDINGS = bindings(Scope.HOME)
    SCOPES = (Scope.HOME, Scope.APP)
    ABOUT = ABOUT

    def __init__(self, host: Host, root: Path) -> None:
        super().__init__()
        self._host = host
        self._root = root
        self._poller = HomePoller(root, self, host.in_front, host.screen_settings.runs_s)
        self._started = False
        self._rows: tuple[RunRow, ...] = ()
        self._problem = ""
        self._listed = False
        self.runs = RunTable()
        self.title_line = StyledLines(classes="title-line")
        self.headings = RunHeader()
        self.note = StyledLines(id="home-note")
        self.detail = StyledLines(id="home-detail")
        self.field: Input | None = None

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title_line
        with Vertical(id="home"):
            yield self.headings
            yield self.runs
            yield self.note
        yield self.detail
        yield KeyBar(*self.SCOPES)

    def on_mount(self) -> None:
        """Show the frame; the runs are read after the first paint."""
        self._arrange()
        self.set_interval(1.0, self._tick)

    def on_screen_resume(self) -> None:
        """Poll while the list is visible."""
        self.set_focus(self.runs)
        if self._started:
            self._poller.resume()
        else:
            self._started = True
            self.call_after_refresh(self._poller.start)

    def on_screen_suspend(self) -> None:
        """Stop polling."""
        self._poller.pause()

    def on_unmount(self) -> None:
        """End the thread."""
        self._poller.stop()

    def use_runs_root(self, root: Path) -> None:
        """List another directory."""
        self._root = root
        self._poller.use_root(root)

    def on_run_list_changed(self, event: RunListChanged) -> None:
        """Show the changed list."""
        event.stop()
        self._rows, self._problem, self._listed = event.rows, event.problem, True
        self._arrange()

    def on_input_changed(self) -> None:
        """Filter incrementally."""
        self._arrange()

    async def on_input_submitted(self) -> None:
        """Keep the filter, focus the list."""
        if self.field is not None and not self.field.value:
            await self.action_show_all()
        self.set_focus(self.runs)

    def on_run_table_selection_changed(self) -> None:
        """Show the selected run's details."""
        self._show_details()

    def on_run_table_row_opened(self) -> None:
        """Open the run that was clicked."""
        self.action_open_run()

    def _tick(self) -> None:
        """Update elapsed times, and the warning about a file system that does not answer."""
        self._arrange()

    def _arrange(self) -> None:
        text = self.field.value.lower() if self.field is not None else ""
        shown = tuple(row for row in self._rows if text in _searched(row))
        self.runs.show(shown, self._host.now())
        self.runs.display = self.headings.display = self.detail.display = bool(shown)
        self.note.display = not shown
        if shown:
            self._show_details()
        else:
            self.note.set_lines([Content(self._empty_text())])
        self.title_line.set_lines([self._title(len(shown))])
        self.query_one(KeyBar).update_keys()

    def _empty_text(self) -> str:
        if self._problem:
            return f"! {self._problem}"
        if not self._listed:
            return "Reading runs …"
        return EMPTY if not self._rows else "No run matches the filter."

    def _title(self, shown: int) -> Content:
        total = len(self._rows)
        count = plural(total, "run") if shown == total else f"{shown} of {plural(total, 'run')}"
        parts: list[tuple[str, str]] = [(" distill-tui ", "bold $text-primary")]
        if self._listed:
            parts.append((f" {count} in {self._root}", "dim"))
        busy_s = self._poller.busy_for
        if self._problem and self._rows:
            parts.append((f"   ! {self._problem}", "$text-error"))
        elif busy_s > 2 and self._listed:
            unanswered = duration(busy_s, tenths=False)
            parts.append((f"   ! no answer from the file system for {unanswered}", "$text-warning"))
        return Content.assemble(*parts)

    def _show_details(self) -> None:
        row = self.runs.selected
        if row is None:
            return
        reason = row.damaged or row.reason
        first = Content.assemble((f" {row.id}", "bold"), (f"  {row.detail}", "dim"))
        second = Content.assemble((f" {state_label(row)}", "bold"), f": {reason}" if reason else "")
        width = self.size.width
        self.detail.set_lines([line.truncate(width, ellipsis=True) for line in (first, second)])

    def on_action_failed(self, event: ActionFailed) -> None:
        """Show why a run was not stopped."""
        from tui.screens.dialogs import error_dialog

        event.stop()
        self.app.push_screen(error_dialog(event.error))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        row = self.runs.selected
        if action == "open_run":
            return row is not None
        if action == "cancel_run":
            return row is not None and row.state is not None and not row.state.ended
        if action == "filter":
            return bool(self._rows)
        return True

    def action_open_run(self) -> None:
        """Open the selected run."""
        row = self.runs.selected
        if row is None:
            return
        if row.damaged:
            from tui.screens.dialogs import ChoiceDialog, DialogChoice

            self.app.push_screen(
                ChoiceDialog(
                    "This run cannot be read",
                    f"{row.damaged}\nin {row.directory}",
                    [DialogChoice("o", "OK", "ok")],
                )
            )
            return
        self._host.open_run(row.directory)

    async def action_new_run(self) -> None:
        """Open the wizard."""
        await self._host.new_run()

    def action_edit_recipe(self) -> None:
        """Choose a recipe to edit; that of the selected run comes first."""
        from tui.screens.editor.choose_recipe import ask_recipe

        row = self.runs.selected
        ask_recipe(self._host, self.app, row.directory if row is not None and not row.damaged else "")

    async def action_filter(self) -> None:
        """Open the filter field."""
        from textual.widgets import Input

        if self.field is None:
            self.field = Input(placeholder=FILTER_HINT, compact=True)
            await self.mount(self.field, before=self.detail)
        self.set_focus(self.field)

    async def action_show_all(self) -> None:
        """Clear the filter."""
        if self.field is not None:
            field, self.field = self.field, None
            await field.remove()
            self.set_focus(self.runs)
            self._arrange()

    def action_refresh_runs(self) -> None:
        """List and read all runs again."""
        self._poller.resume(forced=True)

    def action_cancel_run(self) -> None:
        """Stop the selected run."""
        from tui.screens.cancelling import ask_to_cancel, what_is_lost

        row = self.runs.selected
        if row is not None:
            ask_to_cancel(
                self, row.directory, row.name, what_is_lost(row.step, row.checkpoint), self._poller.resume
            )


def _searched(row: RunRow) -> str:
    return f"{row.name} {row.id} {state_label(row)} {row.reason} {row.damaged}".lower()
