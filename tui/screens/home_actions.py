"""Actions of the list of runs on the selected or marked rows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.screen import Screen

from launcher.errors import InputError
from launcher.logs.job_state import JobState
from launcher.overview.rows import RunRow
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.clipboard import copy_to_tmux, in_tmux
from tui.formatting import plural
from tui.opening import ActionFailed, OpenedRun, RunSummary, open_directory
from tui.run_view import ViewBuilder
from tui.screens.cancelling import ask_to_cancel, ask_to_trust, cancel, what_is_lost
from tui.screens.connection_words import connection_part, connections_part
from tui.screens.dialogs import ChoiceDialog, DialogChoice, error_dialog
from tui.screens.host import Host
from tui.screens.removing import Remover
from tui.screens.resuming import ask_to_resume, ask_to_resume_several

if TYPE_CHECKING:
    from tui.screens.run_actions import RunActions
    from tui.work_machine import WorkMachine

_LISTED = 6


class HomeActions:
    """Actions on rows; `changed` is called when the list may have changed, `note` shows a sentence."""

    def __init__(
        self, screen: Screen[None], host: Host, *, changed: Callable[[], None], note: Callable[[str], None]
    ) -> None:
        self._screen = screen
        self._host = host
        self._changed = changed
        self._note = note

    # ------------------------------------------------------------ cancel

    def cancel(self, rows: Sequence[RunRow]) -> None:
        """Ask, and stop what lives of these rows."""
        live = [row for row in rows if row.live]
        if len(live) == 1 and live[0].is_run:
            row = live[0]
            lost = what_is_lost(row.step, row.checkpoint)
            ask_to_cancel(
                self._screen, row.directory, row.name, lost, self._changed, machine=self._machine(row)
            )
        elif live:
            self._cancel_all(live)

    def _machine(self, row: RunRow) -> WorkMachine:
        """Return the machine of a row."""
        return self._host.machine(row.host)

    def _cancel_all(self, rows: Sequence[RunRow]) -> None:
        def answered(answer: str | None) -> None:
            if answer == "cancel":
                self._note(f"cancelling {plural(len(rows), 'job')} …")
                for row in rows:
                    in_background(partial(self._cancel, row), "cancel", self._cancel_failed(row))

        lines = [f"{row.name}  {row.job or row.id}" for row in rows[:_LISTED]]
        more = [f"and {len(rows) - _LISTED} more"] if len(rows) > _LISTED else []
        text = "\n".join((*lines, *more, "", "Files written so far are kept."))
        choices = [DialogChoice("y", "cancel them", "cancel"), DialogChoice("n", "keep them running", "keep")]
        title = f"Cancel {plural(len(rows), 'job')}?"
        self._screen.app.push_screen(ChoiceDialog(title, text, choices, chosen=1), answered)

    def _cancel(self, row: RunRow) -> None:
        if row.is_run:
            cancel(row.directory, self._machine(row))
        else:
            from launcher.clusters.registry import cancel_job

            transport = self._machine(row).transport()
            cancel_job(transport, transport.environment(), row.job)
        self._done(f"cancelled: {row.name}")

    def _cancel_failed(self, row: RunRow) -> Callable[[ExplainedError], None]:
        def failed(error: ExplainedError) -> None:
            from launcher.ownership import ForeignRunError

            if isinstance(error, ForeignRunError):
                again = partial(cancel, row.directory, self._machine(row), trust=True)
                call_on(self._screen, partial(ask_to_trust, self._screen, error, again))
            else:
                self._failed(error)

        return failed

    # ------------------------------------------------------------ remove, rename

    def remove(self, rows: Sequence[RunRow]) -> None:
        """Ask with the size, and remove runs that have ended, drafts, and what is remembered of jobs."""
        Remover(
            self._screen, self._host.machine, note=self._note, done=self._done, failed=self._failed
        ).remove(rows)

    def rename(self, row: RunRow) -> None:
        """Ask for a new name."""
        from tui.widgets.entry_dialog import EntryDialog, EntryRequest

        def answered(name: str | None) -> None:
            if name is not None and name.strip() and name != row.name:
                in_background(lambda: rename(name), "rename", self._failed)

        def rename(name: str) -> None:
            from launcher.storage.run_edits import rename_run

            run = rename_run(self._machine(row).transport(), row.directory, name)
            self._done(f"renamed {row.name} to {run.spec.name}")

        hint = "the run's id and directory stay as they are"
        self._screen.app.push_screen(EntryDialog(EntryRequest("Rename the run", row.name, hint)), answered)

    # ------------------------------------------------------------ resume, run again, report

    def resume(self, rows: Sequence[RunRow]) -> None:
        """Submit one more job of each of these runs that have ended, after one question."""
        self._note("looking for the last checkpoint …")
        ended = [row for row in rows if row.jobs and row.has_ended]
        if len(rows) == 1:
            ask_to_resume(self._screen, ended[0].directory, self._machine(ended[0]))
        else:
            runs = [(row.directory, self._machine(row)) for row in ended]
            ask_to_resume_several(self._screen, runs, len(rows) - len(ended))

    def run_again(self, row: RunRow) -> None:
        """Open the wizard with a run's settings."""
        self._with_run(row, lambda actions: actions.run_again())

    def report(self, row: RunRow) -> None:
        """Write the report of a run, and open it in the pager."""
        self._with_run(row, lambda actions: actions.report())

    def _with_run(self, row: RunRow, act: Callable[[RunActions], None]) -> None:
        """Read a run on a thread, then do what its monitor would do."""

        def read() -> None:
            from tui.screens.run_actions import RunActions

            opened = open_directory(row.directory, self._machine(row))
            events = opened.watch.catch_up()
            watch = opened.watch
            view = ViewBuilder(opened.summary).build(watch.state, events, watch.known_logs)
            actions = RunActions(
                self._screen,
                self._host,
                opened=lambda: opened,
                view=lambda: view,
                node=lambda: "",
                note=self._note,
            )
            call_on(self._screen, lambda: act(actions))

        self._note("reading the run …")
        in_background(read, "run", self._failed)

    # ------------------------------------------------------------ drafts

    def open_draft(self, row: RunRow) -> None:
        """Go on with unsaved edits of a recipe, or with a run that is being prepared."""
        if row.recipe and row.host:
            from tui.screens.editor.choose_recipe import edit_recipe_at

            edit_recipe_at(self._host, self._screen.app, row.recipe, row.host, draft=row.draft)
            return
        if row.recipe:
            self._host.edit_recipe(Path(row.recipe), draft=row.draft)
            return
        self._note("reading the draft …")
        in_background(lambda: self._read_draft(row), "draft", self._failed)

    def _read_draft(self, row: RunRow) -> None:
        """Read the draft of a run on a thread, and go on with it."""
        from launcher.overview.draft_rows import run_draft

        draft = run_draft(row)

        def go_on() -> None:
            if draft is None:
                self._note("this draft is open in another window, or gone")
                self._changed()
            else:
                self._note("")
                self._screen.run_worker(self._host.continue_draft(draft))

        call_on(self._screen, go_on)

    # ------------------------------------------------------------ jobs of other programs

    def open_job(self, row: RunRow) -> None:
        """Watch a job that something else submitted, and remember it."""
        self.watch_job(row.job, row, row.host)

    def watch_job(self, identity: str, row: RunRow | None = None, host: str = "") -> None:
        """Watch a Slurm job of a machine by its number; one of this machine is remembered."""
        from tui.screens.monitor import MonitorScreen

        title = f"{row.name}  job {identity}" if row is not None else f"job {identity}"
        title, machine = f"{host}: {title}" if host else title, self._host.machine(host)

        def opener() -> OpenedRun:
            from launcher.monitor.watch_run import watch_job
            from launcher.overview.job_rows import remember, remembered_file

            watch = watch_job(machine.transport(), identity)
            named = row or RunRow(identity, f"job {identity}", "", JobState.UNKNOWN, job=identity)
            if not host:
                remember(remembered_file(), named)
            return OpenedRun(RunSummary(title), watch, machine.transport(), machine=machine)

        self._screen.app.push_screen(MonitorScreen(self._host, opener, title, host))

    def ask_what_to_watch(self, host: str = "") -> None:
        """Ask for a job's number or a directory of logs of a machine, and watch it."""
        from tui.widgets.entry_dialog import EntryDialog, EntryRequest

        def answered(typed: str | None) -> None:
            text = (typed or "").strip()
            if text.isdecimal():
                self.watch_job(text, host=host)
            elif text:
                self._watch_directory(text, host)

        hint = "number of a Slurm job, or a directory of logs"
        title = f"Watch a job on {host}" if host else "Watch a job"
        self._screen.app.push_screen(EntryDialog(EntryRequest(title, hint=hint)), answered)

    def _watch_directory(self, text: str, host: str) -> None:
        from tui.screens.monitor import MonitorScreen

        def opener() -> OpenedRun:
            from launcher.base_directories import expand
            from launcher.monitor.watch import watch_directory

            transport = machine.transport()
            directory = str(machine.path(str(expand(text, transport.environment()))).absolute())
            status = transport.stat(directory)
            if status is None or not status.is_dir:
                raise InputError("there is no such directory", where=directory)
            watch = watch_directory(transport, directory)
            return OpenedRun(RunSummary(title), watch, machine.transport(), machine=machine)

        title, machine = f"{host}: {text}" if host else text, self._host.machine(host)
        self._screen.app.push_screen(MonitorScreen(self._host, opener, title, host))

    # ------------------------------------------------------------ charts, comparison

    def open_charts(self, row: RunRow) -> None:
        """Show the charts of a run."""
        from tui.screens.charts import ChartsScreen

        def opener() -> OpenedRun:
            return open_directory(row.directory, self._machine(row))

        teller = partial(connection_part, self._host, row.host) if row.host else None
        self._screen.app.push_screen(ChartsScreen(opener, row.name, teller, row.host))

    def open_dashboard(self, row: RunRow) -> None:
        """Open a port to the Ray dashboard of a run, and show its address."""
        from tui.screens.dashboard_dialog import show_dashboard

        machine = self._machine(row)

        def read() -> None:
            from launcher.runs import load

            run = load(machine.transport(), row.directory)
            call_on(
                self._screen, lambda: show_dashboard(self._screen, self._host, machine, run, note=self._note)
            )

        in_background(read, "run", self._failed)

    def compare(self, rows: Sequence[RunRow]) -> None:
        """Show runs beside each other, in the order of the list."""
        from tui.screens.comparison import ComparisonScreen

        runs = [row for row in rows if row.is_run]
        compared = [(row.directory, self._machine(row)) for row in runs]
        machines = [machine for _, machine in compared]
        teller = partial(connections_part, self._host, machines)
        self._screen.app.push_screen(ComparisonScreen(compared, teller))

    # ------------------------------------------------------------ shell, copy

    def shell_here(self, row: RunRow) -> None:
        """Leave the terminal to a shell in the run's directory until it exits."""
        app = self._screen.app
        if row.host:
            self._shell_there(row)
            return
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            with app.suspend():
                sys.stdout.write(f"{shlex.quote(shell)} in {row.directory} (exit leaves)\n")
                sys.stdout.flush()
                subprocess.run([shell], cwd=row.directory, check=False)
        except SuspendNotSupported:
            app.push_screen(error_dialog(InputError("this works only from a terminal")))
        except OSError as error:
            app.push_screen(error_dialog(InputError(f"cannot start {shell}: {error.strerror}")))

    def _shell_there(self, row: RunRow) -> None:
        from tui.node_shell import login_shell, open_shell

        app = self._screen.app
        try:
            with app.suspend():
                sys.stdout.write(f"shell on {row.host} in {row.directory} (exit leaves)\n")
                sys.stdout.flush()
                open_shell(login_shell(row.host, row.directory), os.environ)
        except SuspendNotSupported:
            app.push_screen(error_dialog(InputError("this works only from a terminal")))
        except ExplainedError as error:
            app.push_screen(error_dialog(error))

    def copy_jobs(self, rows: Sequence[RunRow]) -> None:
        """Copy the ids of the jobs of these rows."""
        text = " ".join(row.job for row in rows if row.job)

        def copy() -> None:
            if in_tmux(os.environ) and copy_to_tmux(text):
                call_on(self._screen, lambda: self._note(f"copied {text} to tmux's buffer"))
            else:
                call_on(self._screen, lambda: self._screen.app.copy_to_clipboard(text))
                call_on(self._screen, lambda: self._note(f"copied {text}, if your terminal supports OSC 52"))

        in_background(copy, "copy", self._failed)

    # ------------------------------------------------------------ outcomes

    def _done(self, text: str) -> None:
        def show() -> None:
            self._note(text)
            self._changed()

        call_on(self._screen, show)

    def _failed(self, error: ExplainedError) -> None:
        call_on(self._screen, lambda: self._note(""))
        post(self._screen, ActionFailed(error))
