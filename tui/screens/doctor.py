"""The doctor: what is not ready for a run, why, and the commands that help."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult, SuspendNotSupported
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen

from launcher.doctor.fixing import terminal_opener
from launcher.errors import ConnectionLostError
from launcher.text import clean
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.clipboard import copy_to_tmux, in_tmux
from tui.commands import Scope, bindings
from tui.opening import ActionFailed
from tui.screens.connection_words import Reconnector, connection_part
from tui.screens.doctor_parts import CheckList, check_choice, print_line, run_on_terminal, verdict_facts
from tui.widgets.choice_list import ChoiceList
from tui.widgets.fact_lines import fact_lines
from tui.widgets.keybar import KeyBar
from tui.widgets.lines_box import LinesBox
from tui.widgets.message_line import MessageLine
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from launcher.doctor.doctor_request import DoctorRequest
    from launcher.doctor.fixing import FixStep
    from launcher.doctor.subject import Subject
    from launcher.doctor.verdict import Examination, HealthReport
    from launcher.runs import RunStore
    from tui.screens.host import Host

ABOUT = (
    "Everything that a run needs and that can be known before it waits in the queue. Nothing is changed "
    "without a question; `distill-tui doctor` prints the same."
)
WIDE = 110
_DETAILS = 9
"""Rows of the details below the list, with their rule."""
_DETAIL_MARGIN = 3
"""Columns of the details that are no text: a cell at each side, and the scroll bar."""
_DETAILS_TITLE = "2 details"
_FILES_S = 2.0
_ORDER = ("fail", "warn", "unknown", "pass")
_STATIONS = {"login": "this login node", "node": "a node", "nodes": "between nodes"}


@dataclass(frozen=True, slots=True)
class DoctorStart:
    """What is examined: a request to the doctor (None: what every run needs), and where runs are kept."""

    request: DoctorRequest | None
    runs: Path
    """Those of this machine; a host's are where its settings say."""
    machine: str = ""
    """Name of the host that is examined; empty for this machine."""


