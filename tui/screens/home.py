"""The list of runs and jobs: the app's first screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer

from launcher.overview.arrangement import Arrangement, Entry, arranged
from launcher.overview.rows import RunRow
from launcher.overview.usual_rows import longer_than_usual
from tui.commands import Scope, bindings
from tui.home_sources import HomeSources
from tui.opening import ActionFailed
from tui.run_list import JobListChanged, RunListChanged
from tui.screens.home_commands import ROW_ACTIONS, RowCommands, is_valid
from tui.screens.home_text import (
    ABOUT,
    EMPTY,
    FILTER_HINT,
    RowCounts,
    TitleFacts,
    connection_lines,
    home_title,
    row_details,
)
from tui.screens.host import Host
from tui.widgets.keybar import KeyBar
from tui.widgets.run_table import RunHeader, RunTable
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from textual.widgets import Input

    from tui.screens.home_actions import HomeActions
    from tui.screens.resuming import ResumeSent

_UNANSWERED_S = 1.0
"""Seconds after which nothing waits for the first list any longer."""
_WRITTEN_S = 0.1
"""Seconds until the first list is on the terminal: what else begins shares the interpreter with that."""
_TICK_S = 2.0
"""Seconds between two updates of elapsed times: with hundreds of jobs each takes 10 ms."""


class HomeScreen(RowCommands):
    """Lists, opens, sorts, filters and marks runs and jobs, and acts on them."""

    BINDINGS = bindings(Scope.HOME)
    SCOPES = (Scope.HOME, Scope.APP)
    ABOUT = ABOUT

    def __init__(self, host: Host, root: Path, hosts: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._host = host
        self._root = root
        self.on_listed: Callable[[], None] | None = None
        """Called once, after the first list is painted, or where the root does not answer for a while."""
        machines = [host.machine(name) for name in ("", *hosts)]
        self._sources = HomeSources(machines, root, self, host.in_front, host.screen_settings.runs_s)
        self._started = False
        self._tick: Timer | None = None
        self._listed_before = self._rest_begun = False
        self._rows: tuple[RunRow, ...] = ()
        self._arrangement = Arrangement()
        self._entries: tuple[Entry, ...] = ()
        self._counts = self._shown_counts = RowCounts(0, 0, 0)
        self._compared: tuple[RunRow, tuple[str, ...]] | None = None
        """The selected row, and what of it took longer than usual."""
        self._message = ""
        self._titled: tuple[TitleFacts, int] | None = None
        """What the title line says, and its width."""
        self._told_lines: tuple[str, ...] = ()
        """Kinds of the connections' states that the rows were made with."""
        self._shown_refusals: set[str] = set()
        self._actions: HomeActions | None = None
        self.runs = RunTable()
        self.title_line = StyledLines(classes="title-line")
        self.headings = RunHeader()
        self.runs.hosts = self.headings.hosts = bool(hosts)
        self.note = StyledLines(id="home-note")
        self.detail = StyledLines(id="home-detail")
        self.connections = StyledLines(id="home-connections")
        self.key_bar = KeyBar(*self.SCOPES)
        self.field: Input | None = None

    @property
    def actions(self) -> HomeActions:
        """The actions on rows; imported at the first use, after the first paint."""
        from tui.screens.home_actions import HomeActions

        if self._actions is None:
            self._actions = HomeActions(self, self._host, changed=self._reread, note=self._say)
        return self._actions

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title_line
        with Vertical(id="home"):
            yield self.headings
            yield self.runs
            yield self.note
        yield self.connections
        yield self.detail
        yield self.key_bar

    def on_mount(self) -> None:
        """Show the frame; the runs are read after the first paint."""
        self._show()
        self._tick = self.set_interval(_TICK_S, self._show_time)

    def on_screen_resume(self) -> None:
        """Poll while the list is visible; what was under way when a dialog opened is over."""
        if self._message.endswith("…"):
            self._message = ""
        self.set_focus(self.runs)
        if self._tick is not None:
            self._tick.resume()
        if self._started:
            self._sources.resume()
        else:
            self._started = True
            self.call_after_refresh(self._sources.start_first)
            self.set_timer(_UNANSWERED_S, self._begin_the_rest)

    def on_screen_suspend(self) -> None:
        """Stop polling, and painting: what a screen below paints is painted by the one above, too."""
        if self._tick is not None:
            self._tick.pause()
        self._sources.pause()

    def on_unmount(self) -> None:
        """End the threads."""
        self._sources.stop()

    def use_runs_root(self, root: Path) -> None:
        """List another directory."""
        self._root = root
        self._sources.use_root(root)

    def on_run_list_changed(self, event: RunListChanged) -> None:
        """Show the changed list."""
        event.stop()
        self._sources.take_runs(event)
        self._tell_refusals()
        if self._sources.listed:
            self._merge()
            if not self._listed_before:
                self._listed_before = True
                self.set_timer(_WRITTEN_S, self._begin_the_rest)

    def _begin_the_rest(self) -> None:
        """Ask for jobs, and let the app go on, once: the list of runs comes first."""
        if self._rest_begun:
            return
        self._rest_begun = True
        self._show_details()
        self._sources.start_rest()
        if self.on_listed is not None:
            self.on_listed()

    def on_job_list_changed(self, event: JobListChanged) -> None:
        """Show the changed jobs."""
        event.stop()
        self._sources.take_jobs(event)
        if self._sources.listed:
            self._merge()

    def _merge(self) -> None:
        """Make one list of runs and jobs."""
        self._rows = self._sources.merged_rows()
        if self.runs.marked:
            self.runs.marked &= {row.key for row in self._rows}
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

    def on_run_table_columns_moved(self, event: RunTable.ColumnsMoved) -> None:
        """Show the headings of the other columns."""
        self.headings.show_from(event.offset)

    def on_run_table_row_opened(self) -> None:
        """Open the run that was clicked."""
        self.action_open_run()

    def _arrange(self, arrangement: Arrangement | None = None) -> None:
        """Order and filter the rows again."""
        text = self.field.value if self.field is not None else ""
        self._arrangement = replace(arrangement or self._arrangement, text=text)
        self._entries = arranged(self._rows, self._arrangement)
        self._counts = RowCounts.of(self._rows)
        self._shown_counts = (
            RowCounts.of([entry for entry in self._entries if isinstance(entry, RunRow)])
            if text
            else self._counts
        )
        self._show()

    def _show(self) -> None:
        """Show the rows, with the times of this moment."""
        shown = bool(self._entries)
        self.runs.show(self._entries, self._host.now())
        self._sources.here.visible = self.runs.visible_directories
        self.runs.display = self.headings.display = self.detail.display = shown
        self.note.display = not shown
        if shown:
            self._show_details()
        else:
            self.note.set_lines([Content(self._empty_text())])
        self._show_connections()
        self._show_title()
        self.key_bar.update_keys()

    def _show_time(self) -> None:
        """Show the times of this moment; nothing else depends on it."""
        kinds = tuple(line.kind for line in self._sources.lines())
        if kinds != self._told_lines:
            self._told_lines = kinds
            self._tell_refusals()
            if self._sources.listed:
                self._merge()
        elif self._entries:
            self.runs.show_time(self._host.now())
        self._show_connections()
        self._show_title()

    def _show_connections(self) -> None:
        """Say of each host that is not connected what becomes of it."""
        lines = connection_lines(
            self._sources.lines(), self._sources.host_problems(), self._host.now(), self.size.width
        )
        self.connections.display = bool(lines)
        self.connections.set_lines(lines)

    def _tell_refusals(self) -> None:
        """Show once, in full, why a host was refused or refuses."""
        for line in self._sources.lines():
            if line.refusal is not None and str(line.refusal) not in self._shown_refusals:
                self._shown_refusals.add(str(line.refusal))
                self.post_message(ActionFailed(line.refusal))

    def _show_title(self) -> None:
        titled = (self._title_facts(), self.size.width)
        if titled != self._titled:
            self._titled = titled
            self.title_line.set_lines([home_title(*titled)])

    def _say(self, text: str) -> None:
        """Show a message in the title line until the next one."""
        self._message = text
        self._show()

    def _reread(self) -> None:
        if self.app.screen is not self and not self.app.screen.is_modal:
            return  # read again when it is shown again
        self._sources.resume(refresh=True)

    def _empty_text(self) -> str:
        if self._sources.problem:
            return f"! {self._sources.problem}"
        if not self._sources.listed:
            return "Reading runs …"
        if self._rows:
            return "No run matches the filter."
        return EMPTY

    def _title_facts(self) -> TitleFacts:
        return TitleFacts(
            root=str(self._root) if self._sources.listed else "",
            hosts=self._sources.hosts,
            listed=self._counts,
            shown=self._shown_counts,
            order=self._arrangement.in_words(),
            marked=len(self.runs.marked),
            message=self._message,
            problem=self._sources.problem if self._rows else "",
            busy_s=self._sources.here.busy_for if self._sources.listed else 0.0,
            listing=self._sources.listing_of(""),
        )

    def _show_details(self) -> None:
        row = self.runs.selected
        if row is None:
            return
        listing = self._sources.listing_of(row.host)
        problem = listing.problem if listing is not None else ""
        self.detail.set_lines(row_details(row, problem, self._unusual(row), self.size.width))

    def _unusual(self, row: RunRow) -> tuple[str, ...]:
        """Return what of a run that has ended took longer than usual; computed once for a row."""
        if not self._rest_begun:  # it imports what the list does not need
            return ()
        if row.state is None or not row.state.ended:
            return ()
        if self._compared is None or self._compared[0] is not row:
            self._compared = (row, longer_than_usual(row, self._sources.runs_of(row.host)))
        return self._compared[1]

    def on_resume_sent(self, event: ResumeSent) -> None:
        """Say that one more job of a run was submitted."""
        event.stop()
        name = self._sources.run_named(event.directory, event.host) or "the run"
        self._message = f"resumed: {name}"
        self._reread()
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        row = self.runs.selected
        if action in ("open_run", "mark"):
            return row is not None
        if action in ("filter", "sort_next", "sort_reverse", "group", "mark_all"):
            return bool(self._rows)
        if action in ROW_ACTIONS:
            return is_valid(action, self.runs.chosen)
        return True

    def action_open_run(self) -> None:
        """Open the selected run or job, or go on with the draft."""
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
        elif row.draft:
            self.actions.open_draft(row)
        elif row.directory:
            self._host.open_run(row.directory, row.host)
        else:
            self.actions.open_job(row)

    async def action_new_run(self) -> None:
        """Open the wizard."""
        await self._host.new_run(self._chosen_host)

    def action_edit_recipe(self) -> None:
        """Choose a recipe to edit; that of the selected run comes first."""
        from tui.screens.editor.choose_recipe import ask_recipe

        row = self.runs.selected
        directory = row.directory if row is not None and row.is_run else ""
        ask_recipe(self._host, self.app, directory, self._chosen_host)

    @property
    def machine_name(self) -> str:
        """Name of the host that a screen opened from here is about; empty for this machine."""
        return self._chosen_host

    @property
    def _chosen_host(self) -> str:
        """The host of the selected row; without one that for which the app was opened."""
        row = self.runs.selected
        if row is None or row.draft:
            return self._host.first_host
        return row.host

    async def action_filter(self) -> None:
        """Open the filter field."""
        from textual.widgets import Input

        if self.field is None:
            self.field = Input(placeholder=FILTER_HINT, compact=True)
            await self.mount(self.field, before=self.detail)
        self.set_focus(self.field)

    async def action_show_all(self) -> None:
        """Clear the filter; without one, the marks."""
        if self.field is not None:
            field, self.field = self.field, None
            await field.remove()
            self.set_focus(self.runs)
            self._arrange()
        elif self.runs.marked:
            self.runs.set_marks(set())

    def action_refresh_runs(self) -> None:
        """List and read all runs again, and ask Slurm now; hosts that refused are tried again."""
        self._shown_refusals.clear()
        self._host.try_hosts_again()
        self._sources.resume(forced=True, refresh=True)

    # ------------------------------------------------------------ order, marks

    def action_sort_next(self) -> None:
        """Sort by the next column."""
        self._arrange(self._arrangement.next_order())

    def action_sort_reverse(self) -> None:
        """Reverse the order."""
        self._arrange(replace(self._arrangement, reverse=not self._arrangement.reverse))

    def action_group(self) -> None:
        """Group by recipe, or not."""
        self._arrange(replace(self._arrangement, grouped=not self._arrangement.grouped))

    def action_mark(self) -> None:
        """Mark the selected row."""
        self._message = ""
        self.runs.toggle_mark()
        self._show()

    def action_mark_all(self) -> None:
        """Mark all rows that are listed, or none."""
        keys = {row.key for row in self.runs.rows}
        self.runs.set_marks(set() if self.runs.marked == keys else keys)
        self._show()
