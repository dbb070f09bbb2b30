"""Facts beside the wizard's fields, step by step, and its summary line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.durations import format_time_limit
from launcher.fields import field as field_of
from launcher.storage.size import gigabytes
from launcher.text import clean, clean_lines
from recipes.models.facts import ModelFacts, UnknownModel
from tui.formatting import plural
from tui.screens.editor.preflight_lines import memory_lines
from tui.screens.wizard.alternatives import describe_model, setup_of
from tui.screens.wizard.findings import MARKS, Assessment, DraftFinding
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    Step,
    WizardState,
    kind_of,
    partition_of,
    time_s,
)
from tui.screens.wizard.partition_table import partition_lines
from tui.screens.wizard.validation import no_partitions
from tui.widgets.line_wrap import wrapped

if TYPE_CHECKING:
    from launcher.request import Cost
    from launcher.storage.location import Location
    from recipes.planning import Side

Lines = list[Content]
OUTCOMES = {"fail": ("✗", "$text-error"), "warn": ("!", "$text-warning"), "unknown": ("?", "dim")}
SHORT_TITLES = {"parallelism": "Parallel", "batches": "Batches", "data": "Data", "job": "Nodes"}
"""Titles of steps in the title line of a small terminal."""
_CURRENT_STEP = "bold $background on $primary"
_NAME = 12
"""Columns of a fact's name."""
_INDENT = 2
_LONGEST_HEAD = 16
"""Columns of the longest name or mark that the lines after the first one are indented under."""


def line(*parts: tuple[str, str] | str) -> Content:
    """Return a line of styled parts."""
    return Content.assemble(*parts)


def fact(name: str, text: str, style: str = "") -> Content:
    """Return a named fact."""
    return line((f"{name:<{_NAME - 1}} ", "dim"), (text, style))


def wrap_hanging(lines: Lines, width: int) -> Lines:
    """Wrap long lines; continuation lines are indented under the text, not under its name."""
    room = max(width, 2 * _NAME)
    return [piece for item in lines for piece in wrapped(item, room, hanging=_hanging(item))]


def _hanging(item: Content) -> int:
    head = next(iter(item.spans), None)
    if head is None or head.start or not item.plain[: head.end].endswith(" "):
        return _INDENT
    return head.end if head.end <= _LONGEST_HEAD else _INDENT


def step_list(
    current: str, steps: Sequence[Step], assessment: Assessment, width: int = 0, host: str = ""
) -> Content:
    """Return the list of steps, each with the mark of its level; in short where the width is too small.

    `host` is the name of the host that the run is for; empty for this machine.
    """
    full = _step_list(current, steps, assessment, host, short=False)
    if not width or full.cell_length <= width:
        return full
    return _step_list(current, steps, assessment, host, short=True)


def _step_list(
    current: str, steps: Sequence[Step], assessment: Assessment, host: str, *, short: bool
) -> Content:
    title = f" New run on {clean(host)} " if host else " New run "
    if short:
        title = f" {clean(host)}: " if host else ""
    parts: list[tuple[str, str]] = [(title, "bold $text-primary")] if title else []
    for number, step in enumerate(steps, 1):
        level = assessment.level_of_step(step.id)
        mark = MARKS[level] if level else ("", "")
        title = SHORT_TITLES.get(step.id, step.title) if short else step.title
        parts += [(f" {number} {title} ", _CURRENT_STEP if step.id == current else "dim"), mark]
    return Content.assemble(*parts)


def facts_of(step: str, state: WizardState, status: DraftStatus, width: int) -> Lines:
    """Return the facts of a step in `width` cells."""
    if step == "cluster":
        return cluster_facts(state, status, width)
    if status.recipe is None and not status.recipe_error:
        return [line(("loading …", "dim"))]
    facts = {
        "models": lambda: recipe_facts(state, status),
        "parallelism": lambda: size_facts(status),
        "batches": lambda: size_facts(status),
        "data": lambda: [*place_facts(status), *_storage_notes(status)],
        "job": lambda: job_facts(state, status),
    }
    return wrap_hanging(facts[step]() if step in facts else [], width)


def place_facts(status: DraftStatus) -> Lines:
    """Return where the run would write, and how much."""
    storage = status.storage
    if storage is None:
        return [line(("where the run writes is shown once it is planned", "dim"))]
    lines = [fact("run", _location(storage.root))]
    if storage.checkpoints is not None:
        lines.append(fact("checkpoints", "in the run" if storage.in_run else _location(storage.checkpoints)))
    if size := storage.size.in_words():
        lines.append(fact("size", clean(size)))
    return lines


def _storage_notes(status: DraftStatus) -> Lines:
    warnings = status.storage.warnings() if status.storage is not None else ()
    return [fact("note", f"! {clean(text)}", "$text-warning") for text in warnings]


