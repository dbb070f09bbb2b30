"""Status panel: the state of a run in a few lines, and the reason for a failure."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.events import Resize

from launcher.foretold import checks_foretelling
from launcher.logs.events import FindingSeen, JobState
from tui.formatting import GLYPHS, STYLES, bar, duration, number
from tui.run_view import RunView
from tui.widgets.milestone_strip import milestone_strip
from tui.widgets.styled_lines import StyledLines

_ATTEMPTS_SHOWN = 3
_FINDINGS_SHOWN = 3
_BAR_WIDTH = 20
_MARKS_FROM = 60
"""Columns from which each milestone has its mark also beside a long line."""
_COUNT = 6
"""Columns of the number of milestones: `12/13 `."""
_ARROW = "   → "


class StatusPanel(StyledLines):
    """State, progress, current activity; for a failed run its findings."""

    def __init__(self) -> None:
        super().__init__()
        self._lines_for: Callable[[int], list[Content]] = lambda _: []
        """The lines at a width."""

    def show(
        self,
        view: RunView,
        now: float,
        *,
        stopping: bool = False,
        unanswered: float = 0.0,
        connection: str = "",
        milestones: bool = False,
    ) -> None:
        """Show a view at the time `now`.

        `unanswered`: seconds since the file system stopped answering. `connection`: why the state is not
        that of now. `milestones`: whether the timeline is not visible, so that they are shown here.
        """
        self._lines_for = lambda width: state_lines(
            view,
            now,
            width,
            stopping=stopping,
            unanswered=unanswered,
            connection=connection,
            milestones=milestones,
        )
        self.set_lines(self._lines_for(self.size.width or self.app.size.width))

    def on_resize(self, event: Resize) -> None:
        """Fit the lines to the width at once."""
        self.set_lines(self._lines_for(event.size.width))


def state_lines(
    view: RunView,
    now: float,
    width: int,
    *,
    stopping: bool = False,
    unanswered: float = 0.0,
    connection: str = "",
    milestones: bool = False,
) -> list[Content]:
    """Return the panel's lines, each at most `width` cells wide."""
    activity = _activity_line(view, now, stopping=stopping)
    if milestones:
        activity = _with_milestones(activity, view, width)
    lines = [_title(view, width, stale=bool(connection)), _progress(view, width), activity]
    if connection:
        lines.append(Content.assemble((f" ! {connection}", "$text-warning")))
    elif view.problem:
        lines.append(Content.assemble((" ! cannot read: ", "$text-error bold"), view.problem))
    elif unanswered:
        elapsed = duration(unanswered, tenths=False)
        warning = f" ! no answer from the file system for {elapsed}"
        lines.append(Content.assemble((warning, "$text-warning bold")))
    if view.unanswered and not view.state.ended and not connection:
        label = (" ! no answer from the cluster: ", "$text-warning bold")
        lines.append(Content.assemble(label, view.unanswered))
    if view.state is JobState.FAILED:
        lines.append(Content.assemble((" ✗ reason: ", "$text-error bold"), (view.reason, "$text-error")))
    elif view.state in (JobState.STOPPED, JobState.COMPLETED) and view.reason:
        lines += _wrapped(view.reason, f" {GLYPHS[view.state]} ", STYLES[view.state], width)
    lines += [Content.assemble((" attempt: ", "dim"), text) for text in view.attempts[-_ATTEMPTS_SHOWN:]]
    lines += _findings(view, width)
    return [line.truncate(width, ellipsis=True) for line in lines]


def _with_milestones(line: Content, view: RunView, width: int) -> Content:
    """Return the line with the milestones at its end; a long line is cut for their marks."""
    marks = len(view.timeline) if width >= _MARKS_FROM else _COUNT
    room = max(width - line.cell_length - 1, min(marks + 2, width))
    strip = milestone_strip(view, room - 2)
    if not strip.cell_length:
        return line
    line = line.truncate(max(width - strip.cell_length - 3, 0), ellipsis=True)
    gap = width - line.cell_length - strip.cell_length - 1
    return Content.assemble(line, " " * max(gap, 0), strip)


def _title(view: RunView, width: int, *, stale: bool = False) -> Content:
    """Return the state, the run and its place; `~` marks a state that is not that of now."""
    state = f"{GLYPHS[view.state]} {view.state.value}{'~' if stale and not view.state.ended else ''}"
    left = f" {state}  {view.summary.title}"
    room = width - cell_len(left) - 1
    detail = view.summary.detail if cell_len(view.summary.detail) <= room - 2 else ""
    return Content.assemble(
        (f" {state} ", f"{STYLES[view.state]} bold"),
        (f" {view.summary.title}", "bold"),
        (set_cell_size("", max(room - cell_len(detail), 0)), ""),
        (f"{detail} ", "dim"),
    ).stylize("on $panel")


