"""The app: its start, its screens, and leaving it."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.events import Event, Key, Resize
from textual.screen import Screen

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.app_settings import AppSettings, EditStart
from tui.background import in_background, post
from tui.commands import Scope, bindings, commands, enabled
from tui.dashboards import Dashboards
from tui.key_order import KeyOrder, KeyPassed
from tui.leaving import Leaving, StopFailed, edits_would_be_lost
from tui.live_settings import LiveSettings
from tui.machines import Machines
from tui.opening import ActionFailed, OpenedRun, Opener, RunSummary, find_run, find_run_on
from tui.screen_imports import import_screens
from tui.screen_settings import ScreenSettings, load_screen_settings
from tui.screen_styles import FIRST, ScreenStyles
from tui.screens.home import HomeScreen
from tui.screens.host import Remarking
from tui.settings_watch import SettingsChanged
from tui.terminal import leave_when_terminal_is_gone, on_signals
from tui.terminal_driver import CellDriver
from tui.theme import THEME, initial_theme

if TYPE_CHECKING:
    from launcher.doctor.doctor_request import DoctorRequest
    from launcher.monitor.notify import Channel
    from launcher.monitor.watch import Watch
    from launcher.storage.wizard_drafts import RunDraft, RunDraftWriter
    from launcher.transports.ssh.authentication import LoginPrompt
    from tui.demo_run import DemoStart
    from tui.run_view import RunView
    from tui.screens.monitor import MonitorScreen
    from tui.screens.wizard.draft_resolver import DraftResolver
    from tui.screens.wizard.model import WizardState
    from tui.work_machine import WorkMachine


class DistillApp(App[None]):
    """Lists runs and watches them."""

    TITLE = "distill-tui"
    CSS_PATH = FIRST
    BINDINGS = bindings(Scope.APP)
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING: ClassVar[str] = "ctrl+p"

    def __init__(self, settings: AppSettings) -> None:
        no_colour = "NO_COLOR" in os.environ
        # Set here, since Textual decides here how it omits colours.
        super().__init__(ansi_color=True if no_colour else None)
        self.animation_level = "none"
        self.settings = settings
        self.register_theme(THEME)
        # Without the watcher, which would parse all styles again.
        self.set_reactive(App.theme, initial_theme(os.environ, settings.screen.theme))
        self.stylesheet.set_variables(self.get_css_variables())
        self._leaving = Leaving(self, self.has_unsaved_draft, settings.demo)
        self._wizard_state: WizardState | None = None
        """What was typed in a wizard that was left, where no draft of it could be written."""
        self._imported = False
        """Whether the other screens were imported after the editor of the start."""
        self._key_order = KeyOrder(self, super().on_event)
        self._screen_styles = ScreenStyles(self)
        self._live_settings = LiveSettings(self, settings.screen, os.environ)
        self._machines = Machines(self._answer_login)
        self.dashboards = Dashboards()
        self._shown_errors: dict[str, Screen[Any]] = {}
        """Dialog of each failure, by its text."""

    def get_default_screen(self) -> Screen[None]:
        """Begin with the list of runs."""
        return HomeScreen(self, self.settings.runs_root, self.settings.hosts)

    async def on_mount(self) -> None:
        """Open the screen that the settings name."""
        if self.settings.guarded:
            on_signals(self._leave_with, self.action_leave_now)
            leave_when_terminal_is_gone()
            self._live_settings.start()
            threading.excepthook = lambda failure: self.call_from_thread(
                self._handle_exception, failure.exc_value or RuntimeError("a thread failed")
            )
        # Without this the screen stays blank after ctrl+z and `fg` (Textualize/textual#6298).
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        demo = self._leaving.demo
        if demo is not None:
            self._leaving.demo_screen = self._monitor(demo.open, "starting the demo …")
            self.push_screen(self._leaving.demo_screen)
        elif self.settings.open_watch is not None:
            title, watch = self.settings.open_watch
            opened = OpenedRun(RunSummary(clean(title)), watch, watch.transport)
            self.push_screen(self._monitor(lambda: opened, clean(title)))
        elif self.settings.open_run is not None:
            self.open_run(self.settings.open_run, self.settings.host)
        elif self.settings.wizard_state is not None:
            if self.settings.wizard_state.touched:
                self._open_wizard(self.settings.wizard_state, machine=self.settings.host)
            else:
                await self.new_run(self.settings.host)
        elif self.settings.edit is not None:
            self._open_editor(self.settings.edit)
        elif self.settings.doctor is not None:
            from tui.screens.doctor import DoctorScreen, DoctorStart

            start = DoctorStart(self.settings.doctor, self.settings.runs_root, self.settings.host)
            self.push_screen(DoctorScreen(self, start))

    def push_screen(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as Textual's overloads
        """Show another screen; the rules for its look are read before the first one."""
        self._screen_styles.add()
        return super().push_screen(*arguments, **options)

    def on_ready(self) -> None:
        """Import the other screens after the first list, so that neither it nor a later key waits.

        A recipe is read first: the imports would share the interpreter with that.
        """
        self.call_after_refresh(self._collect_garbage)
        home = self.screen
        if isinstance(home, HomeScreen):
            home.on_listed = self._do_after_paint
        elif self.settings.edit is None or self.settings.edit.path is None:
            self.call_after_refresh(self._do_after_paint)

    def _collect_garbage(self) -> None:
        """Collect garbage from now on; during the start, which makes none, it takes a tenth of the time."""
        if self.settings.guarded and not gc.isenabled():
            gc.freeze()
            gc.enable()

    def opened(self) -> None:
        """Import the other screens, now that the recipe is shown which the app was started for."""
        if self.settings.edit is not None and self.settings.edit.path is not None and not self._imported:
            self._imported = True
            self._do_after_paint()

    def _do_after_paint(self) -> None:
        """Import, and tidy up, on a thread: a file system may be slow."""
        self._screen_styles.add()

        def work() -> None:
            import_screens(freeze=self.settings.guarded)
            _remove_leftovers()

        in_background(work, "imports", lambda error: post(self, ActionFailed(error)))

    async def on_event(self, event: Event) -> None:
        """Dispatch keys one at a time, each to the focus that the one before it left."""
        if not isinstance(event, Key):
            if isinstance(event, Resize) and isinstance(self._driver, CellDriver):
                self._driver.resized(*event.size)
            await super().on_event(event)
        elif not event.is_forwarded:
            await self._key_order.take(event)
        else:
            await super().on_event(event)
            await self._key_order.reached_app(event)

    async def on_key_passed(self, event: KeyPassed) -> None:
        """Dispatch the next key."""
        await self._key_order.passed(event)

    @property
    def screen_settings(self) -> ScreenSettings:
        """The user's settings of the screen."""
        return self._live_settings.settings

    def on_settings_changed(self, event: SettingsChanged) -> None:
        """Adopt the settings that another program has written."""
        self._live_settings.adopt(event)

    def action_change_density(self) -> None:
        """Have more rows on a screen, or more room between its parts."""
        self.notify(f"density: {self._live_settings.change_density()}")

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self.settings.now()

    def in_front(self) -> bool:
        """Return whether the terminal has the focus, as far as it reports that."""
        return bool(self.app_focus)

    def slow_terminal(self) -> bool:
        """Return whether the terminal is behind with what was painted."""
        return isinstance(self._driver, CellDriver) and self._driver.meter.slow

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of a terminal."""
        return CellDriver

    def channels(self) -> tuple[Channel, ...]:
        """Return the user's notification channels for a run's start and end."""
        from launcher.monitor.notify import channels, channels_in_settings

        return channels(self.settings.notify or channels_in_settings(), os.environ, self._write)

    def _write(self, text: str) -> str:
        """Write an escape sequence to the terminal through the driver's queue; never fails."""
        if self._driver is not None:
            self._driver.write(text)
        return ""

    @property
    def first_host(self) -> str:
        """Name of the host that the app was opened for; empty for this machine."""
        return self.settings.host

    def machine(self, name: str) -> WorkMachine:
        """Return a machine by its name; this one for an empty name."""
        return self._machines.at(name)

    def try_hosts_again(self) -> None:
        """Let the next uses of hosts connect at once, also of those that refused."""
        self._machines.try_again()

    def close_connections(self) -> None:
        """Close the connections to hosts, and the ports to what is there."""
        self.dashboards.close()
        self._machines.close()

    def _answer_login(self, prompt: LoginPrompt) -> str:
        """Have the user answer a question of a login; called on a thread, which waits."""
        from tui.screens.login import ask_login

        return ask_login(self, prompt)

    def open_run(self, reference: str, machine: str = "") -> None:
        """Show a run of a machine in the monitor."""

        def opener() -> OpenedRun:
            if not machine:
                return find_run(self.settings.runs_root, reference)
            return find_run_on(self.machine(machine), reference)

        title = clean(Path(reference).name)
        self.push_screen(self._monitor(opener, f"{machine}: {title}" if machine else title, machine))

    async def new_run(self, machine: str = "") -> None:
        """Open the wizard for a machine; drafts that were left are offered first."""
        from tui.screens.wizard.draft_keeping import offer, offered_drafts

        kept_here, self._wizard_state = self._wizard_state, None
        drafts = () if kept_here is not None else await offered_drafts()
        if drafts:
            offer(self, drafts, self._open_wizard, machine)
        else:
            self._open_wizard(kept_here, machine=machine)

    async def continue_draft(self, draft: RunDraft) -> None:
        """Open the wizard with a draft that was left, at its step."""
        from tui.screens.wizard.draft_keeping import go_on

        await go_on(self, draft, self._open_wizard)

    def run_again(self, wizard_state: WizardState, machine: str = "") -> None:
        """Open the wizard with the settings of an earlier run of a machine."""
        self._open_wizard(wizard_state, machine=machine)

    def _open_wizard(
        self,
        wizard_state: WizardState | None,
        step: str = "",
        draft: RunDraftWriter | None = None,
        machine: str = "",
    ) -> None:
        from tui.screens.wizard.screen import WizardScreen

        self.push_screen(WizardScreen(self, wizard_state, step, draft, machine))

    def _open_editor(self, start: EditStart) -> None:
        from tui.screens.editor.choose_recipe import ask_recipe, edit_recipe_at

        if start.path is not None and self.settings.host:
            edit_recipe_at(self, self, str(start.path), self.settings.host, overrides=start.overrides)
        elif start.path is not None:
            self.edit_recipe(start.path, overrides=start.overrides)
        else:
            ask_recipe(self, self, machine=self.settings.host)

    def edit_recipe(
        self,
        path: Path,
        *,
        key: str = "",
        line: int = 0,
        overrides: tuple[str, ...] = (),
        draft: str = "",
    ) -> None:
        """Open a recipe in the editor, at a key or a line; `draft`: file of unsaved edits to go on with."""
        from tui.screens.editor.recipe_editor import RecipeEditorScreen
        from tui.screens.editor.session_worker import OpenedFile

        file = OpenedFile.at(path.absolute(), overrides, draft)
        self.push_screen(RecipeEditorScreen(self, file, key, line))

    def close_editor(self, screen: Screen[None], remark: str) -> None:
        """Return from an editor to the screen below it; one that was opened alone ends the app."""
        editors = [item for item in self.screen_stack if type(item) is type(screen)]
        alone = self.settings.edit is not None and self.settings.edit.path is not None and len(editors) == 1
        self._close(screen)
        if alone:
            self.exit(message=remark or None)
        elif remark and isinstance(self.screen, Remarking):
            self.screen.show_remark(remark)
        elif remark:
            self.notify(remark, markup=False)

    def draft_resolver(self, machine: str = "") -> DraftResolver:
        """Return a resolver of drafts on a machine, for the wizard; called on a thread."""
        from launcher.runs import RunStore, store_on
        from tui.opening import local
        from tui.screens.wizard.draft_resolver import DraftResolver

        if machine:
            store = store_on(self.machine(machine).transport())
            return DraftResolver(store, store.transport.environment())
        return DraftResolver(RunStore(local(), str(self.settings.runs_root)), os.environ)

    def use_runs_root(self, root: Path) -> None:
        """Keep and list runs in another directory from now on."""
        self.settings = replace(self.settings, runs_root=root)
        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.use_runs_root(root)

    def put_aside(self, screen: Screen[None], wizard_state: WizardState) -> None:
        """Return from the wizard to the list; what could not be kept on disk is kept here."""
        self._wizard_state = wizard_state if getattr(screen, "would_lose_entries", False) else None
        self._close(screen)

    def submitted(self, screen: Screen[None], directory: str, machine: str = "") -> None:
        """Go from the wizard to the monitor of the run it submitted."""
        self._wizard_state = None
        self._close(screen)
        self.open_run(directory, machine)

    def _close(self, screen: Screen[None]) -> None:
        """Close a screen and the dialogs above it; the list of runs below all stays."""
        while screen in self.screen_stack[1:]:
            self.pop_screen()

    def _monitor(self, opener: Opener, opening: str, machine: str = "") -> MonitorScreen:
        # Imported late: the list of runs is painted a tenth earlier without it.
        from tui.screens.monitor import MonitorScreen

        return MonitorScreen(self, opener, opening, machine)

    def close_monitor(self, screen: Screen[None]) -> None:
        """Return from a monitor to the list."""
        if self.screen is screen:
            self.pop_screen()

    def opening_failed(self, screen: Screen[None], error: ExplainedError) -> None:
        """Show why a run cannot be opened, then return to the list."""
        self._leaving.note_demo(screen, ended=True)
        from tui.screens.dialogs import error_dialog

        self.push_screen(error_dialog(error), lambda _: self.close_monitor(screen))

    def viewed(self, screen: Screen[None], view: RunView) -> None:
        """Note whether the demo's run has ended; then leaving needs no question."""
        self._leaving.note_demo(screen, ended=view.state.ended)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer the commands that are valid on the screen."""
        for command in commands(*getattr(screen, "SCOPES", (Scope.APP,))):
            if command.palette and enabled(command, screen):
                namespace = self if command.scope is Scope.APP else screen
                yield SystemCommand(
                    command.title, command.help, lambda a=command.action, n=namespace: self._run_command(a, n)
                )

    def action_command_palette(self) -> None:
        """Open the palette."""
        from tui.screens.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    async def _run_command(self, action: str, namespace: App[None] | Screen[object]) -> None:
        await self.run_action(action, namespace)

    def action_help(self) -> None:
        """Show the help for the screen; in a dialog, for the screen below it."""
        from tui.screens.help import HelpScreen
        from tui.usage_lines import usage_lines

        helped = next((screen for screen in reversed(self.screen_stack) if hasattr(screen, "SCOPES")), None)
        if helped is not None:
            meter = self._driver.meter if isinstance(self._driver, CellDriver) else None
            transport = getattr(helped, "watch_transport", None)
            about = getattr(helped, "ABOUT", "")
            self.push_screen(HelpScreen(helped.SCOPES, about, lambda: usage_lines(meter, transport)))

    def action_doctor(self) -> None:
        """Open the doctor; a screen with a recipe has a `doctor_request` of its own."""
        from tui.screens.doctor import DoctorScreen, DoctorStart

        if not any(isinstance(screen, DoctorScreen) for screen in self.screen_stack):
            request_of = getattr(self.screen, "doctor_request", None)
            request = request_of() if request_of is not None else None
            machine = getattr(self.screen, "machine_name", "")
            self.push_screen(DoctorScreen(self, DoctorStart(request, self.settings.runs_root, machine)))

    def action_redraw(self) -> None:
        """Paint the whole screen again: another program may have written on the terminal."""
        if isinstance(self._driver, CellDriver):
            self._driver.forget()
        self.refresh(layout=True)

    def has_unsaved_draft(self) -> bool:
        """Return whether leaving would lose entries of the wizard, or edits of a recipe."""
        if edits_would_be_lost(self):
            return True
        left = self._wizard_state is not None
        return left or any(getattr(screen, "would_lose_entries", False) for screen in self.screen_stack)

    def action_leave(self) -> None:
        """Leave; asks whether to stop the demo's run, and before entries would be lost."""
        self._leaving.leave()

    def action_leave_now(self) -> None:
        """Leave at once; the demo's run is stopped first. Asks only before entries would be lost."""
        self._leaving.leave_now()

    def on_app_stopped(self) -> None:
        """Leave, now that the demo's run was stopped."""
        self.exit()

    def on_stop_failed(self, event: StopFailed) -> None:
        """Show why the demo's run could not be stopped, and stay."""
        self._leaving.stay(event.error)

    def on_action_failed(self, event: ActionFailed) -> None:
        """Show why a request failed, whichever screen it was made on."""
        from tui.screens.dialogs import error_dialog

        text = str(event.error)
        if self._shown_errors.get(text) not in self.screen_stack:  # what is tried again and again fails again
            dialog = self._shown_errors[text] = error_dialog(event.error)
            self.push_screen(dialog)

    def _fatal_error(self) -> None:
        """Leave with a message of three lines; the traceback goes to a file."""
        from tui.crash_report import crash_report

        report = crash_report(self._exception, self.settings.runs_root)
        self._exit_renderables.append(Text(report))
        self._close_messages_no_wait()

    def _leave_with(self, code: int) -> None:
        self.exit(return_code=code)