def _location(location: Location) -> str:
    free = f"  ({gigabytes(location.free_bytes)} free)" if location.free_bytes is not None else ""
    return f"{clean(str(location.path))}{free}"


def cluster_facts(state: WizardState, status: DraftStatus, width: int) -> Lines:
    """Return the cluster's partitions, limits and accounts."""
    if status.detection is None:
        if status.slurm_error is None:
            return [line(("Querying Slurm …", "dim"))]
        first, *rest = clean_lines(str(status.slurm_error)).split("\n")
        failed = [line((f"✗ {first}", "$text-error")), *(line(item) for item in rest)]
        return wrap_hanging(failed, width)
    detection, chosen = status.detection, partition_of(state, status)
    named = [
        detection.site.name,
        f"Slurm {detection.version}" if detection.version else "",
        detection.cluster or "",
    ]
    lines = [fact("site", " · ".join(clean(part) for part in named if part))]
    if detection.partitions:
        lines += partition_lines(detection, chosen.name if chosen is not None else "", width)
    lines += [
        fact("budget", f"{clean(budget.account)}: {budget.core_h_left:,.0f} core-hours left")
        for budget in detection.budgets or ()
        if budget.core_h_left is not None
    ]
    unanswered = no_partitions(detection)
    for problem in detection.problems:
        if problem is unanswered:  # the field's finding
            continue
        lines.append(line((f"! {clean(problem.what)}", "$text-warning")))
        if problem.fix:
            lines.append(line(f"  {clean(problem.fix)}"))
    return wrap_hanging(lines, width)


def recipe_facts(state: WizardState, status: DraftStatus) -> Lines:
    """Return the models, the recipe and the checkout."""
    source = f" ({status.recipe_source})" if status.recipe_source else ""
    recipe = [fact("recipe", f"{clean(str(status.path))}{source}")] if status.path is not None else []
    if kind_of(state) == "rehearsal":
        return [*recipe, fact("rehearsal", "stand-in models on a real Ray cluster; separate directories")]
    lines = [*_model_facts("student", status.student), *_model_facts("teacher", status.teacher)]
    if kind_of(state) == "smoke":
        lines.append(fact("smoke", "5 steps, no wandb; separate checkpoint and log directories"))
    return [*lines, *_vocabulary(status), *recipe, *_checkout_facts(status)]


def _model_facts(side: str, model: ModelFacts | UnknownModel | None) -> Lines:
    if isinstance(model, ModelFacts):
        table = " (built-in table)" if model.source == "table" else ""
        return [fact(side, f"{describe_model(model)}{table}")]
    if isinstance(model, UnknownModel):
        return [fact(side, f"? {clean(model.reason)}", "$text-warning"), fact("", clean(model.fix), "dim")]
    return []


def _checkout_facts(status: DraftStatus) -> Lines:
    checkout = status.checkout
    if checkout is None:
        return [fact("NeMo-RL", f"✗ {status.checkout_error}", "$text-error")] if status.checkout_error else []
    features = ", ".join(sorted(checkout.features)) or "none known"
    return [fact("NeMo-RL", f"{checkout.version or 'unknown version'}; features: {features}")]


def _vocabulary(status: DraftStatus) -> Lines:
    """Compare the vocabularies: a mismatch is the most expensive failure to find late."""
    for result in status.report.of("C64") if status.report is not None else ():
        if result.outcome == "pass":
            return [fact("vocabulary", "✓ the same", "$text-success")]
        glyph, style = OUTCOMES[result.outcome]
        return [fact("vocabulary", f"{glyph} {clean(result.message)}", style)]
    return []


def job_facts(state: WizardState, status: DraftStatus) -> Lines:
    """Return the job's cost, and the partition's limits."""
    partition, lines = partition_of(state, status), list[Content]()
    if status.cost is not None:
        lines.append(fact("max. cost", cost_text(status.cost)))
    if partition is not None:
        max_nodes = min(partition.nodes, partition.max_nodes or partition.nodes)
        limit = format_time_limit(partition.max_time_s) if partition.max_time_s else "unknown time limit"
        lines.append(fact(clean(partition.name), f"at most {plural(max_nodes, 'node')} and {limit} per job"))
        limit_s = time_s(state, status)
        if status.gpus_per_node and limit_s is not None:
            lines.append(
                fact("each node", f"{plural(status.gpus_per_node, 'GPU')}, for {format_time_limit(limit_s)}")
            )
    return lines


