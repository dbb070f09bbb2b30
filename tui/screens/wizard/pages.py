"""What the wizard says beside its fields, in words: the facts of each step, and the line that sums up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from launcher.clusters.slurm.gres import gpu_memory_gib
from launcher.clusters.slurm.parse import slurm_time
from launcher.text import clean, clean_lines
from recipes.fields import field as field_of
from recipes.models.facts import ModelFacts, UnknownModel
from tui.formatting import bar, plural
from tui.screens.wizard.alternatives import legal_sizes, model_about, setup_of
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    WizardState,
    field_with_key,
    kind_of,
    partition_of,
    time_s,
)

if TYPE_CHECKING:
    from launcher.clusters.slurm.job_options import Cost
    from recipes.checks import Result
    from recipes.memory import Estimate, Phase
    from recipes.planning import Side

Lines = list[Content]
OUTCOMES = {"fail": ("✗", "$text-error"), "warn": ("!", "$text-warning"), "unknown": ("?", "dim")}
_BAR = 12
_NAME = 12
"""Columns of a fact's name."""
_GLYPH_AND_ID = re.compile(r" *[✗!?✓] (?:C\d+ )?")


def line(*parts: tuple[str, str] | str) -> Content:
    """Return a line of styled parts."""
    return Content.assemble(*parts)


def fact(name: str, text: str, style: str = "") -> Content:
    """Return a fact with its name before it."""
    return line((f"{name:<{_NAME}}", "dim"), (text, style))


def hang(lines: Lines, width: int) -> Lines:
    """Break long lines so that what goes on stands under what is said, not under its name."""
    return [piece for item in lines for piece in _broken(item, width)]


def _broken(item: Content, width: int) -> Lines:
    plain = item.plain
    indent = _NAME if plain[_NAME - 2 : _NAME] == "  " and plain[:_NAME].strip() else _margin(plain)
    pieces: Lines = []
    start, room = 0, max(width, 2 * _NAME)
    while cell_len(plain[start:]) > room:
        cut = plain.rfind(" ", start + 1, start + room + 1)
        # A path has no blank: it is broken where the line ends.
        cut = cut if cut > start + room // 2 else start + room
        pieces.append(item[start:cut])
        start = cut + (plain[cut : cut + 1] == " ")
        room = max(width, 2 * _NAME) - indent
    pieces.append(item[start:])
    return [pieces[0], *(Content.assemble(" " * indent, piece) for piece in pieces[1:])]


def _margin(plain: str) -> int:
    match = _GLYPH_AND_ID.match(plain)
    return len(match[0]) if match is not None else 2


def facts_of(step: str, draft: WizardState, seen: DraftStatus, focused: str) -> Lines:
    """Return what is to be said on a step."""
    if step == "cluster":
        return cluster_facts(draft, seen)
    if seen.recipe is None and not seen.recipe_error:
        return [line(("looking …", "dim"))]
    if step == "recipe":
        return recipe_facts(draft, seen)
    if step == "job":
        return [*job_facts(draft, seen), *check_lines(seen, step), *memory_lines(seen.memory)]
    return [*possible(seen, focused), *check_lines(seen, step), *size_facts(seen), *memory_lines(seen.memory)]


