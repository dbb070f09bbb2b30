"""The list of runs, where the app begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen

from tui.commands import Scope, bindings
from tui.formatting import plural
from tui.opening import OpenFailed
from tui.run_list import HomePoller, RunListChanged, RunRow
from tui.screens.host import Host
from tui.widgets.keybar import KeyBar
from tui.widgets.run_table import RunHeader, RunTable, state_word
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from textual.widgets import Input

ABOUT = (
    "Your runs, newest first. The state of each is read from its logs. Nothing here changes a run unasked."
)
FILTER_HINT = "show only runs that hold this; enter keeps it, escape ends it"
EMPTY = """\
No runs yet. Press n for a new one.

A small run with stand-in models shows the whole way in a minute, on this machine:

    distill-tui demo

It starts a real Ray cluster here, trains, and shows up in this list.
Logs of runs that something else started can be watched too:

    distill-tui watch DIRECTORY
"""


class HomeScreen(Screen[None]):
    """Lists runs; opens, filters, cancels them."""

    BINDINGS = bindings(Scope.HOME)
    PLACES = (Scope.HOME, Scope.APP)
    ABOUT = ABOUT

    def __init__(self, host: Host, root: Path) -> None:
        super().__init__()
        self._host = host
        self._root = root
        self._feed = HomePoller(root, self, host.in_front)
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
        yield KeyBar(*self.PLACES)

    def on_mount(self) -> None:
        """Show the frame; the runs are read after it was painted."""
        self._arrange()
        self.set_interval(1.0, self._tick)

    def on_screen_resume(self) -> None:
        """Look at the runs while the list is to be seen."""
        self.set_focus(self.runs)
        if self._started:
            self._feed.resume()
        else:
            self._started = True
            self.call_after_refresh(self._feed.start)

    def on_screen_suspend(self) -> None:
        """Look no more."""
        self._feed.pause()

    def on_unmount(self) -> None:
        """End the thread."""
        self._feed.stop()

    def use_runs_root(self, root: Path) -> None:
        """List another directory."""
        self._root = root
        self._feed.use_root(root)

    def on_run_list_changed(self, event: RunListChanged) -> None:
        """Take the list."""
        event.stop()
        self._rows, self._problem, self._listed = event.rows, event.problem, True
        self._arrange()

    def on_input_changed(self) -> None:
        """Filter as it is typed."""
        self._arrange()

    async def on_input_submitted(self) -> None:
        """Keep the filter, go back to the list."""
        if self.field is not None and not self.field.value:
            await self.action_show_all()
        self.set_focus(self.runs)

    def on_run_table_selection_changed(self) -> None:
        """Tell more of the selected run."""
        self._tell_selected()

    def on_run_table_row_opened(self) -> None:
        """Open the run that was clicked."""
        self.action_open_run()

    def _tick(self) -> None:
        """Let running times run; also tell a file system that does not answer."""
        self._arrange()

    def _arrange(self) -> None:
        wanted = self.field.value.lower() if self.field is not None else ""
        shown = tuple(row for row in self._rows if wanted in _searched(row))
        self.runs.show(shown, self._host.now())
        some = bool(shown)
        self.runs.display = self.headings.display = self.detail.display = some
        self.note.display = not some
        if not some:
            self.note.say([Content(self._nothing())])
        self.title_line.say([self._title(len(shown))])
        if some:
            self._tell_selected()
        self.query_one(KeyBar).look_again()

    def _nothing(self) -> str:
        if self._problem:
            return f"! {self._problem}"
        if not self._listed:
            return "Reading runs …"
        return EMPTY if not self._rows else "No run holds what the filter says."

    def _title(self, shown: int) -> Content:
        total = len(self._rows)
        count = plural(total, "run") if shown == total else f"{shown} of {plural(total, 'run')}"
        parts: list[tuple[str, str]] = [(" distill-tui ", "bold $text-primary")]
        if self._listed:
            parts.append((f" {count} in {self._root}", "dim"))
        waited = self._feed.busy_for
        if self._problem and self._rows:
            parts.append((f"   ! {self._problem}", "$text-error"))
        elif waited > 2 and self._listed:
            parts.append((f"   ! no answer from the file system for {waited:.0f}s", "$text-warning"))
        return Content.assemble(*parts)

    def _tell_selected(self) -> None:
        row = self.runs.selected
        if row is None:
            return
        told = row.damaged or row.reason
        first = Content.assemble((f" {row.id}", "bold"), (f"  {row.detail}", "dim"))
        second = Content.assemble((f" {state_word(row)}", "bold"), f": {told}" if told else "")
        width = self.size.width
        self.detail.say([line.truncate(width, ellipsis=True) for line in (first, second)])

    def on_open_failed(self, event: OpenFailed) -> None:
        """Say why a run was not stopped."""
        from tui.screens.dialogs import tell

        event.stop()
        self.app.push_screen(tell(event.error))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which commands are valid now."""
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
            from tui.screens.dialogs import Ask, DialogChoice

            self.app.push_screen(
                Ask(
                    "This run cannot be read",
                    f"{row.damaged}\nin {row.directory}",
                    [DialogChoice("o", "OK", "ok")],
                )
            )
            return
        self._host.open_run(row.directory)

    def action_new_run(self) -> None:
        """Open the wizard."""
        self._host.new_run()

    async def action_filter(self) -> None:
        """Type a filter."""
        from textual.widgets import Input

        if self.field is None:
            self.field = Input(placeholder=FILTER_HINT, compact=True)
            await self.mount(self.field, before=self.detail)
        self.set_focus(self.field)

    async def action_show_all(self) -> None:
        """End the filter."""
        if self.field is not None:
            field, self.field = self.field, None
            await field.remove()
            self.set_focus(self.runs)
            self._arrange()

    def action_refresh_runs(self) -> None:
        """Read everything anew."""
        self._feed.resume(again=True)

    def action_cancel_run(self) -> None:
        """Stop the selected run."""
        from tui.screens.cancelling import ask_to_cancel, what_is_lost

        row = self.runs.selected
        if row is not None:
            ask_to_cancel(
                self, row.directory, row.name, what_is_lost(row.step, row.checkpoint), self._feed.resume
            )


def _searched(row: RunRow) -> str:
    return f"{row.name} {row.id} {state_word(row)} {row.reason} {row.damaged}".lower()
