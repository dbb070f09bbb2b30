"""The review: the submission, its cost, its checks, and what prevents it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from textual.content import Content

from launcher.durations import format_time_limit
from launcher.environment import Outcome, kind_of
from launcher.fields import STEPS
from launcher.fields import field as field_of
from launcher.text import clean, clean_lines
from tui.formatting import plural
from tui.screens.editor.preflight_lines import memory_lines
from tui.screens.wizard.findings import MARKS, Assessment, DraftFinding, assess
from tui.screens.wizard.model import DraftStatus, WizardState, count_of, partition_of, time_s
from tui.screens.wizard.pages import (
    OUTCOMES,
    Lines,
    cost_text,
    fact,
    line,
    place_facts,
    titled_finding,
    wrap_hanging,
)

if TYPE_CHECKING:
    from launcher.environment import VariableDecision
    from launcher.submit.submit import StartEstimate, SubmissionPlan

_MAX_CHANGES = 40
_MAX_FINDINGS = 6


def review(
    state: WizardState,
    status: DraftStatus,
    start_estimate: StartEstimate | str | None,
    width: int = 100,
    ready: Lines | None = None,
) -> Lines:
    """Return the whole review in one column, section by section; `ready` is what the doctor says."""
    if not status.settled:
        return [line(("checking …", "dim"))]
    assessment = assess(state, status)
    job = (
        _job_section(status, start_estimate, ready)
        if status.plan is not None
        else _draft_section(state, status)
    )
    sections = (
        _obstacle_section(status, assessment),
        job,
        _check_section(status, assessment),
        _change_section(status),
        _memory_section(status, width),
        *_what_happens(status),
    )
    return _joined(sections, width)


def review_of_run(
    state: WizardState, status: DraftStatus, start_estimate: StartEstimate | str | None, width: int
) -> Lines:
    """Return the review without checks and memory, which stand beside it on a wide screen."""
    if not status.settled:
        return [line(("checking …", "dim"))]
    job = _job_section(status, start_estimate) if status.plan is not None else _draft_section(state, status)
    return _joined((job, _change_section(status), *_what_happens(status)), width)


def review_of_checks(
    state: WizardState, status: DraftStatus, width: int, ready: Lines | None = None
) -> Lines:
    """Return what prevents the run, what the doctor says, the checks with their fixes, and the memory."""
    assessment = assess(state, status)
    sections = (
        _obstacle_section(status, assessment),
        ready or [],
        _check_section(status, assessment),
        _memory_section(status, width),
    )
    return _joined(sections, width)


def _what_happens(status: DraftStatus) -> tuple[Lines, ...]:
    return (
        _place_section(status),
        _environment_section(status),
        _plan_section(status),
    )


def _joined(sections: Iterable[Lines], width: int) -> Lines:
    lines: Lines = []
    for section in sections:
        if section:
            lines += [*([Content("")] if lines else []), *section]
    return wrap_hanging(lines, width)


def _memory_section(status: DraftStatus, width: int) -> Lines:
    if status.memory is None:
        return []
    return [
        heading("GPU memory"),
        *memory_lines(status.memory, width, status.measured),
        *_fitting_lines(status),
    ]


def _place_section(status: DraftStatus) -> Lines:
    """Return where the run would write."""
    return [heading("Where it writes"), *place_facts(status)] if status.storage is not None else []


def heading(text: str, more: str = "") -> Content:
    """Return a section's heading."""
    return line((text, "bold $text-primary"), (f"  {more}" if more else "", "dim"))


def _obstacle_section(status: DraftStatus, assessment: Assessment) -> Lines:
    """Return what prevents a plan."""
    lines: Lines = []
    for item in assessment.preventing:
        title = f"{field_of(item.field).title}: " if item.field else ""
        where = f" (step {step_title(item.field)})" if item.field else ""
        lines.append(line((f"✗ {title}", "$text-error"), clean(item.message), (where, "dim")))
        error = status.plan_error or (status.plan.obstacle if status.plan is not None else None)
        if error is not None and item.message == error.what:
            lines += [line(f"  {text.strip()}") for text in clean_lines(str(error)).split("\n")[1:]]
    return [heading("Cannot be submitted yet"), *lines] if lines else []


def step_title(name: str) -> str:
    """Return the title of the step that has a field."""
    return next((item.title for item in STEPS if item.id == field_of(name).step), "")


def _draft_section(state: WizardState, status: DraftStatus) -> Lines:
    """Return what is known of a job that cannot be planned yet."""
    partition, nodes, limit_s = (
        partition_of(state, status),
        count_of("nodes", state, status),
        time_s(state, status),
    )
    lines: Lines = []
    if partition is not None and nodes and limit_s:
        size = f"{plural(nodes, 'node')} × {plural(status.gpus_per_node, 'GPU')}"
        text = f"{size} of {clean(partition.name)} for {format_time_limit(limit_s)}"
        lines.append(fact("resources", text))
    if status.cost is not None:
        lines.append(fact("cost", f"at most {cost_text(status.cost)}"))
    return [heading("Job", "its command is shown when it can be submitted"), *lines] if lines else []


def _job_section(
    status: DraftStatus, start_estimate: StartEstimate | str | None, ready: Lines | None = None
) -> Lines:
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
        *((fact("driver", clean(choices.checkout.driver)),) if choices.checkout is not None else ()),
        fact("resources", f"{size} of {clean(request.partition)} for {length}, {charged}"),
        fact("cost", f"at most {cost_text(plan.cost)}"),
        fact("starts", *_starts(start_estimate)),
        *(ready or ()),
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


