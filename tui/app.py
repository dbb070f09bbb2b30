"""The app: its start, its screens, and how it is left."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import App, SystemCommand
from textual.message import Message
from textual.screen import Screen

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.background import in_background, post
from tui.commands import Scope, bindings, commands
from tui.opening import OpenedRun, Opener, OpenFailed, RunSummary, found, opened
from tui.screens.home import HomeScreen
from tui.terminal import leave_when_terminal_is_gone, on_signals
from tui.theme import THEME, theme_name

if TYPE_CHECKING:
    from launcher.monitor.notify import Channel
    from launcher.monitor.watch import Watch
    from launcher.runs import Run
    from tui.run_view import RunView
    from tui.screens.monitor import MonitorScreen
    from tui.screens.wizard.draft_resolver import DraftResolver
    from tui.screens.wizard.model import WizardState


@dataclass(frozen=True, slots=True)
class DemoStart:
    """How the demo's run is started: in less than a second, on a thread of its own."""

    start: Callable[[], Run]
    """Raises an error of the ExplainedError family where it cannot."""


@dataclass(frozen=True, slots=True)
class AppSettings:
    """What the app opens with."""

    runs_root: Path
    open_run: str | None = None
    """Id or directory of a run whose monitor opens at once."""
    open_watch: tuple[str, Watch] | None = None
    """Title and watch of logs that are no run of ours, or whose run is not to be changed."""
    demo: DemoStart | None = None
    wizard_state: WizardState | None = None
    """What the wizard opens with at once."""
    notify: tuple[str, ...] = ()
    """How the user wants to be told of a run's start and end; empty for what their settings say."""
    guarded: bool = False
    """Whether signals and the terminal are looked after: not within tests, which have neither."""
    now: Callable[[], float] = time.time


class DemoRun:
    """The run that the demo started. Filled by a thread; the app waits for it before it stops the run."""

    def __init__(self, start: DemoStart) -> None:
        self._start = start
        self._settled = threading.Event()
        self.run: Run | None = None
        self.ended = False
        """Whether the monitor has seen its end."""

    def open(self) -> OpenedRun:
        """Start the run."""
        try:
            self.run = self._start.start()
            return opened(self.run)
        finally:
            self._settled.set()

    def stop(self) -> None:
        """Stop the run, if there is one; waits until it is gone."""
        self._settled.wait()
        if self.run is not None:
            from tui.screens.cancelling import cancel

            cancel(self.run.directory)


class AppStopped(Message):
    """The demo's run is gone."""