def cost_text(cost: Cost, *, short: bool = False) -> str:
    """Return a cost in node-, GPU- and core-hours."""
    unit = "h" if short else "hours"
    parts = [f"{_hours(cost.node_hours)} node-{unit}", f"{_hours(cost.gpu_hours)} GPU-{unit}"]
    if cost.core_hours is not None:
        parts.append(f"{_hours(cost.core_hours)} core-{unit}")
    return ", ".join(parts)


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def size_facts(status: DraftStatus) -> Lines:
    """Return how GPUs and samples are divided."""
    lines: Lines = []
    setup = setup_of(status)
    if setup is None:
        return lines
    apart = "" if setup.colocated else f", {setup.generation_gpus} more for generation"
    lines.append(fact("GPUs", f"{setup.train_gpus} for training, scoring and generation" if setup.colocated
                      else f"{setup.train_gpus} for training and scoring{apart}"))  # fmt: skip
    lines += [
        fact(name, _copies(side)) for name, side in (("student", setup.policy), ("teacher", setup.teacher))
    ]
    samples, batch, dp = setup.samples_per_step, setup.global_batch, setup.policy.dp
    if samples and batch:
        shared = f"{samples} samples per step"
        if samples % batch == 0 and batch % dp == 0:
            updates = plural(samples // batch, "update")
            shared += f" = {updates} of {batch}; {batch // dp} per rank"
        else:
            shared += f", which do not divide into updates of {batch} over {dp} ranks"
        lines.append(fact("samples", shared))
    return lines


def _copies(side: Side) -> str:
    sizes = f"TP {side.tp} × CP {side.cp}" + (f" × PP {side.pp}" if side.pp > 1 else "")
    if not side.divides:
        return f"✗ {side.gpus} GPUs are not divisible by {sizes}"
    return f"{plural(side.dp, 'copy').replace('copys', 'copies')} of {sizes}"


def check_lines(status: DraftStatus, assessment: Assessment, step: str, width: int) -> Lines:
    """Return the memory of each phase, and all findings, those of the step first."""
    lines: Lines = []
    if status.memory is not None:
        lines += [*memory_lines(status.memory, width, status.measured), Content("")]
    own = [item for item in assessment.findings if item.step == step]
    others = [item for item in assessment.findings if item.step != step]
    titles = {item.id: item.title for item in STEPS}
    lines += [titled_finding(item) for item in own]
    lines += [titled_finding(item, titles.get(item.step, "")) for item in others]
    if not assessment.findings and status.report is not None and status.recipe is not None:
        lines.append(line(("✓ no failure predicted", "$text-success")))
    return wrap_hanging(lines, width)


def titled_finding(item: DraftFinding, step: str = "") -> Content:
    """Return a finding with its field's title where it has no check's id, and with the step it is on."""
    title = f"{field_of(item.field).title}: " if item.field and not item.check else ""
    shown = finding_line(replace(item, message=f"{title}{item.message}"))
    return Content.assemble(shown, (f"  ({step})", "dim")) if step else shown


def step_findings(assessment: Assessment, step: str, status: DraftStatus) -> Lines:
    """Return the findings of a step that no field of it has, and that its facts do not show."""
    shown = status.slurm_error.what if status.slurm_error is not None and step == "cluster" else None
    return [
        titled_finding(item)
        for item in assessment.findings
        if item.step == step and not item.field and item.message != shown
    ]


def finding_line(item: DraftFinding) -> Content:
    """Return a finding with its mark."""
    glyph, style = MARKS[item.level]
    identity = f"{item.check}{' (skipped)' if item.skipped else ''} " if item.check else ""
    return line((f"{glyph} {identity}", style), clean(item.message))


def summary(status: DraftStatus, assessment: Assessment) -> Content:
    """Return the summary line: cost, memory, and the level of the whole draft."""
    parts: list[tuple[str, str] | str] = []
    if status.cost is not None:
        parts.append(f"≤ {cost_text(status.cost, short=True)}")
    if status.memory is not None and status.memory.phases:
        most = max(status.memory.phases, key=lambda phase: phase.needed)
        fit, style = ("fits", "") if status.memory.fits else ("✗ does not fit", "$text-error")
        parts.append((f"{most.needed:.0f} of {status.memory.gpu_gib:g} GiB {fit}", style))
    if assessment.level:
        parts.append((_problems(assessment), MARKS[assessment.level][1]))
    elif status.report is not None and status.recipe is not None:
        parts.append(("✓ checks", "$text-success"))
    return Content.assemble(" ", *[piece for part in parts for piece in (part, " · ")][:-1])


def _problems(assessment: Assessment) -> str:
    """Return the worst findings of a draft: ids of checks, else titles of fields."""
    findings = [item for item in assessment.findings if item.level == assessment.level]
    names = dict.fromkeys(
        item.check or (field_of(item.field).title if item.field else "") for item in findings
    )
    named = ", ".join(name for name in names if name)
    return f"{MARKS[assessment.level][0]} {named or clean(findings[0].message)}"
