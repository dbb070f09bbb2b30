"""The review: everything that would be submitted, what stands against it, and what it costs."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from textual.content import Content

from launcher.clusters.slurm.parse import slurm_time
from launcher.text import clean, clean_lines
from recipes.fields import field as field_of
from tui.formatting import plural
from tui.screens.wizard.model import DraftStatus, WizardState, errors
from tui.screens.wizard.pages import OUTCOMES, Lines, cost_text, fact, line, memory_lines

if TYPE_CHECKING:
    from launcher.submit.submit import StartEstimate, SubmissionPlan
    from recipes.checks import Result

_CHANGES = 40


def review(draft: WizardState, seen: DraftStatus, forecast: StartEstimate | str | None) -> Lines:
    """Return the review, a section after another."""
    if not seen.settled:
        return [line(("checking …", "dim"))]
    sections = [
        _obstacles(draft, seen),
        _job(seen, forecast),
        _checks(draft, seen),
        [heading("Memory of a GPU"), *memory_lines(seen.memory)] if seen.memory is not None else [],
        _changes(seen),
        _plan(seen),
    ]
    lines: Lines = []
    for section in sections:
        if section:
            lines += [*([Content("")] if lines else []), *section]
    return lines


def heading(text: str, more: str = "") -> Content:
    """Return a section's heading."""
    return line((text, "bold $text-primary"), (f"  {more}" if more else "", "dim"))


def _obstacles(draft: WizardState, seen: DraftStatus) -> Lines:
    missing = errors(draft, seen)
    lines = [
        line((f"✗ {field_of(name).title}: ", "$text-error"), clean(text)) for name, text in missing.items()
    ]
    if seen.problem is not None and not missing:
        first, *rest = clean_lines(str(seen.problem)).split("\n")
        lines += [line((f"✗ {first}", "$text-error")), *(line(item) for item in rest)]
    return [heading("It cannot be submitted yet"), *lines] if lines else []


def _job(seen: DraftStatus, forecast: StartEstimate | str | None) -> Lines:
    proposal = seen.proposal
    if proposal is None:
        return []
    choices, request = proposal.choices, proposal.choices.request
    size = f"{plural(choices.nodes, 'node')} × {plural(choices.gpus_per_node, 'GPU')}"
    length = f"{slurm_time(request.time_s)}" + (
        f", {request.chain} jobs at most" if request.chain > 1 else ""
    )
    charged = f"charged to {clean(request.account)}" if request.account else "charged to your default account"
    lines = [
        heading("Job"),
        fact("what", f"{choices.kind} of {clean(str(proposal.order.recipe))}"),
        fact("where", f"{size} of {clean(request.partition)} for {length}, {charged}"),
        fact("costs", f"at most {cost_text(proposal.cost)}"),
        fact("starts", *_starts(forecast)),
    ]
    return [*lines, *(fact("note", clean(note), "$text-warning") for note in proposal.notes)]


def _starts(forecast: StartEstimate | str | None) -> tuple[str, str]:
    if forecast is None:
        return "t asks Slurm when, without submitting", "dim"
    if isinstance(forecast, str):
        return clean(forecast), "$text-error" if forecast.startswith("✗") else "dim"
    told = "now" if forecast.asked.now else f"at {when(forecast.start)}"
    sooner = [
        f"{slurm_time(item.time_s)} would start {'now' if item.now else 'at ' + when(item.start)}"
        for item in forecast.sooner
    ]
    return "; ".join((told, *sooner)), ""


def when(start: str) -> str:
    """Return a start as people read it."""
    return clean(start.replace("T", " "))


def _checks(draft: WizardState, seen: DraftStatus) -> Lines:
    if seen.report is None:
        return []
    results = seen.report.results
    counts = {outcome: sum(item.outcome == outcome for item in results) for outcome in ("fail", "warn")}
    told = f"{counts['fail']} would fail, {counts['warn']} doubtful" if results else ""
    lines = [heading("Checks", told)]
    order = [item for name in OUTCOMES for item in results if item.outcome == name]
    for item in order:
        lines += _check(item, skipped=item.id in draft.skipped)
    if not order:
        lines.append(line(("✓ nothing is foretold to fail", "$text-success")))
    return lines


def _check(item: Result, *, skipped: bool) -> Lines:
    glyph, style = OUTCOMES[item.outcome]
    mark = " (skipped)" if skipped and item.outcome == "fail" else ""
    lines = [line((f"{glyph} {item.id}{mark} ", style), clean(item.message))]
    if item.outcome == "fail":
        lines += [
            line(("      f fixes it: ", "dim"), clean(fix.title)) for fix in item.fixes[:1] if fix.edits
        ]
    return lines


def _changes(seen: DraftStatus) -> Lines:
    """Return what of the recipe is changed, by effective value; the file itself stays as it is."""
    from recipes.compare import ABSENT, differences

    recipe = seen.report.recipe if seen.report is not None else None
    if recipe is None or seen.file is None:
        return []
    found = list(differences(seen.file.values, recipe.values))
    lines = [heading("Changes of the recipe", "the file stays as it is; the run keeps what is used")]
    for item in found[:_CHANGES]:
        before = "absent" if item.a is ABSENT else shown(item.a)
        after = "removed" if item.b is ABSENT else shown(item.b)
        lines.append(line(f"{clean(item.key)}  ", (before, "dim"), " → ", (after, "bold")))
    if len(found) > _CHANGES:
        lines.append(line((f"… and {len(found) - _CHANGES} more", "dim")))
    if not found:
        lines.append(line(("none", "dim")))
    return lines


def shown(value: Any) -> str:  # noqa: ANN401 - a recipe holds anything
    """Return a recipe's value on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return clean(str(value))


def _plan(seen: DraftStatus) -> Lines:
    if seen.proposal is None:
        return []
    plan = seen.proposal.submission.plans[0]
    program, *arguments = plan.argv
    lines = [heading("Plan", f"in {clean(plan.cwd)}"), line(clean(program))]
    lines += [line(f"  {clean(shlex.quote(argument))}") for argument in arguments]
    lines.append(
        line((f"{plural(len(plan.environment), 'variable')}, {plural(len(plan.files), 'file')}", "dim"))
    )
    return lines


def question(proposal: SubmissionPlan) -> str:
    """Return what is asked before a submission."""
    request, choices = proposal.choices.request, proposal.choices
    lines = [
        f"{choices.kind}: {plural(choices.nodes, 'node')} × {plural(choices.gpus_per_node, 'GPU')} of "
        f"{request.partition} for {slurm_time(request.time_s)}"
        + (f", {request.chain} jobs at most" if request.chain > 1 else ""),
        f"at most {cost_text(proposal.cost)}"
        + (f", charged to {request.account}" if request.account else ""),
    ]
    if proposal.asks:
        lines += ["", "! The memory may not suffice:", *(f"  {item}" for item in proposal.asks)]
    skipped = [item.id for item in proposal.submission.spec.skipped_checks]
    if skipped:
        lines += ["", f"! Failing checks that you skip: {', '.join(skipped)}"]
    return "\n".join(lines)