def _check_section(status: DraftStatus, assessment: Assessment) -> Lines:
    """Return all findings that do not prevent the plan, worst first, and checks without an answer."""
    findings = [item for item in assessment.findings if not item.prevents]
    counts = {level: sum(item.level == level for item in findings) for level in ("error", "warn")}
    outcome = f"{counts['error']} would fail, {plural(counts['warn'], 'warning')}" if findings else ""
    lines = [heading("Checks", outcome)]
    for item in findings:
        lines += [titled_finding(item), *_fix_lines(item, status)]
    unknown = [item for item in (status.report.results if status.report else ()) if item.outcome == "unknown"]
    glyph, style = OUTCOMES["unknown"]
    lines += [line((f"{glyph} {item.id} ", style), clean(item.message)) for item in unknown]
    if not assessment.level and not unknown and status.report is not None:
        lines.append(line(("✓ no failure predicted", "$text-success")))
    return lines if len(lines) > 1 else []


def _fitting_lines(status: DraftStatus) -> Lines:
    """Return the changes under which the memory would suffice."""
    return [
        line(("would fit (f): ", "dim"), f"{clean(option.fix.title)}  ({option.needed:.1f} GiB)")
        for option in status.fitting
    ]


def _fix_lines(item: DraftFinding, status: DraftStatus) -> Lines:
    """Return the fix of a failing check."""
    results = status.report.results if status.report is not None and item.check else ()
    own = (
        result
        for result in results
        if (result.id, result.message, result.outcome) == (item.check, item.message, "fail")
    )
    fixes = [fix for result in own for fix in result.fixes[:1] if fix.edits][:1]
    return [line(("      fix (f): ", "dim"), clean(fix.title)) for fix in fixes]


def _change_section(status: DraftStatus) -> Lines:
    """Return the recipe's changes by effective value; the file itself is not changed."""
    from launcher.submit.review_facts import recipe_changes
    from recipes.compare import ABSENT

    recipe = status.report.recipe if status.report is not None else None
    if recipe is None or status.base_recipe is None:
        return []
    changed_values = recipe_changes(status.base_recipe, recipe)
    lines = [heading("Recipe changes", "used once, as overrides; w saves them")]
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


def _decisions(status: DraftStatus) -> tuple[VariableDecision, ...]:
    environment = status.plan.options.environment if status.plan is not None else None
    return environment.decisions if environment is not None else ()


def _environment_section(status: DraftStatus) -> Lines:
    """Return how many variables reach the job, by what decided that."""
    decisions = _decisions(status)
    if not decisions:
        return []
    counts = Counter(str(item.outcome.value) for item in decisions)
    lines = [heading("Environment", "e lists every variable, with its reason")]
    lines.append(line(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))))
    dropped = [
        item for item in decisions if item.outcome is Outcome.DROPPED and kind_of(item.name) == "storage"
    ]
    return [*lines, *(fact("dropped", f"{item.name}: {clean(item.reason)}") for item in dropped)]


def environment_rows(status: DraftStatus) -> tuple[str, ...]:
    """Return a row for each variable: its name, what becomes of it, its value in the job or the reason."""
    decisions = _decisions(status)
    names = max((len(item.name) for item in decisions), default=0)
    outcomes = max((len(item.outcome.value) for item in decisions), default=0)
    return tuple(
        f"{item.name:<{names}}  {item.outcome.value:<{outcomes}}  "
        f"{'; '.join(part for part in (clean(item.value), clean(item.reason)) if part)}".rstrip()
        for item in decisions
    )


def _plan_section(status: DraftStatus) -> Lines:
    if status.plan is None:
        return []
    plan = status.plan.submission.plans[0]
    root = status.storage.root.path if status.storage is not None else plan.cwd
    program, *arguments = plan.argv
    place = "in the directory of the run" if plan.cwd.startswith(f"{root}/") else f"in {clean(plan.cwd)}"
    lines = [heading("Plan", place), line(clean(program))]
    lines += [line(f"  {clean(shlex.quote(argument))}") for argument in arguments]
    lines.append(
        line((f"{plural(len(plan.environment), 'variable')}, {plural(len(plan.files), 'file')}", "dim"))
    )
    return lines


def question(plan: SubmissionPlan, assessment: Assessment, unready: str = "") -> str:
    """Return the question before a submission: the job, its cost, every finding, what the doctor misses."""
    request, choices = plan.options.slurm_request, plan.options
    lines = [
        f"{choices.kind}: {plural(choices.nodes, 'node')} × {plural(choices.gpus_per_node, 'GPU')} of "
        f"{request.partition} for {format_time_limit(request.time_s)}"
        + (f", at most {request.chain} jobs" if request.chain > 1 else ""),
        f"at most {cost_text(plan.cost)}" + (f", charged to {request.account}" if request.account else ""),
    ]
    findings = [item for item in assessment.findings if not item.skipped]
    if plan.asks:
        lines += ["", "✗ GPU memory may not be sufficient:", *(f"  {item}" for item in plan.asks)]
        findings = [item for item in findings if item.check or item.field or item.level != "error"]
    if findings:
        lines.append("")
    for item in findings[:_MAX_FINDINGS]:
        title = f"{field_of(item.field).title}: " if item.field and not item.check else ""
        lines.append(f"{MARKS[item.level][0]} {title}{item.text}")
    if len(findings) > _MAX_FINDINGS:
        lines.append(f"  … and {len(findings) - _MAX_FINDINGS} more in the review")
    if unready:
        lines += ["", f"{MARKS['error'][0]} Doctor: {unready}"]
    skipped = [item.id for item in plan.submission.spec.skipped_checks]
    if skipped:
        lines += ["", f"! Skipped failing checks: {', '.join(skipped)}"]
    return "\n".join(lines)
