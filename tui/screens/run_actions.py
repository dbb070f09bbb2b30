"""What the monitor does to its run by key: cancel, resume, run again, report, a shell on a node."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.screen import Screen

from launcher.errors import InputError
from launcher.logs.events import JobState
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.clipboard import copy_to_tmux, in_tmux
from tui.machines import LocalMachine
from tui.node_shell import copyable, is_job_id, open_shell, over_ssh, shell_command
from tui.opening import ActionFailed, OpenedRun, local
from tui.paging import page, pager_command
from tui.run_view import RunView
from tui.screens.cancelling import ask_to_cancel, cancel, what_is_lost
from tui.screens.dialogs import ChoiceDialog, DialogChoice, error_dialog
from tui.screens.host import Host
from tui.screens.resuming import ask_to_resume

if TYPE_CHECKING:
    from launcher.runs import Run
    from tui.work_machine import WorkMachine

_NODES_OFFERED = 12


def copy_for_pager(host: str, name: str, text: bytes) -> Path:
    """Write a host's report below the user's state directory here; return its path.

    Raises:
        TransportError: it cannot be written.
    """
    from launcher.base_directories import state_root

    path = state_root() / "reports" / f"{host}-{name}.md"
    local().write_atomic(str(path), text, 0o600)
    return path


class RunActions:
    """Actions on the run of a monitor; `opened`, `view` and `node` are those at the time of the call.

    `node` is that of the log that is looked at; empty where unknown. `note` shows a sentence.
    """

    def __init__(
        self,
        screen: Screen[None],
        host: Host,
        *,
        opened: Callable[[], OpenedRun | None],
        view: Callable[[], RunView],
        node: Callable[[], str],
        note: Callable[[str], None],
    ) -> None:
        self._screen = screen
        self._host = host
        self._opened = opened
        self._view = view
        self._node = node
        self._note = note
        self.stopping = False
        """Whether the run is being stopped."""
        self.stop_after: int | None = None
        """The checkpoint after which the next one ends the run; -1 for none yet. None: not asked for."""

    @property
    def _machine(self) -> WorkMachine:
        """The machine of the run."""
        opened = self._opened()
        return (opened.machine if opened is not None else None) or LocalMachine()

    @property
    def _run(self) -> Run | None:
        """The run; None before it is open, and for logs without a run."""
        opened = self._opened()
        return opened.run if opened is not None else None

    def enabled(self, action: str) -> bool | None:
        """Return whether an action is valid now; None for an action of another kind."""
        run, view = self._run, self._view()
        match action:
            case "cancel_run":
                return run is not None and not view.state.ended and not self.stopping
            case "run_again" | "resume_run":
                return run is not None and run.spec.cluster == "slurm" and view.state.ended
            case "open_dashboard":
                return run is not None and run.job is not None and not view.state.ended
            case "report_run":
                return self._opened() is not None
            case "open_shell":
                return is_job_id(view.job)
            case _:
                return None

    # ------------------------------------------------------------ cancel

    def cancel(self) -> None:
        """Ask, and stop the run; at once, or after its next checkpoint."""
        run = self._run
        if run is not None:
            view = self._view()
            lost = what_is_lost(view.step, view.checkpoint)
            later = None if self.stop_after is not None else self._cancel_later
            ask_to_cancel(
                self._screen,
                run.directory,
                view.summary.title,
                lost,
                self.show_stopping,
                later,
                self._machine,
            )

    def _cancel_later(self) -> None:
        checkpoint = self._view().checkpoint
        self.stop_after = checkpoint if checkpoint is not None else -1
        self._note("will be cancelled after its next checkpoint; keep this monitor open")

    def viewed(self, view: RunView) -> None:
        """Cancel the run where that was to wait for a checkpoint that is now complete."""
        if view.state.ended:
            self.stopping, self.stop_after = False, None
        run = self._run
        if (
            self.stop_after is None
            or view.checkpoint is None
            or view.checkpoint <= self.stop_after
            or run is None
        ):
            return
        self.stop_after = None
        self._note(f"checkpoint {view.checkpoint} is complete: cancelling")
        self.show_stopping()
        machine = self._machine
        in_background(lambda: cancel(run.directory, machine), "cancel", self._failed)

    def show_stopping(self) -> None:
        """Show that the run is being stopped."""
        self.stopping, self.stop_after = True, None

    # ------------------------------------------------------------ run again, resume

    def run_again(self) -> None:
        """Open the wizard with this run's settings, optionally with the changes advised for its failure.

        A run that stopped to save can be resumed instead.
        """
        # Imported late: the monitor opens earlier without the wizard.
        from tui.screens.wizard.from_run import remedies, variable_remedies, wizard_state_of

        run = self._run
        if run is None:
            return
        view, name = self._view(), self._machine.name
        if view.state is JobState.STOPPED:
            again = partial(self._host.run_again, wizard_state_of(run), name)
            self._resume(reason=view.reason, new_run=again)
            return
        overrides, variables = remedies(view.findings), variable_remedies(view.findings)
        if not overrides and not variables:
            self._host.run_again(wizard_state_of(run), name)
            return

        def answered(answer: str | None) -> None:
            if answer == "with":
                self._host.run_again(wizard_state_of(run, overrides, variables), name)
            elif answer is not None:
                self._host.run_again(wizard_state_of(run), name)

        edits = [item.removeprefix("++") for item in overrides]
        changes = "\n".join([*edits, *(f"{item}  (variable of the job)" for item in variables)])
        choices = [
            DialogChoice("w", "with these changes", "with"),
            DialogChoice("p", "without changes", "plain"),
        ]
        text = f"Changes advised for its failure:\n\n{changes}"
        self._screen.app.push_screen(ChoiceDialog("Run again", text, choices), answered)

    def resume(self) -> None:
        """Ask, and submit one more job of the run from its last checkpoint."""
        self._resume()

    def _resume(self, *, reason: str = "", new_run: Callable[[], None] | None = None) -> None:
        run = self._run
        if run is not None:
            self._note("looking for the last checkpoint …")
            ask_to_resume(self._screen, run.directory, self._machine, reason=reason, new_run=new_run)

    # ------------------------------------------------------------ report

    def report(self) -> None:
        """Write the report of the run, and open it in the pager."""
        opened = self._opened()
        if opened is None:
            return
        run = opened.run
        target = run.directory if run is not None else next(iter(opened.watch.directories), "")

        def write() -> None:
            from launcher.monitor.report import markdown
            from launcher.monitor.watch import watch_directory
            from launcher.monitor.watch_run import watch_run
            from tui.run_report import report_of

            if not target:
                raise InputError("no report: the logs are not in a directory of their own")
            # Another watch: that of the monitor is polled meanwhile.
            transport = opened.new_transport()
            watch = watch_run(transport, run) if run is not None else watch_directory(transport, target)
            report, _ = report_of(opened.summary.title, watch, run, self.note_later)
            text = markdown(report).encode("utf-8", "backslashreplace")
            path = Path(target if run is not None else ".", "report.md").absolute()
            # A new file takes the name: a link that somebody left there is replaced, not followed.
            if opened.host:
                path = copy_for_pager(opened.host, run.spec.id if run is not None else "logs", text)
            else:
                local().write_atomic(str(path), text)
            command = pager_command(os.environ, str(path), (0, 1))
            call_on(self._screen, lambda: self._page(command, path))

        self._note("writing the report …")
        in_background(write, "report", self._failed)

    def _page(self, command: list[str], path: Path) -> None:
        self._note(f"report: {path}")
        self._leave_terminal_to(lambda: page(command, os.environ))

    # ------------------------------------------------------------ dashboard, shell

    def open_dashboard(self) -> None:
        """Open a port to the run's Ray dashboard, and show its address."""
        from tui.screens.dashboard_dialog import show_dashboard

        run = self._run
        if run is not None:
            show_dashboard(self._screen, self._host, self._machine, run, note=self._note)

    def open_shell(self) -> None:
        """Ask for a node, and open a shell on it; the command can be copied instead."""
        view, here = self._view(), self._node()
        nodes = list(dict.fromkeys([here, *view.nodes] if here in view.nodes else view.nodes))[
            :_NODES_OFFERED
        ]
        choices = [DialogChoice("", f"open a shell on {node}", f"open {node}") for node in nodes]
        choices = choices or [DialogChoice("o", "open a shell on its first node", "open ")]
        choices.append(DialogChoice("y", "copy the command", "copy"))
        name = self._machine.name

        def on_node(node: str) -> list[str]:
            command = shell_command(view.job, node)
            return over_ssh(name, command) if name else command

        command = on_node(nodes[0] if nodes else "")
        text = f"Beside the job's processes, on its resources:\n\n{copyable(command)}"

        def answered(answer: str | None) -> None:
            if answer == "copy":
                self._copy(copyable(command))
            elif answer is not None:
                argv = on_node(answer.removeprefix("open "))
                self._leave_terminal_to(lambda: open_shell(argv, os.environ))

        self._screen.app.push_screen(ChoiceDialog(f"Shell in job {view.job}", text, choices), answered)

    def _copy(self, text: str) -> None:
        def copy() -> None:
            if in_tmux(os.environ) and copy_to_tmux(text):
                call_on(self._screen, lambda: self._note("copied to tmux's buffer"))
            else:
                call_on(self._screen, lambda: self._screen.app.copy_to_clipboard(text))
                call_on(self._screen, lambda: self._note("copied, if your terminal supports OSC 52"))

        in_background(copy, "copy", self._failed)

    def _leave_terminal_to(self, program: Callable[[], int]) -> None:
        """Leave the terminal to a program until it exits."""
        app = self._screen.app
        try:
            with app.suspend():
                code = program()
        except SuspendNotSupported:
            app.push_screen(error_dialog(InputError("this works only from a terminal")))
            return
        except ExplainedError as error:
            app.push_screen(error_dialog(error))
            return
        if code:
            self._note(f"exited with code {code}")

    def note_later(self, note: str) -> None:
        """Show a note, from a thread."""
        call_on(self._screen, lambda: self._note(note))

    def _failed(self, error: ExplainedError) -> None:
        post(self._screen, ActionFailed(error))
