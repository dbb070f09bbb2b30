"""`memory`: the memory of every phase, and what would fit."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from recipes.errors import Exit
from recipes.inheritance import Resolver
from recipes.memory import Estimate, MemoryTerm, Moment, Option, Phase, estimate
from tui.headless.fixes import fix_json
from tui.headless.inputs import inputs_of, recipe_path
from tui.headless.output import SCHEMA, print_json, show

if TYPE_CHECKING:
    import argparse

    from launcher.overview.measured_memory import MeasuredEstimate


def run(arguments: argparse.Namespace) -> int:
    """Print the memory of every phase, and what would fit."""
    path = recipe_path(arguments.file)
    inputs = inputs_of(arguments, path)
    recipe = Resolver().resolve(path, [*arguments.override, *inputs.request.overrides()])
    result = estimate(recipe, inputs.models, inputs.request.gpu_memory_gib, inputs.checkout_path)
    from launcher.overview.measured_memory import measured_here

    measured = measured_here(recipe, path)
    room = measured.room_gib(result.gpu_gib) if measured is not None else result.gpu_gib
    fits = all(phase.fits and phase.needed <= room for phase in result.phases)
    fitting: tuple[Option, ...] = ()
    if not (arguments.no_search or fits):
        from recipes.checks import Checker
        from recipes.checks.fitting import fitting_options

        fitting = fitting_options(Checker(inputs), path, arguments.override, gpu_gib=room)
    if arguments.json:
        print_json(memory_json(result, fitting, measured))
    else:
        _print_memory(result, fitting, measured)
    return int(Exit.OK if result.phases and fits else Exit.FAILED)


def memory_json(
    result: Estimate, fitting: tuple[Option, ...] = (), measured: MeasuredEstimate | None = None
) -> dict[str, object]:
    """Return an estimate as `memory --json` prints it; `measured` is that of an earlier run."""
    host = result.host_gib_per_node
    return SCHEMA | {
        "gpu_gib": result.gpu_gib,
        "phases": [_phase_json(phase) for phase in result.phases],
        "host_gib_per_node": None if host is None else round(host, 1),
        "would_fit": [
            {"side": o.side, "nodes": o.nodes, "needed_gib": round(o.needed, 3), **fix_json(o.fix)}
            for o in fitting
        ],
        "measured_beside_estimate": None if measured is None else asdict(measured),
        "notes": [*result.notes, *result.basis],
    }


def _phase_json(phase: Phase) -> dict[str, object]:
    monitor = phase.reserved
    return {
        "id": phase.id,
        "peak_allocated_gib": round(phase.allocated, 3),
        "needed_gib": round(phase.needed, 3),
        "fits": phase.fits,
        "uncertainty": phase.uncertainty,
        "moment": phase.moment,
        "terms": _terms_json(phase.terms),
        "reserved_gib": None if monitor is None else round(monitor, 1),
        "moments": [_moment_json(moment) for moment in phase.moments],
    }


def _moment_json(moment: Moment) -> dict[str, object]:
    terms = _terms_json(moment.terms)
    return {"id": moment.id, "title": moment.title, "gib": round(moment.gib, 3), "terms": terms}


def _terms_json(terms: tuple[MemoryTerm, ...]) -> list[dict[str, object]]:
    return [{"name": term.name, "gib": round(term.gib, 3), "formula": term.formula} for term in terms]


def _print_memory(result: Estimate, fitting: tuple[Option, ...], measured: MeasuredEstimate | None) -> None:
    for phase in result.phases:
        needs = f"needs {phase.needed:6.1f} of {result.gpu_gib:g} GiB ±{phase.uncertainty:.0%}"
        show(f"{phase.id:14} {needs}  {'fits' if phase.fits else 'DOES NOT FIT'}")
        show(f"               peak of tensors {phase.allocated:.1f} GiB, when {phase.moment}")
        for term in phase.terms:
            if term.gib >= 0.05:
                formula = f"  = {term.formula}" if term.formula else ""
                show(f"               {term.gib:7.2f}  {term.name}{formula}")
        if phase.reserved is not None:
            show(f"               a monitor may show {phase.reserved:.0f} GiB of torch's memory")
    if result.host_gib_per_node is not None:
        show(f"host memory    about {result.host_gib_per_node:.0f} GiB per node, besides Ray's object store")
    if measured is not None:
        needed = measured.corrected_gib(max((phase.needed for phase in result.phases), default=0.0))
        verdict = "" if needed <= result.gpu_gib else ": DOES NOT FIT"
        show(f"measured       {measured.run}: {measured.in_words()}")
        show(f"               by that, this recipe needs {needed:.1f} of {result.gpu_gib:g} GiB{verdict}")
    for option in fitting:
        show(f"would fit      {option.fix.title}  ({option.needed:.1f} GiB)")
    for note in (*result.notes, *result.basis):
        show(f"note           {note}")