class DoctorScreen(Screen[None]):
    """Lists verdicts, worst first, with the selected one in full."""

    BINDINGS = bindings(Scope.DOCTOR)
    SCOPES = (Scope.DOCTOR, Scope.APP)
    ABOUT = ABOUT
    DEFAULT_CSS = f"""
    DoctorScreen #doctor {{ height: 1fr; layout: vertical; }}
    DoctorScreen #doctor-checks {{ height: 1fr; }}
    DoctorScreen #doctor-details {{ height: {_DETAILS}; }}
    DoctorScreen.-wide #doctor {{ layout: horizontal; }}
    DoctorScreen.-wide #doctor-checks, DoctorScreen.-wide #doctor-details {{ width: 1fr; height: 1fr; }}
    """

    def __init__(self, host: Host, start: DoctorStart) -> None:
        super().__init__()
        self._host, self._start = host, start
        self.machine_name = start.machine
        self._subject: Subject | None = None
        self._report: HealthReport | None = None
        self._failure_titles: Mapping[str, str] = {}
        self._examining = False
        self._was_interrupted = False
        """Whether the connection broke while the checks were made."""
        self._reconnector = Reconnector(host, start.machine)
        self._with_passed = False
        self._title_line = StyledLines(classes="title-line")
        self._list = CheckList()
        self._checks = Panel(self._list, title="1 checks", id="doctor-checks")
        self._detail = LinesBox()
        self._details = Panel(self._detail, title=_DETAILS_TITLE, id="doctor-details")
        self._shown_id = ""
        """The check whose details are shown."""
        self._message = MessageLine()
        self._key_bar = KeyBar(*self.SCOPES)

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self._title_line
        with Horizontal(id="doctor"):
            yield self._checks
            yield self._details
        yield self._message
        yield self._key_bar

    def on_mount(self) -> None:
        """Examine."""
        self._list.focus()
        self.action_again()
        if self.machine_name:
            self.set_interval(1.0, self._look_at_connection)

    def on_resize(self, event: Resize) -> None:
        """Put the panels side by side where there is room."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self.call_after_refresh(self._show_details)

    def _look_at_connection(self) -> None:
        """Say how the connection is; what it interrupted is done again once it is back."""
        self._reconnector.try_now()
        if self._was_interrupted and connection_part(self._host, self.machine_name) is None:
            self.action_again()
        self._show_title()

    # ------------------------------------------------------------ examining

    def action_again(self) -> None:
        """Make the checks again."""
        if not self._examining:
            self._message.say("")
            self._begin()

    def _begin(self) -> None:
        """Make the checks on a thread."""
        self._examining, self._was_interrupted = True, False
        self._paint()
        in_background(self._examine, "doctor", self._failed)

    def _examine(self) -> None:
        from launcher.doctor.doctor_request import DoctorRequest
        from launcher.logs.signatures import catalogue
        from launcher.submit.doctor_subject import examined
        from launcher.transports.local import LocalTransport

        request = self._start.request or DoctorRequest()
        if self.machine_name:
            store = self._store()
            transport = store.transport
            if request.recipe is not None:
                request = replace(request, recipe=transport.path(str(request.recipe)).absolute())
            runs = transport.path(store.root)
            subject, report = examined(request, transport, runs, transport.environment())
        else:
            subject, report = examined(request, LocalTransport(_FILES_S), self._start.runs, os.environ)
        interrupted = connection_part(self._host, self.machine_name) is not None
        titles = {name: signature.title for name, signature in catalogue().signatures.items()}
        call_on(self, lambda: self._take(subject, report, titles, interrupted=interrupted))

    def _store(self) -> RunStore:
        from launcher.runs import store_on, user_store
        from tui.opening import local

        if self.machine_name:
            return store_on(self._host.machine(self.machine_name).transport())
        return user_store(local(), self._start.runs)

    def _take(
        self, subject: Subject, report: HealthReport, titles: Mapping[str, str], *, interrupted: bool
    ) -> None:
        self._was_interrupted = interrupted
        self._subject, self._report, self._examining = subject, report, False
        self._failure_titles = titles
        self._paint()

    def _failed(self, error: object) -> None:
        def show() -> None:
            self._examining = False
            self._was_interrupted = isinstance(error, ConnectionLostError)
            if not self._was_interrupted:  # the title says so
                self._message.say(getattr(error, "what", ""), "fail")
            self._paint()

        call_on(self, show)

    # ------------------------------------------------------------ painting

    def _paint(self) -> None:
        listed = self._listed()
        current = self._list.current.value if self._list.current is not None else ""
        cursor = next((number for number, item in enumerate(listed) if item.check.id == current), 0)
        self._list.show([check_choice(item) for item in listed], cursor)
        hidden = len(self._report.with_outcome("pass")) if self._report and not self._with_passed else 0
        self._checks.set_title("1 checks", f"{hidden} passed, not listed" if hidden else "")
        self._show_title()
        self._show_details()
        self._key_bar.update_keys()

    def _show_title(self) -> None:
        request = self._start.request
        name = request.recipe.name if request is not None and request.recipe is not None else "every run"
        parts: list[tuple[str, str]] = [(" doctor ", "bold $text-primary"), (f" {name}", "bold")]
        if self.machine_name:
            parts.append((f"  on {clean(self.machine_name)}", "$text-primary"))
        connection = connection_part(self._host, self.machine_name)
        if connection is not None:
            parts.append(connection)
        elif self._examining:
            parts.append(("   examining …", "dim"))
        elif self._report is not None:
            mark = ("✓ ready", "$text-success") if self._report.ok else ("✗ not ready", "$text-error")
            parts += [(f"   {mark[0]}", mark[1]), (f"   {self._report.in_words()}", "dim")]
        line = Content.assemble(*parts)
        self._title_line.set_lines([line.truncate(max(self.size.width, 1), ellipsis=True)])

    def _listed(self) -> list[Examination]:
        report = self._report
        if report is None:
            return []
        outcomes = _ORDER if self._with_passed else _ORDER[:-1]
        return [
            item for outcome in outcomes for item in report.examinations if item.verdict.outcome == outcome
        ]

    @property
    def selected(self) -> Examination | None:
        """The check under the cursor."""
        listed = self._listed()
        return listed[self._list.cursor] if 0 <= self._list.cursor < len(listed) else None

    def on_choice_list_moved(self) -> None:
        """Show the selected check."""
        self._show_details()

    def on_choice_list_choice_clicked(self, event: ChoiceList.ChoiceClicked) -> None:
        """Select the check that was clicked."""
        self._list.move(event.index - self._list.cursor)
        self._show_details()

    def _show_details(self) -> None:
        item = self.selected
        if item is None:
            text = "Examining …" if self._examining else "Nothing is missing." if self._report else ""
            self._details.set_title(_DETAILS_TITLE)
            self._detail.set_lines([Content(text)])
            return
        station = _STATIONS[item.check.station]
        if self.machine_name and item.check.station == "login":
            station = f"login node of {clean(self.machine_name)}"
        self._details.set_title(f"2 {item.check.id} {item.check.title}", station)
        width = max(self._details.size.width - _DETAIL_MARGIN, 20)
        self._detail.set_lines(fact_lines(verdict_facts(item, self._failure_titles), width))
        if item.check.id != self._shown_id:
            self._shown_id = item.check.id
            self._detail.scroll_home(animate=False)
        self._key_bar.update_keys()

    # ------------------------------------------------------------ commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        item = self.selected
        remedy = item.verdict.remedy if item is not None else None
        if action == "copy":
            return remedy is not None
        if action == "fix":
            return remedy is not None and remedy.automatic and not self._examining
        if action == "fix_all":
            return bool(self._automatic()) and not self._examining
        if action == "nodes":
            return self._subject is not None and self._subject.detection is not None
        return True

    def action_passed(self) -> None:
        """List what passed, too, or only the rest."""
        self._with_passed = not self._with_passed
        self._paint()

    def action_show_pane(self, name: str) -> None:
        """Give the keys to the checks or to the details, which scroll then."""
        self.set_focus(self._list if name == "checks" else self._detail)

    def action_next_pane(self) -> None:
        """Give the keys to the other panel."""
        self.action_show_pane("details" if self._list.has_focus else "checks")

    def action_back(self) -> None:
        """Leave."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the commands of the selected check."""
        item = self.selected
        if item is None or item.verdict.remedy is None:
            return
        text = "\n".join(item.verdict.remedy.commands)

        def copy() -> None:
            if not (in_tmux(os.environ) and copy_to_tmux(text)):
                call_on(self, lambda: self.app.copy_to_clipboard(text))
            call_on(self, lambda: self._message.say("copied", "pass"))

        in_background(copy, "copy", self._failed)

    def _automatic(self) -> tuple[FixStep, ...]:
        from launcher.doctor.fixing import steps

        if self._report is None:
            return ()
        return tuple(step for step in steps(self._report) if step.automatic)

    def action_fix(self) -> None:
        """Run the commands of the selected check, after a question."""
        item = self.selected
        if item is not None:
            self._ask_and_run([step for step in self._automatic() if item.check.id in step.checks])

    def action_fix_all(self) -> None:
        """Run all commands that can be run as they are, after a question."""
        self._ask_and_run(self._automatic())

    def _ask_and_run(self, chosen: Sequence[FixStep]) -> None:
        from tui.screens.dialogs import ChoiceDialog, DialogChoice

        if not chosen:
            return
        text = "\n".join(step.command for step in chosen)
        changes = "; ".join(dict.fromkeys(step.changes for step in chosen if step.changes))
        question = f"{text}\n\nchanges {changes}" if changes else text
        choices = [DialogChoice("y", "run in this terminal", "run"), DialogChoice("n", "not now", "")]

        def answered(answer: str | None) -> None:
            if answer == "run":
                self._run(chosen)

        title = f"Run {len(chosen)} commands?" if len(chosen) > 1 else "Run this command?"
        self.app.push_screen(ChoiceDialog(title, question, choices), answered)

    def _run(self, chosen: Sequence[FixStep]) -> None:
        """Run commands on the terminal, where their progress is seen; ctrl-c ends one."""
        opener = terminal_opener(self._subject.transport) if self._subject is not None else None
        try:
            with self.app.suspend():
                codes = run_on_terminal(chosen, print_line, opener)
        except SuspendNotSupported:
            self._message.say("this works only from a terminal", "fail")
            return
        except ExplainedError as error:
            self._message.say(error.what, "fail")
            return
        self.refresh(layout=True)
        failures = sum(code != 0 for code in codes)
        done = len(codes) - failures
        self._message.say(f"{done} of {len(chosen)} commands succeeded", "fail" if failures else "pass")
        self._begin()

    def action_nodes(self) -> None:
        """Measure nodes in a job, after a question."""
        subject = self._subject
        if subject is not None:
            in_background(lambda: self._plan_nodes(subject), "doctor-plan", self._failed)

    def _plan_nodes(self, subject: Subject) -> None:
        from launcher.doctor.node_job import plan_examination, send_examination

        store = self._store()
        examination = plan_examination(subject, store, subject.shell)
        size = examination.size
        text = (
            f"{size.nodes} nodes of {size.partition} for at most {(size.time_s or 0) // 60} minutes, "
            f"account {size.account or '-'}. The run is watched like any other; its verdicts are listed here."
        )

        def send() -> None:
            run = send_examination(examination, subject, store)
            call_on(self, lambda: self._host.open_run(run.directory, self.machine_name))

        def answered(answer: str | None) -> None:
            if answer == "submit":
                in_background(send, "doctor-send", lambda error: post(self, ActionFailed(error)))

        def ask() -> None:
            from tui.screens.dialogs import ChoiceDialog, DialogChoice

            choices = [DialogChoice("y", "submit", "submit"), DialogChoice("n", "not now", "")]
            self.app.push_screen(ChoiceDialog("Examine nodes?", text, choices), answered)

        call_on(self, ask)
