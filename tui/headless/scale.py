"""`scale`: the recipe for another number of nodes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from launcher.durations import in_words
from recipes.document import Document
from recipes.errors import Exit, ExplainedError
from recipes.memory import Estimate, estimate
from recipes.models import ModelFacts
from recipes.planning import RecipeEdit, Setup, overrides_of
from recipes.planning.scale import Scaled, scale
from tui.headless.fixes import edit_document, fix_json
from tui.headless.inputs import checker_for, recipe_path
from tui.headless.output import SCHEMA, print_json, say, write_document
from tui.headless.recipe_files import save_document

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from launcher.monitor.run_metrics import RunMetrics
    from launcher.overview.measured_memory import MeasuredEstimate
    from recipes.checks import Checker, Report


def run(options: argparse.Namespace) -> int:
    """Change what must change for another size, and print the diff."""
    path = recipe_path(options.file, options.host)
    checker = checker_for(options.checkout, path)
    metrics = _measured(options.run, options.host)
    document = Document.open(path)
    before = checker.check(path, verify_fixes=False)
    scaled = _scaled(options, path, checker)
    edit_document(document, scaled.fix)
    after = checker.check(path, revision=document.revision)
    _require_no_worse(path, before, after)
    memory = tuple(_memory(checker, report) for report in (before, after))
    beside = _beside_estimate(metrics, before, memory[0]) or _of_earlier_run(metrics, path, before)
    if options.json:
        print_json(_as_json(scaled, document, metrics, memory, beside))
    else:
        write_document(document.diff())
        _describe(scaled, metrics, memory, after)
        _describe_beside(beside, memory[1])
    if not options.dry_run:
        save_document(document)
    return int(Exit.OK)


def _measured(run: str | None, host: str | None) -> RunMetrics | None:
    if run is None:
        return None
    from launcher.monitor.run_metrics import run_metrics
    from tui.headless.stores import run_store

    store = run_store(host)
    return run_metrics(store.transport, store.find(run))


def _scaled(options: argparse.Namespace, path: Path, checker: Checker) -> Scaled:
    recipe = checker.resolver.resolve(path, ())

    def again(edits: Any) -> Any:  # noqa: ANN401 - as `scale` declares it
        chosen: tuple[RecipeEdit, ...] = tuple(edits)
        return checker.resolver.resolve(path, overrides_of(chosen))

    facts = [checker.inputs.models.find(side.model) for side in Setup.of(recipe).sides]
    student, teacher = (item if isinstance(item, ModelFacts) else None for item in facts)
    return scale(
        recipe,
        options.nodes,
        options.gpus_per_node,
        again=again,
        student=student,
        teacher=teacher,
        prompts=options.prompts_per_step,
    )


def _require_no_worse(path: Path, before: Report, after: Report) -> None:
    """Refuse a size at which something fails that did not fail before.

    Raises:
        ExplainedError: something would fail.
    """
    failing_before = {result.id for result in before.failing}
    new = [result for result in after.failing if result.id not in failing_before]
    if new:
        raise ExplainedError(
            f"at this size {new[0].id} would fail: {new[0].message}",
            where=path,
            fix="Give another size, or edit the recipe by hand; nothing was changed.",
        )


def _memory(checker: Checker, report: Report) -> Estimate | None:
    if report.recipe is None:
        return None
    inputs = checker.inputs
    return estimate(report.recipe, inputs.models, inputs.request.gpu_memory_gib, inputs.checkout_path)


def _beside_estimate(
    metrics: RunMetrics | None, before: Report, estimated: Estimate | None
) -> MeasuredEstimate | None:
    """Return the measured peak beside the estimate; None unless the run had the recipe's present size."""
    if metrics is None or metrics.peak_gib is None or before.recipe is None or estimated is None:
        return None
    if Setup.of(before.recipe).gpus != metrics.nodes * metrics.gpus_per_node:
        return None
    from launcher.overview.measured_memory import MeasuredEstimate

    return MeasuredEstimate(max(phase.needed for phase in estimated.phases), metrics.peak_gib, metrics.run)


def _of_earlier_run(metrics: RunMetrics | None, path: Path, before: Report) -> MeasuredEstimate | None:
    """Return the measurement of the latest run of this recipe; None where a run was named."""
    if metrics is not None or before.recipe is None:
        return None
    from launcher.overview.measured_memory import measured_here

    return measured_here(before.recipe, path)


def _describe_beside(beside: MeasuredEstimate | None, now: Estimate | None) -> None:
    if beside is None or now is None:
        return
    needed = max(phase.needed for phase in now.phases)
    say(
        f"measured: {beside.run}: {beside.in_words()}; by that, this size needs"
        f" {beside.corrected_gib(needed):.1f} GiB per GPU"
    )


def _needed_gib(result: Estimate | None) -> dict[str, float]:
    return {} if result is None else {phase.id: round(phase.needed, 1) for phase in result.phases}


def _describe(
    scaled: Scaled, metrics: RunMetrics | None, memory: tuple[Estimate | None, ...], after: Report
) -> None:
    """Print what the new size means: notes, memory, and the step time if it was measured."""
    say(scaled.fix.title if scaled.fix.edits else "nothing needs to change")
    for note in scaled.notes:
        say(f"note: {note}")
    for result in after.failing:
        say(f"fails as before: {result.id} {result.message}")
    if metrics is not None:
        _describe_measured(metrics, after)
    before, now = map(_needed_gib, memory)
    for phase, gib in now.items():
        was = f", {before[phase]:.1f} before" if phase in before else ""
        say(f"estimated: {phase} needs {gib:.1f} GiB per GPU{was}")


def _describe_measured(metrics: RunMetrics, after: Report) -> None:
    size = f"{metrics.run} on {metrics.nodes} x {metrics.gpus_per_node} GPUs"
    if metrics.peak_gib is not None:
        say(f"measured: {size}: at most {metrics.peak_gib:.1f} of {metrics.gpu_gib:.1f} GiB in use")
    else:
        say(f"measured: {size}: GPU memory was not recorded")
    if metrics.step_s is None or after.recipe is None:
        say("measured: no step was completed, so the step time is unknown")
        return
    gpus = Setup.of(after.recipe).gpus
    least = metrics.step_s * min(metrics.nodes * metrics.gpus_per_node / gpus, 1.0)
    most = metrics.step_s * max(metrics.nodes * metrics.gpus_per_node / gpus, 1.0)
    steps = after.recipe.get("distillation.max_num_steps")
    measured = f"{metrics.step_s:.1f} s per step ({metrics.steps} steps)"
    say(f"measured: {measured}; at this size {least:.1f} to {most:.1f} s")
    if isinstance(steps, int):
        say(f"          {steps} steps: {in_words(steps * least)} to {in_words(steps * most)}, plus start-up")


def _as_json(
    scaled: Scaled,
    document: Document,
    metrics: RunMetrics | None,
    memory: tuple[Estimate | None, ...],
    beside: MeasuredEstimate | None,
) -> dict[str, object]:
    before, now = map(_needed_gib, memory)
    corrected = beside.corrected_gib(max(now.values())) if beside is not None and now else None
    return SCHEMA | {
        **fix_json(scaled.fix),
        "notes": list(scaled.notes),
        "diff": document.diff(),
        "measured": asdict(metrics) if metrics is not None else None,
        "needed_gib": now,
        "needed_gib_before": before,
        "measured_beside_estimate": asdict(beside) if beside is not None else None,
        "corrected_peak_gib": round(corrected, 1) if corrected is not None else None,
    }