def cluster_facts(draft: WizardState, seen: DraftStatus) -> Lines:
    """Return what Slurm has."""
    if seen.found is None:
        if seen.no_slurm is None:
            return [line(("Asking Slurm what there is …", "dim"))]
        first, *rest = clean_lines(str(seen.no_slurm)).split("\n")
        return [line((f"✗ {first}", "$text-error")), *(line(item) for item in rest)]
    found, chosen = seen.found, partition_of(draft, seen)
    named = [found.site.name, f"Slurm {found.version}" if found.version else "", found.cluster or ""]
    lines = [fact("site", " · ".join(clean(part) for part in named if part))]
    lines.append(line((f"  {'partition':<15}{'nodes':>6}  {'each with':<17}{'at most':<12}accounts", "dim")))
    for item in found.partitions:
        memory = gpu_memory_gib(item.gpus.type or "gpu", found.site.gpu_memory_gib)
        gpus = f"{item.gpus.count} {item.gpus.type or 'GPU'}" if item.gpus.count else "no GPU"
        gpus += f" {memory:g} GiB" if memory and item.gpus.count else ""
        limit = slurm_time(item.max_time_s) if item.max_time_s else "unknown"
        usable = found.accounts_in(item)
        accounts = "unknown" if usable is None else ", ".join(usable) or "none of yours"
        state = "" if item.state == "up" else f"  {item.state}"
        text = f"{clean(item.name):<15}{item.nodes:>6}  {clean(gpus):<17}{limit:<12}{clean(accounts)}{state}"
        here = chosen is not None and item.name == chosen.name
        closed = item.state != "up" or usable == ()
        lines.append(
            line(
                ("▸ " if here else "  ", "$text-primary"), (text, "bold" if here else "dim" if closed else "")
            )
        )
    for problem in found.problems:
        lines.append(line((f"! {clean(problem.what)}", "$text-warning")))
        if problem.fix:
            lines.append(line(f"  {clean(problem.fix)}"))
    return lines


def recipe_facts(draft: WizardState, seen: DraftStatus) -> Lines:
    """Return what the recipe is, its models and its checkout."""
    lines: Lines = []
    if seen.recipe_error:
        lines.append(line((f"✗ {seen.recipe_error}", "$text-error")))
    if seen.path is not None:
        lines.append(fact("recipe", clean(str(seen.path))))
    if kind_of(draft) == "rehearsal":
        lines.append(fact("rehearsal", "stand-in models, real Ray on real nodes; its own directories"))
        return lines
    if kind_of(draft) == "smoke":
        lines.append(fact("smoke", "5 steps, no wandb, checkpoints and logs in directories of its own"))
    for name, facts in (("student", seen.student), ("teacher", seen.teacher)):
        if isinstance(facts, ModelFacts):
            table = " (built-in table)" if facts.source == "table" else ""
            lines.append(fact(name, f"{model_about(facts)}{table}"))
        elif isinstance(facts, UnknownModel):
            lines.append(fact(name, f"? {clean(facts.reason)}", "$text-warning"))
            lines.append(fact("", clean(facts.fix), "dim"))
    lines += _vocabulary(seen)
    if seen.checkout is not None:
        has = ", ".join(sorted(seen.checkout.features)) or "none that is known"
        lines.append(fact("NeMo-RL", f"{seen.checkout.version or 'unknown version'}; features: {has}"))
        if seen.checkout.python is None:
            lines.append(fact("", "! it has no .venv with a Python", "$text-warning"))
    elif seen.checkout_error:
        lines.append(fact("NeMo-RL", f"✗ {seen.checkout_error}", "$text-error"))
    return lines


def _vocabulary(seen: DraftStatus) -> Lines:
    """Say whether the two speak the same tokens: a mismatch is the most expensive thing to learn late."""
    for result in seen.report.of("C64") if seen.report is not None else ():
        if result.outcome == "pass":
            return [fact("vocabulary", "✓ the same", "$text-success")]
        glyph, style = OUTCOMES[result.outcome]
        return [fact("vocabulary", f"{glyph} {clean(result.message)}", style)]
    return []


def job_facts(draft: WizardState, seen: DraftStatus) -> Lines:
    """Return what the job costs and may have."""
    partition, lines = partition_of(draft, seen), list[Content]()
    if seen.cost is not None:
        lines.append(fact("at most", cost_text(seen.cost)))
    if partition is not None:
        most = min(partition.nodes, partition.max_nodes or partition.nodes)
        limit = slurm_time(partition.max_time_s) if partition.max_time_s else "a time that is unknown"
        lines.append(fact(clean(partition.name), f"{plural(most, 'node')} and {limit} at most for a job"))
        limit_s = time_s(draft, seen)
        if seen.gpus_per_node and limit_s is not None:
            lines.append(fact("each node", f"{plural(seen.gpus_per_node, 'GPU')}, for {slurm_time(limit_s)}"))
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


def possible(seen: DraftStatus, focused: str) -> Lines:
    """Return which values of the focused field would be legal."""
    legal = legal_sizes(focused, seen) if focused else ()
    return [fact("possible", f"{field_of(focused).title} {' '.join(map(str, legal))}")] if legal else []


