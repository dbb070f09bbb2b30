"""The review: the submission, its cost, its checks, and what prevents it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from textual.content import Content

from launcher.durations import format_time_limit
from launcher.fields import field as field_of
from launcher.text import clean, clean_lines
from tui.formatting import plural
from tui.screens.wizard.model import DraftStatus, WizardState, errors
from tui.screens.wizard.pages import OUTCOMES, Lines, cost_text, fact, line, memory_lines

if TYPE_CHECKING:
    from launcher.submit.submit import StartEstimate, SubmissionPlan
    from recipes.checks import Result

_MAX_CHANGES = 40


def review(state: WizardState, status: DraftStatus, start_estimate: StartEstimate | str | None) -> Lines:
    """Return the review, section by section."""
    if not status.settled:
        return [line(("checking …", "dim"))]
    sections = [
        _obstacle_section(state, status),
        _job_section(status, start_estimate),
        _check_section(state, status),
        [heading("GPU memory"), *memory_lines(status.memory)] if status.memory is not None else [],
        _change_section(status),
        _plan_section(status),
    ]
    lines: Lines = []
    for section in sections:
        if section:
            lines += [*([Content("")] if lines else []), *section]
    return lines


def heading(text: str, more: str = "") -> Content:
    """Return a section's heading."""
    return line((text, "bold $text-primary"), (f"  {more}" if more else "", "dim"))


def _obstacle_section(state: WizardState, status: DraftStatus) -> Lines:
    missing = errors(state, status)
    lines = [
        line((f"✗ {field_of(name).title}: ", "$text-error"), clean(text)) for name, text in missing.items()
    ]
    if status.plan_error is not None and not missing:
        first, *rest = clean_lines(str(status.plan_error)).split("\n")
        lines += [line((f"✗ {first}", "$text-error")), *(line(item) for item in rest)]
    return [heading("Cannot be submitted yet"), *lines] if lines else []


def _job_section(status: DraftStatus, start_estimate: StartEstimate | str | None) -> Lines:
    plan = status.plan
    if plan is None:
        return []
    choices, request = plan.options, plan.options.slurm_request
    size = f"{plural(choices.nodes, 'node')} × {plural(choices.gpus_per_node, 'GPU')}"
    length = f"{format_time_limit(request.time_s)}" + (
        f", at most {request.chain} jobs" if request.chain > 1 else ""
    )
    charged = f"charged to {clean(request.account)}" if request.account else "charged to your default account"
    lines = [
        heading("Job"),
        fact("run", f"{choices.kind} of {clean(str(plan.request.recipe))}"),
        fact("resources", f"{size} of {clean(request.partition)} for {length}, {charged}"),
        fact("cost", f"at most {cost_text(plan.cost)}"),
        fact("starts", *_starts(start_estimate)),
    ]
    storage = status.storage.warnings() if status.storage is not None else ()
    return [*lines, *(fact("note", clean(note), "$text-warning") for note in (*plan.notes, *storage))]


def _starts(start_estimate: StartEstimate | str | None) -> tuple[str, str]:
    if start_estimate is None:
        return "press t to ask Slurm for an estimate", "dim"
    if isinstance(start_estimate, str):
        return clean(start_estimate), "$text-error" if start_estimate.startswith("✗") else "dim"
    outcome = "now" if start_estimate.requested.now else f"at {when(start_estimate.start)}"
    sooner = [
        f"{format_time_limit(item.time_s)} would start {'now' if item.now else 'at ' + when(item.start)}"
        for item in start_estimate.sooner
    ]
    return "; ".join((outcome, *sooner)), ""


def when(start: str) -> str:
    """Return a start time for display."""
    return clean(start.replace("T", " "))


def _check_section(state: WizardState, status: DraftStatus) -> Lines:
    if status.report is None:
        return []
    results = status.report.results
    counts = {outcome: sum(item.outcome == outcome for item in results) for outcome in ("fail", "warn")}
    outcome = f"{counts['fail']} would fail, {plural(counts['warn'], 'warning')}" if results else ""
    lines = [heading("Checks", outcome)]
    listed_results = [item for name in OUTCOMES for item in results if item.outcome == name]
    for item in listed_results:
        lines += _check(item, skipped=item.id in state.skipped)
    if not listed_results:
        lines.append(line(("✓ no failure predicted", "$text-success")))
    return lines


def _check(item: Result, *, skipped: bool) -> Lines:
    glyph, style = OUTCOMES[item.outcome]
    mark = " (skipped)" if skipped and item.outcome == "fail" else ""
    lines = [line((f"{glyph} {item.id}{mark} ", style), clean(item.message))]
    if item.outcome == "fail":
        lines += [line(("      fix (f): ", "dim"), clean(fix.title)) for fix in item.fixes[:1] if fix.edits]
    return lines


def _change_section(status: DraftStatus) -> Lines:
    """Return the recipe's changes by effective value; the file itself is not changed."""
    from recipes.compare import ABSENT, differences

    recipe = status.report.recipe if status.report is not None else None
    if recipe is None or status.base_recipe is None:
        return []
    changed_values = list(differences(status.base_recipe.values, recipe.values))
    lines = [heading("Recipe changes", "the file is not changed; the run records the values used")]
    for item in changed_values[:_MAX_CHANGES]:
        before = "not set" if item.a is ABSENT else value_text(item.a)
        after = "removed" if item.b is ABSENT else value_text(item.b)
        lines.append(line(f"{clean(item.key)}  ", (before, "dim"), " → ", (after, "bold")))
    if len(changed_values) > _MAX_CHANGES:
        lines.append(line((f"… and {len(changed_values) - _MAX_CHANGES} more", "dim")))
    if not changed_values:
        lines.append(line(("none", "dim")))
    return lines


def value_text(value: Any) -> str:  # noqa: ANN401 - a recipe holds anything
    """Return a recipe's value on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return clean(str(value))


def _plan_section(status: DraftStatus) -> Lines:
    if status.plan is None:
        return []
    plan = status.plan.submission.plans[0]
    program, *arguments = plan.argv
    lines = [heading("Plan", f"in {clean(plan.cwd)}"), line(clean(program))]
    lines += [line(f"  {clean(shlex.quote(argument))}") for argument in arguments]
    lines.append(
        line((f"{plural(len(plan.environment), 'variable')}, {plural(len(plan.files), 'file')}", "dim"))
    )
    return lines


def question(plan: SubmissionPlan) -> str:
    """Return the question before a submission."""
    request, choices = plan.options.slurm_request, plan.options
    lines = [
        f"{choices.kind}: {plural(choices.nodes, 'node')} × {plural(choices.gpus_per_node, 'GPU')} of "
        f"{request.partition} for {format_time_limit(request.time_s)}"
        + (f", at most {request.chain} jobs" if request.chain > 1 else ""),
        f"at most {cost_text(plan.cost)}" + (f", charged to {request.account}" if request.account else ""),
    ]
    if plan.asks:
        lines += ["", "! GPU memory may not be sufficient:", *(f"  {item}" for item in plan.asks)]
    skipped = [item.id for item in plan.submission.spec.skipped_checks]
    if skipped:
        lines += ["", f"! Skipped failing checks: {', '.join(skipped)}"]
    return "\n".join(lines)