class DistillApp(App[None]):
    """Lists runs and watches them."""

    TITLE = "distill-tui"
    CSS_PATH = Path(__file__).with_name("distill.tcss")
    BINDINGS = bindings(Scope.APP)
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING: ClassVar[str] = "ctrl+p"

    def __init__(self, settings: AppSettings) -> None:
        no_colour = "NO_COLOR" in os.environ
        # Asked for here, since Textual decides here how it leaves colours out.
        super().__init__(ansi_color=True if no_colour else None)
        self.animation_level = "none"
        self.settings = settings
        self.register_theme(THEME)
        # Without the watcher, which would parse all styles a second time.
        self.set_reactive(App.theme, theme_name(os.environ))
        self.stylesheet.set_variables(self.get_css_variables())
        self._demo = DemoRun(settings.demo) if settings.demo is not None else None
        self._demo_screen: MonitorScreen | None = None
        self._leaving = False
        self._wizard_state: WizardState | None = None
        """What was typed in the wizard and neither submitted nor given up."""
        self._asked_to_quit = False

    def get_default_screen(self) -> Screen[None]:
        """Begin with the list of runs."""
        return HomeScreen(self, self.settings.runs_root)

    def on_mount(self) -> None:
        """Open what was asked for."""
        if self.settings.guarded:
            on_signals(self._leave_with, self.action_leave_now)
            leave_when_terminal_is_gone()
            threading.excepthook = lambda failure: self.call_from_thread(
                self._handle_exception, failure.exc_value or RuntimeError("a thread failed")
            )
        # After ctrl+z and `fg` the screen stays blank without this (Textualize/textual#6298).
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        if self._demo is not None:
            self._demo_screen = self._monitor(self._demo.open, "starting the demo …")
            self.push_screen(self._demo_screen)
        elif self.settings.open_watch is not None:
            title, watch = self.settings.open_watch
            known = OpenedRun(RunSummary(clean(title)), watch, watch.transport)
            self.push_screen(self._monitor(lambda: known, clean(title)))
        elif self.settings.open_run is not None:
            self.open_run(self.settings.open_run)
        elif self.settings.wizard_state is not None:
            self._open_wizard(self.settings.wizard_state)

    def on_ready(self) -> None:
        """Import on a thread what was left out of the start, so that no key waits for a slow file system."""
        in_background(
            lambda: _import_the_rest(stays=self.settings.guarded),
            "imports",
            lambda error: post(self, OpenFailed(error)),
        )

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self.settings.now()

    def in_front(self) -> bool:
        """Return whether the terminal has the user's attention, as far as it tells."""
        return bool(self.app_focus)

    def channels(self) -> tuple[Channel, ...]:
        """Return how the user wants to be told of a run's start and end."""
        from launcher.monitor.notify import channels, channels_in_settings

        return channels(self.settings.notify or channels_in_settings(), os.environ, self._write)

    def _write(self, text: str) -> str:
        """Write a sequence to the terminal beside what is painted (the driver queues it); never fails."""
        if self._driver is not None:
            self._driver.write(text)
        return ""

    def open_run(self, reference: str) -> None:
        """Show a run in the monitor."""
        opener: Opener = lambda: found(self.settings.runs_root, reference)  # noqa: E731 - names its type
        self.push_screen(self._monitor(opener, clean(Path(reference).name)))

    def new_run(self) -> None:
        """Open the wizard; with what was typed before, if that is wanted."""
        wizard_state = self._wizard_state
        if wizard_state is None or not wizard_state.touched:
            self._open_wizard(None)
            return
        from tui.screens.dialogs import Ask, DialogChoice

        def answered(answer: str | None) -> None:
            if answer is not None:
                self._open_wizard(wizard_state if answer == "on" else None)

        choices = [DialogChoice("g", "go on with it", "on"), DialogChoice("n", "begin anew", "anew")]
        self.push_screen(Ask("New run", "You were preparing a run.", choices), answered)

    def run_again(self, wizard_state: WizardState) -> None:
        """Open the wizard with what was chosen for a run before."""
        self._open_wizard(wizard_state)

    def _open_wizard(self, wizard_state: WizardState | None) -> None:
        from tui.screens.wizard.screen import WizardScreen

        self.push_screen(WizardScreen(self, wizard_state))

    def draft_resolver(self) -> DraftResolver:
        """Return the resolver of the wizard's drafts on this machine."""
        from launcher.runs import RunStore
        from tui.opening import local
        from tui.screens.wizard.draft_resolver import DraftResolver

        return DraftResolver(RunStore(local(), str(self.settings.runs_root)), os.environ)

    def put_aside(self, screen: Screen[None], wizard_state: WizardState) -> None:
        """Go back from the wizard to the list; what was typed is kept for the next time."""
        self._wizard_state = wizard_state
        self._close(screen)

    def submitted(self, screen: Screen[None], directory: str) -> None:
        """Go from the wizard to the monitor of the run it submitted."""
        self._wizard_state = None
        self._close(screen)
        self.open_run(directory)

    def _close(self, screen: Screen[None]) -> None:
        """Close a screen, and whatever was asked on top of it."""
        while screen in self.screen_stack:
            self.pop_screen()

    def _typed(self) -> bool:
        """Return whether leaving would lose what was typed in the wizard."""
        open_now = [getattr(screen, "wizard_state", None) for screen in self.screen_stack]
        states = [state for state in (self._wizard_state, *open_now) if state is not None]
        return any(state.touched and state != self.settings.wizard_state for state in states)

    def _monitor(self, opener: Opener, opening: str) -> MonitorScreen:
        # Not imported before it is needed: the list of runs is painted a tenth earlier without it.
        from tui.screens.monitor import MonitorScreen

        return MonitorScreen(self, opener, opening)

    def close_monitor(self, screen: Screen[None]) -> None:
        """Go back from a monitor to the list."""
        if self.screen is screen:
            self.pop_screen()

    def opening_failed(self, screen: Screen[None], error: ExplainedError) -> None:
        """Say why a run cannot be watched, then go back to the list."""
        if screen is self._demo_screen and self._demo is not None:
            self._demo.ended = True
        from tui.screens.dialogs import tell

        self.push_screen(tell(error), lambda _: self.close_monitor(screen))

    def viewed(self, screen: Screen[None], view: RunView) -> None:
        """Note whether the demo's run has ended: then there is nothing to ask when leaving."""
        if screen is self._demo_screen and self._demo is not None:
            self._demo.ended = view.state.ended

    def on_open_failed(self, event: OpenFailed) -> None:
        """Say that the demo's run could not be stopped, and stay."""
        from tui.screens.dialogs import tell

        if self._leaving:
            self._leaving = False
            self.pop_screen()
        self.push_screen(tell(event.error))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer the commands that are valid on the screen."""
        places = getattr(screen, "PLACES", (Scope.APP,))
        for command in commands(*places):
            name = command.action.partition("(")[0]
            if command.palette and (command.where is Scope.APP or screen.check_action(name, ())):
                space = self if command.where is Scope.APP else screen
                yield SystemCommand(
                    command.title, command.help, lambda a=command.action, n=space: self._do(a, n)
                )

    async def _do(self, action: str, namespace: App[None] | Screen[object]) -> None:
        await self.run_action(action, namespace)

    def action_help(self) -> None:
        """Show the help for the screen."""
        from tui.screens.help import HelpScreen

        places, about = getattr(self.screen, "PLACES", None), getattr(self.screen, "ABOUT", "")
        if places is not None:
            self.push_screen(HelpScreen(places, about))

    def action_leave(self) -> None:
        """Leave; where the demo's run goes on, ask what is to become of it."""
        from tui.screens.dialogs import Ask, DialogChoice

        if self._demo is None or self._demo.ended:
            if not self._typed():
                self.exit()
                return
            self._asked_to_quit = True
            choices = [DialogChoice("y", "quit", "leave"), DialogChoice("n", "stay", "stay")]
            text = "The run that you were preparing is not submitted; what you typed would be lost."
            self.push_screen(Ask("Quit?", text, choices, chosen=1), self._leave_as_asked)
            return
        choices = [
            DialogChoice("l", "leave it running; `distill-tui` shows it again", "leave"),
            DialogChoice("s", "stop it and quit", "stop"),
            DialogChoice("n", "stay", "stay"),
        ]
        text = "The demo's run is still going on, with a Ray cluster on this machine."
        self.push_screen(Ask("Quit the demo?", text, choices, chosen=1), self._leave_as_asked)

    def _leave_as_asked(self, answer: str | None) -> None:
        self._asked_to_quit = False
        if answer == "leave":
            self.exit()
        elif answer == "stop":
            self.action_leave_now()

    def action_leave_now(self) -> None:
        """Leave without a question; the demo's own run is stopped first."""
        if self._demo is None or self._demo.ended:
            if self._typed() and not self._asked_to_quit:
                self.action_leave()
            else:
                self.exit()
            return
        if self._leaving:
            return
        self._leaving = True
        if self._demo_screen is not None and self._demo_screen.is_attached:
            self._demo_screen.show_stopping()
        from tui.screens.dialogs import Wait

        self.push_screen(Wait("stopping …\n\nThe demo's run is being stopped; that takes a few seconds."))
        demo = self._demo

        def stop() -> None:
            demo.stop()
            post(self, AppStopped())

        in_background(stop, "stop", lambda error: post(self, OpenFailed(error)))

    def on_app_stopped(self) -> None:
        """Leave, now that nothing is left running."""
        self.exit()

    def _fatal_error(self) -> None:
        """Leave with three lines; the traceback, which is ours to read, goes to a file."""
        error = self._exception
        self._exit_renderables.append(Text(crash_report(error, self.settings.runs_root)))
        self._close_messages_no_wait()

    def _leave_with(self, code: int) -> None:
        self.exit(return_code=code)


