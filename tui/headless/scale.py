"""`scale`: the recipe for another number of nodes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.output import duration, print_json, say

if TYPE_CHECKING:
    from pathlib import Path

    from launcher.monitor.run_metrics import RunMetrics
    from recipes.checks import Checker, Report
    from recipes.document import Document
    from recipes.memory import Estimate
    from recipes.planning.scale import Scaled


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser(
        "scale", help="change a recipe for another number of nodes", description=_scale.__doc__
    )
    command.add_argument("file", metavar="FILE", help="the recipe; edited in place")
    command.add_argument("--nodes", type=int, required=True, metavar="N")
    command.add_argument("--gpus-per-node", type=int, metavar="N", help="default: the recipe's")
    command.add_argument(
        "--prompts-per-step", type=int, metavar="N", help="default: the recipe's, where the GPUs share them"
    )
    command.add_argument(
        "--run", metavar="RUN", help="a smoke run of this recipe: its memory and its pace are told"
    )
    command.add_argument("--checkout", metavar="DIR", help="NeMo-RL; default: $NEMO_RL_ROOT")
    command.add_argument("--dry-run", action="store_true", help="print the diff and change nothing")
    command.add_argument("--json", action="store_true", help="as one JSON object")
    command.set_defaults(handler=_scale)


def _scale(options: argparse.Namespace) -> int:
    """Carry a recipe to another size: nodes, the split of generation, parallel sizes and batches that divide.

    Only what must change does. Prints the diff. Nothing is changed where the new size would fail.
    """
    import sys

    from recipes.document import Document
    from tui.headless.foresight_run import checker_for, edit_document, recipe_path
    from tui.headless.recipe_files import store

    _require_sizes(options)
    path = recipe_path(options.file)
    checker = checker_for(options.checkout, path)
    known = _measured(options.run)
    document = Document.open(path)
    before = checker.check(path, verify_fixes=False)
    scaled = _scaled(options, path, checker)
    edit_document(document, scaled.fix)
    after = checker.check(path, revision=document.revision)
    _require_no_worse(path, before, after)
    memory = tuple(_memory(checker, report) for report in (before, after))
    if options.json:
        print_json(_as_json(scaled, document, known, memory))
    else:
        sys.stdout.write(document.diff())
        _tell(scaled, known, memory, after)
    if not options.dry_run:
        store(document, dry_run=False)
    return int(Exit.OK)


def _require_sizes(options: argparse.Namespace) -> None:
    from launcher.errors import InputError

    counts = (options.nodes, options.gpus_per_node, options.prompts_per_step)
    if any(count is not None and count < 1 for count in counts):
        raise InputError("--nodes, --gpus-per-node and --prompts-per-step must be 1 or more")


def _measured(run: str | None) -> RunMetrics | None:
    if run is None:
        return None
    from launcher.monitor.run_metrics import run_metrics
    from tui.headless.runs import store

    known = store()
    return run_metrics(known.transport, known.find(run))


def _scaled(options: argparse.Namespace, path: Path, checker: Checker) -> Scaled:
    from recipes.models import ModelFacts
    from recipes.planning import Fix, RecipeEdit, Setup
    from recipes.planning.scale import scale

    recipe = checker.resolver.resolve(path, ())

    def again(edits: Any) -> Any:  # noqa: ANN401 - as `scale` wants it
        chosen: tuple[RecipeEdit, ...] = tuple(edits)
        return checker.resolver.resolve(path, Fix("", chosen).overrides())

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
        RecipeError: the recipe cannot be read.
        ExplainedError: something would fail.
    """
    from recipes.errors import ExplainedError

    known = {result.id for result in before.failing}
    new = [result for result in after.failing if result.id not in known]
    if new:
        raise ExplainedError(
            f"at this size {new[0].id} would fail: {new[0].message}",
            where=path,
            fix="Give another size, or edit the recipe by hand; nothing was changed.",
        )


def _memory(checker: Checker, report: Report) -> Estimate | None:
    from recipes.memory import estimate

    if report.recipe is None:
        return None
    return estimate(report.recipe, checker.inputs.models, checker.inputs.request.gpu_memory_gib)


def _needed(found: Estimate | None) -> dict[str, float]:
    return {} if found is None else {phase.id: round(phase.needed, 1) for phase in found.phases}


def _tell(
    scaled: Scaled, known: RunMetrics | None, memory: tuple[Estimate | None, ...], after: Report
) -> None:
    """Say what changes besides the text."""
    say(scaled.fix.title if scaled.fix.edits else "nothing has to change")
    for note in scaled.notes:
        say(f"note: {note}")
    for result in after.failing:
        say(f"fails as before: {result.id} {result.message}")
    if known is not None:
        _tell_measured(scaled, known, after)
    before, now = map(_needed, memory)
    for phase, gib in now.items():
        was = f", {before[phase]:.1f} before" if phase in before else ""
        say(f"estimated: {phase} needs {gib:.1f} GiB a GPU{was}")


def _tell_measured(scaled: Scaled, known: RunMetrics, after: Report) -> None:
    size = f"{known.run} on {known.nodes} x {known.gpus_per_node} GPUs"
    if known.peak_gib is not None:
        say(f"measured: {size}: at most {known.peak_gib:.1f} of {known.gpu_gib:.1f} GiB in use")
    else:
        say(f"measured: {size}: no record of its GPUs' memory")
    if known.step_s is None or after.recipe is None:
        say("measured: no step has ended, so the pace is not known")
        return
    from recipes.planning import Setup

    gpus = Setup.of(after.recipe).gpus
    least = known.step_s * min(known.nodes * known.gpus_per_node / gpus, 1.0)
    most = known.step_s * max(known.nodes * known.gpus_per_node / gpus, 1.0)
    steps = after.recipe.get("distillation.max_num_steps")
    say(f"measured: {known.step_s:.1f} s a step ({known.steps} steps); here {least:.1f} to {most:.1f} s")
    if isinstance(steps, int):
        say(f"          {steps} steps: {duration(steps * least)} to {duration(steps * most)}, besides set-up")


def _as_json(
    scaled: Scaled, document: Document, known: RunMetrics | None, memory: tuple[Estimate | None, ...]
) -> dict[str, object]:
    from dataclasses import asdict

    from tui.headless.foresight_run import fix_json

    before, now = map(_needed, memory)
    return {
        "schema": 1,
        **fix_json(scaled.fix),
        "notes": list(scaled.notes),
        "diff": document.diff(),
        "measured": asdict(known) if known is not None else None,
        "needed_gib": now,
        "needed_gib_before": before,
    }
