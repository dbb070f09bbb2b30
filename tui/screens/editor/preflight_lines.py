"""Checks and memory of the recipe as it stands: a summary, a bar for each phase, and the findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.text import clean
from recipes.editing.preflight_changes import changes
from tui.formatting import plural
from tui.theme import FAILURE, OK, UNDECIDED, WARNING
from tui.widgets.choice_list import ListChoice
from tui.widgets.meter import mark_of, meter

if TYPE_CHECKING:
    from launcher.overview.measured_memory import MeasuredEstimate
    from recipes.checks import Result
    from recipes.editing import Analysis, Placement
    from recipes.memory import Estimate, Phase
    from recipes.memory.shapes import PhaseId

_ORDER = ("fail", "warn")
_SHORT = {"student-train": "student", "teacher-score": "teacher"}
_STRIP_PHASES: tuple[PhaseId, ...] = ("student-train", "teacher-score", "generation")
"""Phases on the one line of a small terminal."""
_LABEL = 11
_FIGURES = 24
"""Columns of the figures behind a bar: needed, limit, mark and word."""


def outcomes_by_key(results: Iterable[Result]) -> dict[str, str]:
    """Return the worst outcome of the findings on each key."""
    outcomes: dict[str, str] = {}
    for result in results:
        if result.outcome in _ORDER:
            for line in result.where[:1]:
                if outcomes.get(line.key) != "fail":
                    outcomes[line.key] = result.outcome
    return outcomes


def findings_of(analysis: Analysis) -> tuple[Result, ...]:
    """Return the findings that matter, worst first."""
    results = [item for item in analysis.report.results if item.outcome in _ORDER]
    return tuple(sorted(results, key=lambda item: _ORDER.index(item.outcome)))


def finding_choices(findings: Iterable[Result]) -> list[ListChoice]:
    """Return the findings as rows: id and key, and the message beside it."""
    rows = []
    for item in findings:
        key = item.where[0].key if item.where else ""
        rows.append(
            ListChoice(f"{item.id} {key.rpartition('.')[2]}".strip(), item.message, item.outcome, key)
        )
    return rows


def summary(analysis: Analysis) -> Content:
    """Return what the checks say of the text, or that it cannot be read, and what they said before."""
    if analysis.state.error is None:
        return _outcome(analysis)
    style = f"{FAILURE.style} bold"
    broken = Content.assemble((f"{FAILURE.glyph} not YAML, line {analysis.state.error_line}", style))
    if not analysis.outline.rows:
        return broken
    return Content.assemble(broken, (" · as last read: ", "dim"), _outcome(analysis))


def _outcome(analysis: Analysis) -> Content:
    """Return how many checks fail or warn, and whether the memory is sufficient."""
    counts = {outcome: sum(item.outcome == outcome for item in analysis.report.results) for outcome in _ORDER}
    parts: list[tuple[str, str]] = []
    if counts["fail"]:
        parts.append(
            (f"{FAILURE.glyph} {plural(counts['fail'], 'check')} would fail", f"{FAILURE.style} bold")
        )
    if counts["warn"]:
        parts.append((f"{WARNING.glyph} {plural(counts['warn'], 'warning')}", WARNING.style))
    if not any(counts.values()):
        parts.append(_nothing_fails(analysis))
    if analysis.memory is not None:
        overfull = [phase for phase in analysis.memory.phases if not phase.fits]
        if overfull:
            names = " and ".join(_short(phase) for phase in overfull)
            verb = "does" if len(overfull) == 1 else "do"
            parts.append((f"{FAILURE.glyph} {names} {verb} not fit", f"{FAILURE.style} bold"))
    joined: list[tuple[str, str]] = []
    for part in parts:
        joined += [(" · ", "dim"), part] if joined else [part]
    return Content.assemble(*joined)


def _nothing_fails(analysis: Analysis) -> tuple[str, str]:
    """Return that nothing fails, or why nothing could be checked."""
    results = analysis.report.results
    undecided = [item for item in results if item.outcome == "unknown"]
    if undecided and not any(item.outcome == "pass" for item in results):
        return (
            f"{UNDECIDED.glyph} nothing checked: {clean(undecided[0].message).removeprefix('unknown: ')}",
            UNDECIDED.style,
        )
    return f"{OK.glyph} no failure predicted", OK.style


def placement_text(placement: Placement, analysis: Analysis | None) -> str:
    """Return the place that the checks count on: nodes, GPUs of each, and their memory."""
    recipe = analysis.recipe if analysis is not None else None
    nodes = placement.nodes or (recipe.get("cluster.num_nodes") if recipe is not None else None)
    gpus = placement.gpus_per_node or (recipe.get("cluster.gpus_per_node") if recipe is not None else None)
    memory = placement.gpu_memory_gib or (analysis.memory.gpu_gib if analysis and analysis.memory else None)
    size = f"{_count(nodes)} × {_count(gpus)} GPUs"
    return f"{size} × {memory:g} GiB" if memory else size


def _count(value: object) -> str:
    return str(value) if isinstance(value, int) else "?"


def memory_lines(estimate: Estimate, width: int, measured: MeasuredEstimate | None = None) -> list[Content]:
    """Return a line for each phase, always in the same order: name, bar, figures and a word.

    `measured`: the peak of an earlier run of the recipe, which has one more line.
    """
    lines = []
    phases = {phase.id: phase for phase in estimate.phases}
    for name in dict.fromkeys((*_STRIP_PHASES, *phases)):
        phase = phases.get(name)
        if phase is None:
            lines.append(Content.assemble((f"{_SHORT.get(name, name):<{_LABEL}}unknown", "dim")))
            continue
        mark = mark_of(phase.needed, estimate.gpu_gib)
        word = "fits" if phase.fits else "does not fit"
        bar_width = max(width - _LABEL - _FIGURES - 6, 6)
        lines.append(
            Content.assemble(
                (f"{_short(phase):<{_LABEL}}", "dim"),
                meter(phase.needed, estimate.gpu_gib, bar_width),
                f" {phase.needed:5.1f} of {estimate.gpu_gib:g} GiB ",
                (f"{mark.glyph} {word}", mark.style),
            )
        )
    return [*lines, *([_measured_line(estimate, measured)] if measured is not None else [])]


def _measured_line(estimate: Estimate, measured: MeasuredEstimate) -> Content:
    """Return what the largest phase needs by what an earlier run took."""
    needed = measured.corrected_gib(max((phase.needed for phase in estimate.phases), default=0.0))
    mark = mark_of(needed, estimate.gpu_gib)
    return Content.assemble(
        (f"{'measured':<{_LABEL}}", "dim"),
        f"by that {needed:.1f} of {estimate.gpu_gib:g} GiB ",
        (mark.glyph, mark.style),
        (f" {measured.in_words()}, {clean(measured.run)}", "dim"),
    )


def memory_strip(estimate: Estimate, width: int) -> Content:
    """Return the phases on one line: name, short bar, GiB needed."""
    phases = {phase.id: phase for phase in estimate.phases}
    tail = f"of {estimate.gpu_gib:g} GiB"
    fixed = sum(len(_SHORT.get(name, name)) + 8 for name in _STRIP_PHASES)
    bar_width = max((width - fixed - len(tail)) // len(_STRIP_PHASES), 3)
    parts: list[Content | tuple[str, str]] = []
    for name in _STRIP_PHASES:
        parts.append((f"{_SHORT.get(name, name)} ", "dim"))
        phase = phases.get(name)
        if phase is None:
            parts.append((f"{'unknown':<{bar_width + 7}}", "dim"))
            continue
        mark = mark_of(phase.needed, estimate.gpu_gib)
        parts += [
            meter(phase.needed, estimate.gpu_gib, bar_width),
            (f" {phase.needed:>3.0f} ", "" if phase.fits else f"{mark.style} bold"),
            (f"{mark.glyph} ", mark.style),
        ]  # fmt: skip
    return Content.assemble(*parts, (tail, "dim"))


def _short(phase: Phase) -> str:
    return _SHORT.get(phase.id, phase.id)


def difference_text(before: Analysis | None, after: Analysis) -> tuple[str, str]:
    """Return what fails now or is solved as a sentence, with its outcome; empty for no difference."""
    if before is None:
        return "", ""
    difference = changes(before.report, after.report, before.memory, after.memory)
    fails = difference.overfull or any(item.outcome == "fail" for item in difference.new)
    return clean(difference.text()), "fail" if fails else "warn" if difference.new else "pass"
