"""Texts of the list of runs: what it is about, what is said without runs, and its title line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from textual.content import Content

from launcher.overview.rows import RunRow
from launcher.text import clean
from tui.formatting import clock_time, duration, file_size, plural
from tui.widgets.line_wrap import with_short_paths
from tui.widgets.run_columns import state_label

if TYPE_CHECKING:
    from launcher.clusters.job_list import JobListing
    from tui.work_machine import LineState

ABOUT = (
    "Your runs, all of your Slurm jobs, and drafts (◇), newest first. The state of a run comes from its "
    "logs, that of another program's job from Slurm; `~` behind a state: Slurm gives no answer, it is the "
    "last one known. ● marks a row. Nothing is changed without a question."
)
FILTER_HINT = "words in name, id, state, reason, recipe, model, partition; enter applies, esc clears"
_LEAST_ROOT = 6
_SILENT_S = 4.0
"""Seconds without an answer of the file system that are said; imports alone take 2 on a busy machine."""
_NOUNS = ("run", "other job", "draft")
EMPTY = """\
No runs yet.

    n   a new run, step by step
    e   open or make a recipe in the editor
    w   watch a Slurm job, or a directory of logs

To see a complete run in a minute, with small stand-in models on this machine:

    distill-tui demo

It starts a real Ray cluster here, trains, and appears in this list.
"""


class RowCounts(NamedTuple):
    """Rows of each kind."""

    runs: int
    jobs: int
    """Jobs of other programs."""
    drafts: int

    @classmethod
    def of(cls, rows: Sequence[RunRow]) -> RowCounts:
        """Count rows; a damaged run is a run."""
        runs, drafts = sum(bool(row.directory) for row in rows), sum(bool(row.draft) for row in rows)
        return cls(runs, len(rows) - runs - drafts, drafts)


@dataclass(frozen=True, slots=True)
class TitleFacts:
    """What the title line says."""

    root: str
    """Directory of the runs; empty before it is listed."""
    listed: RowCounts
    shown: RowCounts
    """Rows that the filter leaves."""
    order: str
    marked: int
    message: str
    problem: str
    """Why the runs cannot be listed."""
    busy_s: float
    """Seconds for which the file system has not answered."""
    listing: JobListing | None
    hosts: tuple[str, ...] = ()
    """Hosts whose runs are listed, too."""


def home_title(facts: TitleFacts, width: int) -> Content:
    """Return the title line.

    The directory is cut from its beginning: the end tells roots apart. To a message or a warning give way:
    the directory, the program's name, the order.
    """
    name = (" distill-tui ", "bold $text-primary")
    news = [(f"  ● {facts.marked} marked", "$text-primary")] if facts.marked else []
    news += [(f"   {facts.message}", "")] if facts.message else []
    state = Content.assemble(*news, *_warnings(facts))
    order = Content(f"  {facts.order}" if facts.order else "").stylize("dim")
    if not facts.root:
        return Content.assemble(name, order, state)
    count = _count(facts)
    head, root = f" {count} in ", clean(facts.root)
    if facts.hosts:
        head, root = f" {count} ", f"here and on {', '.join(map(clean, facts.hosts))}"
    room = width - len(name[0]) - len(head) - order.cell_length - state.cell_length - 1
    if room >= _LEAST_ROOT:
        root = root if len(root) <= room else f"…{root[-room + 1 :]}"
        return Content.assemble(name, (f"{head}{root}", "dim"), order, state)
    counted = (f" {count}", "dim")
    shorter = (Content.assemble(name, counted, order, state), Content.assemble(counted, order, state))
    last = Content.assemble(counted, state)
    return next((line for line in shorter if line.cell_length <= width), last)


def _count(facts: TitleFacts) -> str:
    """Return how many rows of each kind there are, and how many of them the filter leaves."""
    only_drafts = bool(facts.listed.drafts) and not facts.listed.runs and not facts.listed.jobs
    counts = [
        (f"{shown:,} of " if shown != listed else "") + plural(listed, noun)
        for noun, listed, shown in zip(_NOUNS, facts.listed, facts.shown, strict=True)
        if listed or (noun == "run" and not only_drafts)
    ]
    if only_drafts and facts.listed == facts.shown:
        return f"No runs yet, {counts[0]}"
    return ", ".join(counts)


def row_details(row: RunRow, problem: str, unusual: Sequence[str], width: int) -> list[Content]:
    """Return two lines about a row: what it is, and its state with the reason.

    `problem`: why the scheduler gives no answer; `unusual`: what took longer than usual.
    """
    reason = row.damaged or row.reason
    if row.as_of is not None:
        silent = (
            f"Slurm gives no answer: {problem}" if problem or not row.host else f"{row.host} is not there"
        )
        reason = f"as of {clock_time(row.as_of)}; {silent}"
    reason = "; ".join(filter(None, (reason, *unusual)))
    facts = [f"on {row.host}", row.detail] if row.host else [row.detail]
    facts += [f"{row.student} <- {row.teacher}"] if row.student and row.teacher else []
    facts += [f"partition {row.partition}"] if row.partition else []
    facts += [file_size(row.bytes)] if row.bytes is not None else []
    state = f" {state_label(row)}"
    detail = with_short_paths(" · ".join(facts), width - len(row.id) - 3)
    reason = with_short_paths(reason, width - cell_len(state) - 2)
    first = Content.assemble((f" {row.id}", "bold"), (f"  {detail}", "dim"))
    second = Content.assemble((state, "bold"), f": {reason}" if reason else "")
    return [line.truncate(width, ellipsis=True) for line in (first, second)]


def connection_lines(
    lines: Sequence[LineState], problems: Sequence[str], now: float, width: int
) -> list[Content]:
    """Return a line for each host that is not connected, or whose runs cannot be listed."""
    contents = []
    for line in lines:
        calm = line.kind in ("connecting", "asking")
        mark, style = (" … ", "dim") if calm else (" ! ", "$text-warning")
        after = "  (f5 tries again)" if line.kind == "refused" else ""
        contents.append(Content.assemble((mark, style), (line.in_words(now), style), (after, "bold")))
    contents += [Content.assemble((" ! ", "$text-warning"), problem) for problem in problems]
    return [content.truncate(width, ellipsis=True) for content in contents]


def _warnings(facts: TitleFacts) -> list[tuple[str, str]]:
    """Return what cannot be read or asked now."""
    if facts.problem:
        return [(f"   ! {facts.problem}", "$text-error")]
    if facts.busy_s > _SILENT_S:
        unanswered = duration(facts.busy_s, tenths=False)
        return [(f"   ! no answer from the file system for {unanswered}", "$text-warning")]
    listing = facts.listing
    if listing is not None and listing.problem:
        since = f" since {clock_time(listing.asked)}" if listing.asked else ""
        return [(f"   ! Slurm gives no answer{since}", "$text-warning")]
    if listing is not None and listing.accounting_problem:
        return [("   ! Slurm's accounting gives no answer", "$text-warning")]
    return []