def _progress(view: RunView, width: int) -> Content:
    total = f"/{view.max_steps}" if view.max_steps else ""
    parts: list[tuple[str, str]] = [(" step ", "dim"), (f"{view.step}{total}", "bold")]
    if view.max_steps:
        done = view.step / view.max_steps
        bar_width = _BAR_WIDTH if width >= 100 else 12 if width >= 76 else 6
        parts += [("  ", ""), (bar(done, bar_width), "$primary on $panel"), (f" {done:.0%}", "")]
    loss = view.loss()
    if loss is not None:
        parts += [("   loss ", "dim"), (number(loss), "bold")]
    if view.step_time is not None:
        parts += [(f"   {duration(view.step_time)}", "bold"), ("/step", "dim")]
    remaining = view.remaining()
    if remaining:
        parts += [("   ~", "dim"), (duration(remaining), "bold"), (" left", "dim")]
    return Content.assemble(*parts)


def _activity_line(view: RunView, now: float, *, stopping: bool) -> Content:
    """Return the elapsed time, the time left of the job, and the current activity."""
    parts: list[tuple[str, str]] = [(" ", "")]
    if view.started is not None:
        end = view.ended if view.ended is not None else None if view.state.ended else now
        if end is not None:
            elapsed = duration(end - view.started, tenths=view.state.ended)
            parts += [("took " if view.state.ended else "elapsed ", "dim"), (elapsed, "")]
    parts += _time_limit(view, now)
    activity = _activity(view, stopping=stopping)
    if activity:
        parts += [
            (" · " if len(parts) > 1 else "", "dim"),
            (activity, "$text-warning" if stopping else ""),
        ]
    return Content.assemble(*parts)


def _time_limit(view: RunView, now: float) -> list[tuple[str, str]]:
    """Return the time left of the job, and a warning where the remaining steps do not fit."""
    if view.deadline is None:
        return []
    left = max(view.deadline - now, 0.0)
    short = (view.remaining() or 0.0) > left
    text = f"job ends in {duration(left, tenths=False)}" + (", before the last step" if short else "")
    return [(" · ", "dim"), (text, "$text-warning" if short else "")]


def _activity(view: RunView, *, stopping: bool) -> str:
    if view.state.ended:
        reason = view.reason if view.state is JobState.CANCELLED else ""
        return f"run {view.state.value} ({reason})" if reason else f"run {view.state.value}"
    if stopping:
        return "stopping …"
    if view.reading:
        return "reading the logs …"
    if view.state in (JobState.UNKNOWN, JobState.QUEUED) or not view.waiting:
        return view.reason
    stopping_note = f" ({view.reason})" if view.reason == "stopping" else ""
    return f"now: {view.waiting}{stopping_note}"


def _findings(view: RunView, width: int) -> list[Content]:
    """Return the findings: the first one with its advice, the others with one line each."""
    if not view.findings:
        return []
    first, *others = view.findings[:_FINDINGS_SHOWN]
    lines = [*_first_finding(first, view.reason, width), *map(_further_finding, others)]
    if len(view.findings) > _FINDINGS_SHOWN:
        lines.append(Content(f"   and {len(view.findings) - _FINDINGS_SHOWN} more"))
    return lines


def _first_finding(finding: FindingSeen, reason: str, width: int) -> list[Content]:
    lines = []
    if not reason.startswith(finding.title):
        lines.append(_title_of(finding))
    text = finding.text if finding.text not in (finding.title, reason) else ""
    source = _source(finding)
    if source or text:
        lines.append(Content.assemble((f"   {source}  " if source else "   ", "dim"), (text, "dim")))
    return [*lines, *_wrapped(finding.fix, _ARROW, "bold", width), *_doctor_line(finding)]


def _doctor_line(finding: FindingSeen) -> list[Content]:
    """Return which checks of the doctor look for a failure before a run; none where it has no such check."""
    checks = checks_foretelling(finding.id)
    verb = "looks" if len(checks) == 1 else "look"
    text = f"   F9 doctor: {', '.join(checks)} {verb} for this before a run"
    return [Content.assemble((text, "dim"))] if checks else []


def _wrapped(text: str, mark: str, style: str, width: int) -> list[Content]:
    """Return a text on as many lines as it needs; the mark, in a style, is before the first one."""
    indent = len(mark)
    wrapped = textwrap.wrap(
        text, max(width - 1, 20 + indent), initial_indent=mark, subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )  # fmt: skip
    return [Content.assemble((line[:indent], style), line[indent:]) for line in wrapped]


def _further_finding(finding: FindingSeen) -> Content:
    return Content.assemble(_title_of(finding), (f"  {_source(finding)}", "dim"))


def _title_of(finding: FindingSeen) -> Content:
    fatal = finding.severity == "fatal"
    label, style = (" ✗ failure: ", "$text-error") if fatal else (" ! warning: ", "$text-warning")
    return Content.assemble((label, f"{style} bold"), finding.title)


def _source(finding: FindingSeen) -> str:
    """Return a finding's log and line, with the rank and node of its process."""
    if not finding.source.line:
        return ""
    line = f"{finding.source.log.rpartition('/')[2]}:{finding.source.line}"
    process = [f"rank {finding.rank}"] if finding.rank is not None else []
    process += [f"on {finding.node}"] if finding.node else []
    return f"{line} ({' '.join(process)})" if process else line