def crash_report(error: BaseException | None, runs_root: Path) -> str:
    """Keep the traceback of a fault of ours in a file; returns what to tell, in three lines."""
    traceback = "".join(format_exception(error)) if error is not None else "no exception is known\n"
    path = runs_root.parent / "crash.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(traceback, encoding="utf-8")
        where = f"  in {path}"
    except OSError as failure:
        where = f"  in {clean(str(error))} (and {path} cannot be written: {failure.strerror})"
    what = f"distill-tui: a fault of the app ended it ({type(error).__name__}); runs go on"
    return f"{what}\n{where}\n  Please report it with that file; `distill-tui` opens the app again."


def _import_the_rest(*, stays: bool) -> None:
    for name in ("monitor", "help", "dialogs", "cancelling", "wizard.screen"):
        import_module(f"tui.screens.{name}")
    if stays:
        # What was loaded is no garbage: looking through all of it held the screen up now and then, on a busy
        # machine for 0.3 s.
        gc.freeze()


def run_app(
    *,
    runs_root: Path,
    open_run: str | None = None,
    demo: DemoStart | None = None,
    mouse: bool = True,
    open_watch: tuple[str, Watch] | None = None,
    wizard_state: WizardState | None = None,
    notify: tuple[str, ...] = (),
) -> int:
    """Open the app and return its exit code; `tui.terminal.refuse_reason` is to be asked before."""
    app = DistillApp(AppSettings(runs_root, open_run, open_watch, demo, wizard_state, notify, guarded=True))
    app.run(mouse=mouse)
    return app.return_code or 0