def size_facts(seen: DraftStatus) -> Lines:
    """Return how GPUs and samples are shared out."""
    lines: Lines = []
    setup = setup_of(seen)
    if setup is None:
        return lines
    apart = "" if setup.colocated else f", {plural(setup.generation_gpus, 'more')} generate"
    lines.append(fact("GPUs", f"{setup.train_gpus} train, score and generate{apart}" if setup.colocated
                      else f"{setup.train_gpus} train and score{apart}"))  # fmt: skip
    lines += [
        fact(name, _copies(side)) for name, side in (("student", setup.policy), ("teacher", setup.teacher))
    ]
    samples, batch, dp = setup.samples_per_step, setup.global_batch, setup.policy.dp
    if samples and batch:
        shared = f"{samples} samples a step"
        if samples % batch == 0 and batch % dp == 0:
            updates = plural(samples // batch, "update")
            shared += f" = {updates} of {batch}; each rank takes {batch // dp}"
        else:
            shared += f", updates of {batch} over {dp} ranks: does not divide"
        lines.append(fact("samples", shared))
    return lines


def _copies(side: Side) -> str:
    sizes = f"TP {side.tp} × CP {side.cp}" + (f" × PP {side.pp}" if side.pp > 1 else "")
    if not side.divides:
        return f"✗ {side.gpus} GPUs do not divide by {sizes}"
    return f"{plural(side.dp, 'copy').replace('copys', 'copies')} of {sizes}"


def memory_lines(memory: Estimate | None) -> Lines:
    """Return the memory of each phase."""
    return [_phase(phase, memory.gpu_gib) for phase in memory.phases] if memory is not None else []


def _phase(phase: Phase, gpu_gib: float) -> Content:
    style = "$text-success" if phase.fits else "$text-error"
    verdict = "✓ fits" if phase.fits else "✗ does not fit"
    filled = bar(phase.needed / gpu_gib, _BAR)
    return line(
        (f"{phase.id:<15}", "dim"),
        (filled, f"{style} on $panel"),
        f" {phase.needed:5.1f} of {gpu_gib:g} GiB ±{phase.uncertainty:.0%} ",
        (verdict, style),
    )


def check_lines(seen: DraftStatus, step: str) -> Lines:
    """Return the checks that fail, and those that doubt a field of a step; the review has them all."""
    names = next(item.fields for item in STEPS if item.id == step)
    results = seen.report.results if seen.report is not None else ()
    results = tuple(item for item in results if item.outcome == "fail" or _field(item, seen) in names)
    lines = []
    for outcome in ("fail", "warn"):
        glyph, style = OUTCOMES[outcome]
        for result in results:
            if result.outcome == outcome:
                skipped = " (skipped)" if result.id in seen.draft.skipped and outcome == "fail" else ""
                lines.append(line((f"{glyph} {result.id}{skipped} ", style), clean(result.message)))
    return lines


def _field(result: Result, seen: DraftStatus) -> str | None:
    return field_with_key(result.where[0].key, seen) if result.where else None


def summary(draft: WizardState, seen: DraftStatus) -> Content:
    """Return the line that sums up: what it costs, whether it fits, what would fail."""
    parts: list[tuple[str, str] | str] = [" "]
    if seen.cost is not None:
        parts.append(f"≤ {cost_text(seen.cost, short=True)}")
    if seen.memory is not None and seen.memory.phases:
        worst = max(seen.memory.phases, key=lambda phase: phase.needed)
        verdict, style = ("fits", "") if seen.memory.fits else ("✗ does not fit", "$text-error")
        parts.append((f" · {worst.needed:.0f} of {seen.memory.gpu_gib:g} GiB {verdict}", style))
    failing = [item.id for item in seen.report.failing] if seen.report is not None else []
    failing = list(dict.fromkeys(item for item in failing if item not in draft.skipped))
    if failing:
        parts.append((f" · ✗ {', '.join(failing)}", "$text-error"))
    elif seen.report is not None and seen.recipe is not None:
        parts.append((" · ✓ checks", "$text-success"))
    return Content.assemble(*parts)
