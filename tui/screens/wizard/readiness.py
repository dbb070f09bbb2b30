"""The review's question "ready?": what the doctor says of the planned submission, asked on a thread.

Each request is examined once, while the review is there to be read; what the doctor said last on this site
with this checkout is shown until then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message_pump import MessagePump

from recipes.errors import ExplainedError
from tui.background import call_on, in_background
from tui.formatting import plural
from tui.screens.wizard.pages import OUTCOMES, Lines, fact, line

if TYPE_CHECKING:
    from launcher.clusters.inventory import Detection
    from launcher.doctor.last_report import KeptReport
    from launcher.request import SubmitRequest
    from launcher.submit.submit import SubmissionPlan
    from tui.screens.wizard.draft_resolver import DraftResolver
    from tui.screens.wizard.model import DraftStatus

_NAMED = 4
_ONE_DAY_S = 86400.0
"""Failing checks that the review names; the doctor's screen has all."""


@dataclass(frozen=True, slots=True)
class ReadyAnswer:
    """What is known of a place by now."""

    report: KeptReport | None = None
    examining: bool = False
    problem: str = ""

    def lines(self, recipe: str, now: float, *, brief: bool = False) -> Lines:
        """Return it for the review; `recipe` is the full path of the planned one. `brief`: on one line."""
        if self.problem:
            return [line(("? ", "dim"), f"not examined: {self.problem}")]
        report = self.report
        if report is None:
            return [line(("examining this login node …" if self.examining else "not examined yet", "dim"))]
        other = bool(report.recipe) and report.recipe != recipe
        counts = {outcome: len(report.with_outcome(outcome)) for outcome in ("fail", "warn", "pass")}
        glyph, style = ("✗ ", "$text-error") if counts["fail"] else ("✓ ", "$text-success")
        failing = report.with_outcome("fail")
        words = f"{len(failing)} not ready" if failing else f"ready, {counts['pass']} checks passed"
        if failing and brief:
            more = ", …" if len(failing) > _NAMED else ""
            words += f" ({', '.join(item['id'] for item in failing[:_NAMED])}{more})"
        warnings = f", {plural(counts['warn'], 'warning')}" if counts["warn"] else ""
        about = f", for {Path(report.recipe).name}" if other else ""
        examining = "; examining again …" if self.examining else ""
        lines = [
            line((glyph, style), f"{words}{warnings}", (f"  {report.age(now)}{about}{examining}", "dim"))
        ]
        if brief:
            return lines
        for item in failing[:_NAMED]:
            mark, mark_style = OUTCOMES["fail"]
            title = (f"{mark} {item['id']} ", mark_style)
            lines.append(line(title, f"{item['title']}: {item['evidence']}"))
        if len(failing) > _NAMED:
            lines.append(line((f"… and {len(failing) - _NAMED} more", "dim")))
        return lines

    def warning(self, recipe: str, now: float) -> str:
        """Return what is not ready for a recipe as one line, for the question before a submission.

        Empty where all is, or where the report is of another recipe or of another day.
        """
        if self.report is None or self.report.recipe != recipe:
            return ""
        return self.report.failures_in_words(now, within_s=_ONE_DAY_S)


class ReadyWatch:
    """Examines the place of one planned submission after the other, each once."""

    def __init__(
        self, target: MessagePump, resolver: Callable[[], DraftResolver], show: Callable[[], None]
    ) -> None:
        self._target, self._resolver, self._show = target, resolver, show
        self._request: SubmitRequest | None = None
        """The request of the answer."""
        self._running = False
        self._waiting: tuple[SubmissionPlan, Detection] | None = None
        self.answer = ReadyAnswer()

    def follow(self, status: DraftStatus) -> None:
        """Examine what is planned, unless that was done."""
        plan, detection = status.plan, status.detection
        if plan is None or detection is None or plan.request == self._request:
            return
        self._request = plan.request
        self.answer = replace(self.answer, examining=True, problem="")
        if self._running:
            self._waiting = plan, detection
        else:
            self._begin(plan, detection)

    def read_again(self, status: DraftStatus, then: Callable[[], None]) -> None:
        """Take what the doctor's screen has found meanwhile; call `then` if there is something new."""
        plan = status.plan
        if plan is None or self._running:
            return

        def take(report: KeptReport | None) -> None:
            if self._take_newer(report):
                then()

        def read() -> None:
            report = _kept(plan, self._resolver())
            call_on(self._target, lambda: take(report))

        in_background(read, "doctor-kept", lambda _: None)

    def _begin(self, plan: SubmissionPlan, detection: Detection) -> None:
        self._running = True

        def examine() -> None:
            from launcher.submit.doctor_subject import ready_report

            resolver = self._resolver()
            kept = _kept(plan, resolver)
            call_on(self._target, lambda: self._show_kept(kept))
            report = ready_report(plan, detection, resolver.store, resolver.environment)
            call_on(self._target, lambda: self._done(plan.request, ReadyAnswer(report)))

        def failed(error: ExplainedError) -> None:
            call_on(self._target, lambda: self._done(plan.request, ReadyAnswer(problem=error.what)))

        in_background(examine, "doctor", failed)

    def _show_kept(self, report: KeptReport | None) -> None:
        self._take_newer(report)

    def _take_newer(self, report: KeptReport | None) -> bool:
        current = self.answer.report
        if report is None or (current is not None and (report.at or 0.0) <= (current.at or 0.0)):
            return False
        self.answer = replace(self.answer, report=report, problem="")
        self._show()
        return True

    def _done(self, request: SubmitRequest, answer: ReadyAnswer) -> None:
        self._running = False
        if request == self._request:
            self.answer = answer
            self._show()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._begin(*waiting)


def _kept(plan: SubmissionPlan, resolver: DraftResolver) -> KeptReport | None:
    """Return what the doctor said last on the plan's site with its checkout."""
    from launcher.doctor.last_report import load_report

    checkout = plan.options.checkout
    path = checkout.path if checkout is not None else ""
    return load_report(resolver.environment, plan.submission.layout.site.id, path, resolver.path)


def ready_fact(answer: ReadyAnswer, recipe: str, now: float) -> list[Content]:
    """Return the line for a review with little room."""
    (text,) = answer.lines(recipe, now, brief=True)
    return [Content.assemble(fact("ready?", ""), text, ("  F9: doctor", "dim"))]


def ready_section(answer: ReadyAnswer, recipe: str, now: float) -> list[Content]:
    """Return the section for a review with room."""
    heading = line(("Ready?", "bold $text-primary"), ("  F9 opens the doctor, with what helps", "dim"))
    return [heading, *answer.lines(recipe, now)]
