"""The monitor of one run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import Screen

from launcher.logs.sources import LogFile
from launcher.runs import Run
from launcher.text import clean
from launcher.transports.base import Transport
from tui.background import call_on, in_background, post
from tui.commands import Scope, bindings
from tui.formatting import plural
from tui.logview.pane import LogPane
from tui.logview.panes import LogPanes
from tui.logview.reader_thread import ReaderThread
from tui.logview.tabs import LogTabs
from tui.opening import ActionFailed, OpenedRun, Opener, OpeningFailed, RunSummary
from tui.paint_pace import TICK_S, PaintPace
from tui.run_poller import MonitorPoller, RunOpened, RunViewChanged
from tui.run_view import RunView
from tui.screens.connection_words import connection_part
from tui.screens.host import Host
from tui.screens.layout_keeping import LayoutKeeper
from tui.screens.log_commands import LogCommands
from tui.screens.resuming import ResumeSent
from tui.screens.run_actions import RunActions
from tui.widgets.curve import CurveView
from tui.widgets.keybar import KeyBar
from tui.widgets.panel import Panel
from tui.widgets.status_panel import StatusPanel
from tui.widgets.timeline import Timeline, current_line

if TYPE_CHECKING:
    from launcher.doctor.doctor_request import DoctorRequest

PANES = ("timeline", "curve", "logs")
_PANE_IDS = (*(f"monitor.{pane}" for pane in PANES), "monitor.back")
_PANE_COMMANDS = {
    "timeline": (*_PANE_IDS, "monitor.cancel", "monitor.again", "monitor.remove"),
    "curve": (*_PANE_IDS, "monitor.metric"),
    "logs": (*_PANE_IDS, "log.search", "log.follow"),
}
"""Commands that the footer shows first while a pane has the focus."""
_PANE_KEYS = ("log.choose", "log.layout", "log.pane", "log.zoom", "monitor.cancel", "monitor.again")
"""Further ones where there is room."""


_LOGS_READ = 1000
"""Number of logs up to which their beginnings are read for nodes and ranks."""


class MonitorScreen(Screen[None]):
    """State, timeline, curve and logs of a run: side by side where there is room, else one at a time."""

    BINDINGS = bindings(Scope.MONITOR)
    SCOPES = (Scope.MONITOR, Scope.LOG, Scope.APP)
    ABOUT = (
        "One run, live. Its state comes from its logs and from its scheduler. "
        "Closing the monitor or the app does not affect the run."
    )

    def __init__(self, host: Host, opener: Opener, opening: str, machine: str = "") -> None:
        super().__init__()
        self.machine_name = machine
        self.HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (78, "-narrow"), (100, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-medium"), (44, "-high")]
        self._host = host
        self._poller = MonitorPoller(opener, self, host.in_front, host.channels)
        self._opened: OpenedRun | None = None
        self._checkpoint_removed = False
        self._log_thread: ReaderThread | None = None
        self._pace = PaintPace()
        self._places_state: tuple[int, bool, tuple[str, ...]] | None = None
        self._pane = "timeline"
        self.footer_first: tuple[str, ...] = ()
        self.view = RunView(RunSummary(opening), reason="opening the run …")
        self.status = StatusPanel()
        self.timeline = Timeline()
        self.timeline_box = VerticalScroll(self.timeline)
        self.curve = CurveView()
        self.panes = LogPanes(self._lines_shown)
        self._layout_keeper = LayoutKeeper(self, self.panes)
        self.key_bar = KeyBar(Scope.MONITOR, Scope.APP)
        self._panels = {
            name: Panel(content, title=f"{key} {name}", id=name)
            for key, (name, content) in enumerate(
                (("timeline", self.timeline_box), ("curve", self.curve), ("logs", self.panes)), 1
            )
        }
        self._upper = Horizontal(self._panels["timeline"], self._panels["curve"], id="upper")
        self.log_commands = LogCommands(
            self,
            self.panes,
            show_logs=lambda: self.action_show_pane("logs"),
            view=lambda: self.view,
            transport=lambda: self._opened.transport if self._opened is not None else None,
            now=host.now,
        )
        self.run_actions = RunActions(
            self,
            host,
            opened=lambda: self._opened,
            view=lambda: self.view,
            node=lambda: self.logs.shown.node if self.logs.shown is not None else "",
            note=self.log_commands.note,
        )

    @property
    def logs(self) -> LogPane:
        """The log pane that has the keys."""
        return self.panes.focused

    @property
    def _run(self) -> Run | None:
        """The run; None before it is open, and for logs without a run."""
        return self._opened.run if self._opened is not None else None

    def doctor_request(self) -> DoctorRequest | None:
        """Return what the doctor examines from here: the place of another run like this one."""
        from launcher.doctor.doctor_request import DoctorRequest

        return DoctorRequest.of_run(self._run.spec) if self._run is not None else None

    @property
    def watch_transport(self) -> Transport | None:
        """The transport by which the run is watched; None before it is open."""
        return self._opened.watch.transport if self._opened is not None else None

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.status
        with Vertical(id="panes"):
            yield self._upper
            yield self._panels["logs"]
        yield self.key_bar

    def on_mount(self) -> None:
        """Show the frame; the run is opened after the first paint."""
        self.action_show_pane(self._pane)
        self._arrange()
        self.call_after_refresh(self._poller.start)
        self._layout_keeper.load()
        self.set_interval(TICK_S, self._tick)

    def on_unmount(self) -> None:
        """End the threads."""
        self._layout_keeper.save()
        self._poller.stop()
        if self._log_thread is not None:
            self._log_thread.stop()

    def on_log_panes_layout_changed(self) -> None:
        """Keep the layout."""
        self._layout_keeper.changed()
        self._arrange()

    def on_screen_resume(self) -> None:
        """Focus the pane again; what changed meanwhile is shown."""
        self.action_show_pane(self._pane)
        self.call_after_refresh(self._arrange)

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.call_after_refresh(self._arrange)

    def on_run_opened(self, event: RunOpened) -> None:
        """Start reading the logs of the run."""
        event.stop()
        self._opened = event.opened
        self.view = RunView(event.opened.summary, reading=True)
        self._log_thread = ReaderThread(
            event.opened.transport, self._host.slow_terminal, self._host.screen_settings.logs_s
        )
        self._log_thread.start()
        self.panes.read_on(self._log_thread)
        self._arrange()

    def on_opening_failed(self, event: OpeningFailed) -> None:
        """Show the error, and return to the runs."""
        event.stop()
        self._host.opening_failed(self, event.error)

    def on_action_failed(self) -> None:
        """Note that the run is not being stopped; the app shows the error."""
        self.run_actions.stopping = False
        self._arrange()

    def on_run_view_changed(self, event: RunViewChanged) -> None:
        """Show the changed state."""
        event.stop()
        previous, self.view = self.view, event.view
        self.run_actions.viewed(self.view)
        self.curve.show(self.view)
        failing = {clean(item.source.log) for item in self.view.findings if item.severity == "fatal"}
        first = frozenset(log.path for log in self.view.logs if log.name in failing)
        self.panes.set_logs(self.view.logs, first=first)
        if self._log_thread is not None:
            self._log_thread.set_settled(self.view.state.ended)
        self._read_places()
        if not self._covered():
            self._arrange()
        if current_line(previous) != current_line(self.view):
            self.call_after_refresh(self._show_current)
        self._host.viewed(self, self.view)

    def _read_places(self) -> None:
        """Read nodes and ranks from the logs, when there are other logs or all ranks have started."""
        started = any(entry.id == "setup-complete" and entry.reached for entry in self.view.timeline)
        state = (len(self.view.logs), started, self.view.nodes)
        if self._opened is None or state == self._places_state or len(self.view.logs) > _LOGS_READ:
            return
        self._places_state = state
        transport, nodes = self._opened.transport, self.view.nodes
        files = [LogFile(log.name, log.path, log.role) for log in self.view.logs]

        def read() -> None:
            from launcher.logs.log_survey import read_hints, survey

            logs = survey(files, None, (), nodes, read_hints(transport, files))
            places = {log.path: (log.node, log.ranks) for log in logs if log.path}
            call_on(self, lambda: self.panes.set_places(places))

        in_background(read, "places", lambda error: post(self, ActionFailed(error)))

    def _covered(self) -> bool:
        """Return whether another screen hides this one: what is painted here is painted there, too.

        `is_current` is true of the screen below the top one as well.
        """
        return self.app.screen is not self and not self.app.screen.is_modal

    def _tick(self) -> None:
        if not self._covered() and self._pace.tick():
            self._arrange()

    def _lines_shown(self) -> None:
        if self.is_mounted and not self._covered() and self._pace.lines_shown():
            self._arrange()

    def _arrange(self) -> None:
        """Update everything that depends on the time."""
        self._pace.paint()
        now = self._host.now()
        busy_s = self._poller.busy_for
        unanswered = busy_s if busy_s > 2 and self._opened is not None else 0.0
        timeline_hidden = not self.timeline_box.region.area or self.panes.zoomed
        self.status.show(
            self.view,
            now,
            stopping=self.run_actions.stopping,
            unanswered=unanswered,
            connection=self._connection(now),
            milestones=timeline_hidden,
        )
        self.timeline.show(self.view, now)
        self._show_counts()
        # Of this widget, not of the screen: that would compute the styles of all panes anew.
        self._upper.set_class(self.panes.zoomed, "-zoomed")
        self._upper.set_class(len(self.panes.panes) > 1, "-several")
        self.panes.update_status()
        self.key_bar.update_keys()

    def _connection(self, now: float) -> str:
        """Return what is to be said of the connection to the run's host; empty where it is up, or none."""
        state = self._host.machine(self.machine_name).state()
        return state.in_words(now) if state is not None else ""

    def _show_counts(self) -> None:
        """Show at the right of each panel's rule what it holds."""
        view = self.view
        reached = sum(entry.reached for entry in view.timeline)
        counts = {
            "timeline": f"{reached} of {len(view.timeline)}" if view.timeline else "",
            "curve": self.curve.position,
            "logs": plural(len(view.logs), "log") if view.logs else "",
        }
        for key, (name, panel) in enumerate(self._panels.items(), 1):
            panel.set_title(f"{key} {name}", counts[name])

    def _show_current(self) -> None:
        """Scroll the timeline to the current milestone."""
        height = self.timeline_box.scrollable_content_region.height
        line = current_line(self.view)
        self.timeline_box.scroll_to(y=max(line + 2 - height, 0), animate=False)

    def on_log_pane_status_changed(self) -> None:
        """Update the footer: other commands may be valid."""
        self._arrange()

    def on_log_tabs_clicked(self, event: LogTabs.Clicked) -> None:
        """Show the log that was clicked."""
        self.log_commands.show_tab(event.role)

    def on_timeline_milestone_clicked(self, event: Timeline.MilestoneClicked) -> None:
        """Go to the line of the milestone that was clicked."""
        self.log_commands.go_to_milestone(event.entry)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        of_run = self.run_actions.enabled(action)
        if of_run is not None:
            return of_run
        if action == "remove_checkpoint":
            run, saved = self._run, self.view.checkpoint is not None
            kept = saved and not self._checkpoint_removed
            here = self._opened is not None and not self._opened.host
            trial = run is not None and run.spec.kind != "training"
            return trial and here and self.view.state.ended and kept
        if action == "edit_recipe":
            return self._run is not None
        if action == "next_metric":
            return self.curve.metrics > 1
        if action == "log" and parameters:
            return self.log_commands.enabled(str(parameters[0]))
        return True

    def action_log(self, command: str, *arguments: object) -> None:
        """Run a command on the logs."""
        self.log_commands.run(command, *arguments)

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane to the front and focus it."""
        self._pane = pane
        self.footer_first = _PANE_COMMANDS[pane] + (_PANE_KEYS if self.app.size.width >= 120 else ())
        for name in PANES:
            self.set_class(name == pane, f"-{name}")
        focused = {"timeline": self.timeline_box, "curve": self.logs.text, "logs": self.logs.text}[pane]
        if pane == "curve" and not self.has_class("-wide"):
            self.set_focus(None)
        else:
            self.set_focus(focused)
        self.key_bar.update_keys()

    def action_next_metric(self) -> None:
        """Show another metric in the curve."""
        self.curve.next_metric()
        self._show_counts()
        if not self.has_class("-wide"):
            self.action_show_pane("curve")

    def action_cancel_run(self) -> None:
        """Stop this run."""
        self.run_actions.cancel()

    def action_run_again(self) -> None:
        """Prepare a new run with this one's settings."""
        self.run_actions.run_again()

    def action_resume_run(self) -> None:
        """Submit one more job of this run."""
        self.run_actions.resume()

    def action_report_run(self) -> None:
        """Write a report of this run."""
        self.run_actions.report()

    def action_open_shell(self) -> None:
        """Open a shell on a node of this run's job."""
        self.run_actions.open_shell()

    def action_open_dashboard(self) -> None:
        """Open a port to this run's Ray dashboard."""
        self.run_actions.open_dashboard()

    def on_resume_sent(self, event: ResumeSent) -> None:
        """Open the run anew, which goes on."""
        self._host.close_monitor(self)
        self._host.open_run(event.directory, event.host)

    def action_remove_checkpoint(self) -> None:
        """Remove the checkpoint of this smoke run or rehearsal, after a confirmation."""
        from tui.screens.checkpoint_removal import ask_to_remove

        def removed() -> None:
            self._checkpoint_removed = True
            self._arrange()

        if self._run is not None:
            ask_to_remove(self, self._run, removed)

    def action_edit_recipe(self) -> None:
        """Open the recipe that the run was made from; where it is gone, the run's own copy."""
        run = self._run
        if run is not None:
            from tui.screens.editor.choose_recipe import edit_recipe_of

            edit_recipe_of(self._host, self.app, run, self._opened.host if self._opened is not None else "")

    def action_open_charts(self) -> None:
        """Show all metrics as charts."""
        from tui.screens.charts import ChartsScreen

        opened = self._opened
        if opened is not None:
            teller = partial(connection_part, self._host, opened.host) if opened.host else None
            self.app.push_screen(ChartsScreen(opened.again, opened.summary.title, teller, opened.host))

    def show_remark(self, remark: str) -> None:
        """Show a remark above the logs."""
        self.log_commands.note(remark)

    def show_stopping(self) -> None:
        """Show that the run is being stopped."""
        self.run_actions.show_stopping()
        self._poller.wake()
        self._arrange()

    def action_back(self) -> None:
        """Close the input line or stop a search; otherwise return to the runs."""
        if self.logs.cancel_prompt() or self.logs.text.navigator.stop_search():
            return
        self._host.close_monitor(self)
