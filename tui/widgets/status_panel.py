"""The state of a run in a few lines."""

from __future__ import annotations

import textwrap

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from launcher.logs.events import FindingSeen, JobState
from tui.formatting import GLYPHS, STYLES, bar, duration, number, ticking
from tui.run_view import RunView
from tui.widgets.styled_lines import StyledLines

_FINDINGS_SHOWN = 3
_BAR_WIDTH = 20
_ARROW = "   → "


class StateStrip(StyledLines):
    """State, progress, what is awaited; and why it failed."""

    def show(self, view: RunView, now: float, *, stopping: bool = False, unanswered: float = 0.0) -> None:
        """Show a view as it is now."""
        width = self.size.width or self.app.size.width
        self.say(state_lines(view, now, width, stopping=stopping, unanswered=unanswered))


def state_lines(
    view: RunView, now: float, width: int, *, stopping: bool = False, unanswered: float = 0.0
) -> list[Content]:
    """Return the strip's lines, each at most `width` cells wide."""
    lines = [_title(view, width), _progress(view, width), _moment(view, now, stopping=stopping)]
    if view.problem:
        lines.append(Content.assemble((" ! cannot read: ", "$text-error bold"), view.problem))
    elif unanswered:
        waited = f" ! the file system has not answered for {ticking(unanswered)}"
        lines.append(Content.assemble((waited, "$text-warning bold")))
    if view.unanswered and not view.state.ended:
        told = (" ! no answer from the cluster: ", "$text-warning bold")
        lines.append(Content.assemble(told, view.unanswered))
    if view.state is JobState.FAILED:
        lines.append(Content.assemble((" ✗ why: ", "$text-error bold"), (view.reason, "$text-error")))
    lines += _findings(view, width)
    return [line.truncate(width, ellipsis=True) for line in lines]


def _title(view: RunView, width: int) -> Content:
    word = f"{GLYPHS[view.state]} {view.state.value}"
    left = f" {word}  {view.about.title}"
    room = width - cell_len(left) - 1
    detail = view.about.detail if cell_len(view.about.detail) <= room - 2 else ""
    return Content.assemble(
        (f" {word} ", f"{STYLES[view.state]} bold"),
        (f" {view.about.title}", "bold"),
        (set_cell_size("", max(room - cell_len(detail), 0)), ""),
        (detail, "dim"),
    )


def _progress(view: RunView, width: int) -> Content:
    of = f"/{view.max_steps}" if view.max_steps else ""
    parts: list[tuple[str, str]] = [(" step ", "dim"), (f"{view.step}{of}", "bold")]
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


def _moment(view: RunView, now: float, *, stopping: bool) -> Content:
    parts: list[tuple[str, str]] = [(" ", "")]
    if view.started is not None:
        end = view.ended if view.ended is not None else None if view.state.ended else now
        if end is not None:
            taken = duration(end - view.started) if view.state.ended else ticking(end - view.started)
            parts += [("took " if view.state.ended else "elapsed ", "dim"), (taken, "")]
    parts += _time_limit(view, now)
    told = _doing(view, stopping=stopping)
    if told:
        parts += [
            (" · " if len(parts) > 1 else "", "dim"),
            (told, "$text-warning" if stopping else ""),
        ]
    return Content.assemble(*parts)


def _time_limit(view: RunView, now: float) -> list[tuple[str, str]]:
    """Return when the job's time is over, and whether the steps that are left fit into it."""
    if view.deadline is None:
        return []
    left = max(view.deadline - now, 0.0)
    short = (view.remaining() or 0.0) > left
    words = f"job ends in {ticking(left)}" + (", before the last step" if short else "")
    return [(" · ", "dim"), (words, "$text-warning" if short else "")]


def _doing(view: RunView, *, stopping: bool) -> str:
    if view.state.ended:
        ended = {
            JobState.COMPLETED: "ended: it is completed",
            JobState.FAILED: "ended: it failed",
            JobState.CANCELLED: "ended: it was cancelled",
        }[view.state]
        told = view.reason if view.reason and view.state is JobState.CANCELLED else ""
        return f"{ended} ({told})" if told else ended
    if stopping:
        return "stopping …"
    if view.reading:
        return "reading the logs …"
    if view.state in (JobState.UNKNOWN, JobState.QUEUED) or not view.waiting:
        return view.reason
    told = f" ({view.reason})" if view.reason == "stopping" else ""
    return f"now: {view.waiting}{told}"


def _findings(view: RunView, width: int) -> list[Content]:
    """Return what went wrong: the first finding with all of its advice, of the others a line each."""
    if not view.findings:
        return []
    first, *others = view.findings[:_FINDINGS_SHOWN]
    lines = [*_first(first, view.reason, width), *map(_also, others)]
    if len(view.findings) > _FINDINGS_SHOWN:
        lines.append(Content(f"   and {len(view.findings) - _FINDINGS_SHOWN} more"))
    return lines


def _first(finding: FindingSeen, reason: str, width: int) -> list[Content]:
    lines = []
    if not reason.startswith(finding.title):
        lines.append(_titled(finding))
    seen = finding.text if finding.text not in (finding.title, reason) else ""
    place = _place(finding)
    if place or seen:
        lines.append(Content.assemble((f"   {place}  " if place else "   ", "dim"), (seen, "dim")))
    indent = len(_ARROW)
    advice = textwrap.wrap(
        finding.fix, max(width - 1, 20 + indent), initial_indent=_ARROW, subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )  # fmt: skip
    return [*lines, *(Content.assemble((line[:indent], "bold"), line[indent:]) for line in advice)]


def _also(finding: FindingSeen) -> Content:
    return Content.assemble(_titled(finding), (f"  {_place(finding)}", "dim"))


def _titled(finding: FindingSeen) -> Content:
    fatal = finding.severity == "fatal"
    word, style = (" ✗ failure: ", "$text-error") if fatal else (" ! warning: ", "$text-warning")
    return Content.assemble((word, f"{style} bold"), finding.title)


def _place(finding: FindingSeen) -> str:
    """Return where it stands, and of which process it tells."""
    if not finding.source.line:
        return ""
    place = f"{finding.source.log.rpartition('/')[2]}:{finding.source.line}"
    who = [f"rank {finding.rank}"] if finding.rank is not None else []
    who += [f"on {finding.node}"] if finding.node else []
    return f"{place} ({' '.join(who)})" if who else place