def _remove_leftovers() -> None:
    """Remove what killed processes left beside the drafts."""
    from launcher.storage.choice_files import remove_leftovers

    remove_leftovers(os.environ)


def listed_hosts(host: str) -> tuple[str, ...]:
    """Return the hosts whose runs are listed: those of the settings, with one that was named.

    Raises:
        InputError: the settings cannot be read.
    """
    from launcher.settings import load_settings

    return tuple(dict.fromkeys(filter(None, (host, *load_settings(os.environ).hosts))))


def run_app(
    *,
    runs_root: Path,
    open_run: str | None = None,
    demo: DemoStart | None = None,
    mouse: bool = True,
    open_watch: tuple[str, Watch] | None = None,
    wizard_state: WizardState | None = None,
    notify: tuple[str, ...] = (),
    edit: EditStart | None = None,
    doctor: DoctorRequest | None = None,
    host: str = "",
) -> int:
    """Run the app and return its exit code; `tui.terminal` has checked the terminal before."""
    settings = AppSettings(
        runs_root, open_run, open_watch, demo, wizard_state, edit, notify, guarded=True,
        screen=load_screen_settings(os.environ), doctor=doctor, host=host, hosts=listed_hosts(host),
    )  # fmt: skip
    app = DistillApp(settings)
    app.run(mouse=mouse)
    app.close_connections()
    return app.return_code or 0
