"""The monitor: one run, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll

from launcher.transports.base import Transport
from tui.commands import Scope, bindings
from tui.logview.pane import LogPane
from tui.opening import OpenedRun, Opener, OpenFailed, RunSummary
from tui.run_poller import MonitorPoller, RunOpened, RunViewChanged
from tui.run_view import RunView
from tui.screens.cancelling import ask_to_cancel, what_is_lost
from tui.screens.dialogs import Ask, DialogChoice, tell
from tui.screens.host import Host
from tui.screens.log_commands import LogCommands
from tui.widgets.curve import CurveView
from tui.widgets.keybar import KeyBar
from tui.widgets.status_panel import StateStrip
from tui.widgets.timeline import Timeline, current_line

if TYPE_CHECKING:
    from launcher.runs import Run

PANES = ("timeline", "curve", "logs")
_PANE_IDS = (*(f"monitor.{pane}" for pane in PANES), "monitor.back")
_PANE_COMMANDS = {
    "timeline": (*_PANE_IDS, "monitor.cancel", "monitor.again"),
    "curve": (*_PANE_IDS, "monitor.metric"),
    "logs": (*_PANE_IDS, "log.search", "log.follow"),
}
"""What the bar shows first while a pane has the keys."""


class MonitorScreen(LogCommands):
    """State, timeline, curve and logs of a run: side by side where there is room, else one at a time."""

    BINDINGS = bindings(Scope.MONITOR)
    PLACES = (Scope.MONITOR, Scope.LOG, Scope.APP)
    ABOUT = (
        "One run, as it happens. Its state comes from its logs and from whatever runs it; "
        "leaving the monitor, or the app, does not touch the run."
    )

    def __init__(self, host: Host, opener: Opener, opening: str) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (78, "-narrow"), (100, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-high")]
        self._host = host
        self._feed = MonitorPoller(opener, self, host.in_front, host.channels)
        self._opened: OpenedRun | None = None
        self._stopping = False
        self._pane = "timeline"
        self.bar_first: tuple[str, ...] = ()
        self.view = RunView(RunSummary(opening), reason="looking …")
        self.strip = StateStrip()
        self.timeline = Timeline()
        self.timeline_box = VerticalScroll(self.timeline, id="timeline")
        self.curve = CurveView()
        self.logs = LogPane()

    @property
    def transport(self) -> Transport | None:
        """How the logs are read; None before the run is open."""
        return self._opened.transport if self._opened is not None else None

    @property
    def _run(self) -> Run | None:
        """The run that is shown, once it is open; None for logs that are no run."""
        return self._opened.run if self._opened is not None else None

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.strip
        with Vertical(id="panes"):
            with Horizontal(id="upper"):
                yield self.timeline_box
                with Vertical(id="curve"):
                    yield self.curve
            with Vertical(id="logs"):
                yield self.logs
        yield KeyBar(Scope.MONITOR, Scope.APP)

    def on_mount(self) -> None:
        """Show the frame; the run is opened after it was painted."""
        for key, pane in enumerate(PANES, 1):
            self.query_one(f"#{pane}").border_title = f"{key} {pane}"
        self.action_show_pane(self._pane)
        self._arrange()
        self.call_after_refresh(self._feed.start)
        self.set_interval(1.0, self._arrange)

    def on_unmount(self) -> None:
        """End the thread."""
        self._feed.stop()

    def on_screen_resume(self) -> None:
        """Give the keys back to the pane."""
        self.action_show_pane(self._pane)

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.call_after_refresh(self._arrange)

    def on_run_opened(self, event: RunOpened) -> None:
        """Read the logs of the run, now that it is there."""
        event.stop()
        self._opened = event.opened
        self.view = RunView(event.opened.about, reading=True)
        self.logs.read_through(event.opened.transport)
        self._arrange()

    def on_open_failed(self, event: OpenFailed) -> None:
        """Say why there is nothing to watch, and go back; or why the run was not stopped."""
        event.stop()
        if self._opened is None:
            self._host.opening_failed(self, event.error)
            return
        self._stopping = False
        self._arrange()
        self.app.push_screen(tell(event.error))

    def on_run_view_changed(self, event: RunViewChanged) -> None:
        """Show what changed."""
        event.stop()
        before, self.view = self.view, event.view
        if self.view.state.ended:
            self._stopping = False
        self.curve.show(self.view)
        self.logs.set_logs(self.view.logs, settled=self.view.state.ended)
        self._arrange()
        if current_line(before) != current_line(self.view):
            self.call_after_refresh(self._show_current)
        self._host.viewed(self, self.view)

    def _arrange(self) -> None:
        """Show the view as it is at this moment."""
        now = self._host.now()
        waited = self._feed.busy_for
        slow = waited if waited > 2 and self._opened is not None else 0.0
        self.strip.show(self.view, now, stopping=self._stopping, unanswered=slow)
        self.timeline.show(self.view, now)
        self.logs.update_status()
        self.query_one(KeyBar).look_again()

    def _show_current(self) -> None:
        """Scroll the timeline to what matters now."""
        height = self.timeline_box.scrollable_content_region.height
        line = current_line(self.view)
        self.timeline_box.scroll_to(y=max(line + 2 - height, 0), animate=False)

    def on_log_pane_status_changed(self) -> None:
        """Another log: other commands may be valid."""
        self._arrange()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which commands are valid now."""
        if action == "cancel_run":
            return self._run is not None and not self.view.state.ended and not self._stopping
        if action == "run_again":
            run = self._run
            return run is not None and run.spec.cluster == "slurm" and self.view.state.ended
        if action == "next_metric":
            return self.curve.metrics > 1
        return self.log_action_valid(action)

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane to the front and give it the keys."""
        self._pane = pane
        self.bar_first = _PANE_COMMANDS[pane]
        for name in PANES:
            self.set_class(name == pane, f"-{name}")
        focused = {"timeline": self.timeline_box, "curve": self.logs.text, "logs": self.logs.text}[pane]
        if pane == "curve" and not self.has_class("-wide"):
            self.set_focus(None)
        else:
            self.set_focus(focused)
        self.query_one(KeyBar).look_again()

    def action_next_metric(self) -> None:
        """Let the curve show another metric."""
        self.curve.next_metric()
        if not self.has_class("-wide"):
            self.action_show_pane("curve")

    def action_cancel_run(self) -> None:
        """Stop this run."""
        run = self._run
        if run is None:
            return
        lost = what_is_lost(self.view.step, self.view.checkpoint)
        ask_to_cancel(self, run.directory, self.view.about.title, lost, self.show_stopping)

    def action_run_again(self) -> None:
        """Prepare the same run anew, on request with what helps against its failure."""
        # Not imported before it is needed: a monitor is open earlier without the wizard.
        from tui.screens.wizard.from_run import remedies, wizard_state_of

        run = self._run
        if run is None:
            return
        overrides = remedies(self.view.findings)
        if not overrides:
            self._host.run_again(wizard_state_of(run))
            return

        def answered(answer: str | None) -> None:
            if answer is not None:
                self._host.run_again(wizard_state_of(run, overrides if answer == "with" else ()))

        changes = "\n".join(item.removeprefix("++") for item in overrides)
        choices = [DialogChoice("w", "with that", "with"), DialogChoice("p", "as it was", "plain")]
        text = f"The advice on its failure changes the recipe:\n\n{changes}"
        self.app.push_screen(Ask("Run it again", text, choices), answered)

    def show_stopping(self) -> None:
        """Say that the run is being stopped."""
        self._stopping = True
        self._feed.wake()
        self._arrange()

    def action_back(self) -> None:
        """Leave the line to type in, or end a search; elsewhere, go back to the runs."""
        if self.logs.leave_prompt() or self.logs.text.stop_search():
            return
        self._host.close_monitor(self)
