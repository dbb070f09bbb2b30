"""What `check`, `memory` and `models` do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks import Checker, ClusterRequest, Inputs, Report, Result
from recipes.document import Document
from recipes.errors import Exit, ExplainedError, RecipeError
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.memory import Estimate, Option, demand_of, estimate, options
from recipes.models import Models, UnknownModel
from tui.headless.output import print_json, say
from tui.headless.recipe_files import SCHEMA, jsonable, store

if TYPE_CHECKING:
    import argparse

    from recipes.planning import Fix

_MARKS = {"fail": "FAIL", "warn": "warn", "unknown": "  ? ", "pass": " ok "}
_ORDER = ("fail", "warn", "unknown", "pass")
_INSIDE_CHECKOUT = "nemo_rl/algorithms"


class OutsideError(ExplainedError):
    """What lies outside, a network or a file system, failed."""

    exit_code = Exit.OUTSIDE


def check(options: argparse.Namespace) -> int:
    """Print the report; with `--fix`, change the recipe first."""
    path = recipe_path(options.file)
    checker = Checker(_inputs(options, path))
    report = checker.check(path, options.override)
    if options.fix:
        report = _apply_fix(options, path, checker, report)
    if options.json:
        summary = _memory_summary(report, checker.inputs)
        print_json(SCHEMA | {"ok": report.ok, "checks": checks_json(report), "memory": summary})
    else:
        _print_report(report, everything=options.all)
        summary = _memory_summary(report, checker.inputs)
        if summary and summary["does_not_fit"]:
            say(
                f"memory: {summary['does_not_fit']} would not fit into {summary['gpu_gib']} GiB; see `memory`"
            )
    return int(Exit.OK if report.ok else Exit.FAILED)


def recipe_path(file: str) -> Path:
    """Return a recipe's path; raises RecipeError where there is none."""
    path = Path(file)
    if not path.is_file():
        raise RecipeError("there is no such recipe", where=file, fix="Give the path of a YAML file.")
    return path


def _inputs(options: argparse.Namespace, path: Path) -> Inputs:
    for name in ("nodes", "gpus_per_node", "gpu_memory"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise RecipeError(
                f"--{name.replace('_', '-')} {value:g} is not positive", fix="Give a number above 0."
            )
    request = ClusterRequest(
        nodes=options.nodes,
        gpus_per_node=options.gpus_per_node,
        gpu_memory_gib=options.gpu_memory,
        time_s=_seconds(options.time),
        offline=getattr(options, "offline", False),
    )
    return Inputs.of(environment=os.environ, checkout=_checkout(options.checkout, path), request=request)


def checker_for(checkout: str | None, path: Path) -> Checker:
    """Return what checks a recipe at the size that it says itself."""
    return Checker(Inputs.of(environment=os.environ, checkout=_checkout(checkout, path)))


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    from launcher.clusters.slurm.parse import ParseError, parse_duration

    try:
        return parse_duration(text)
    except ParseError as error:
        fix = "Write it as MM, HH:MM:SS or D-HH:MM:SS."
        raise RecipeError(f"--time '{text}' is no time", fix=fix) from error


def _checkout(given: str | None, path: Path) -> Path | None:
    """Return the checkout: as given, else NEMO_RL_ROOT, else the one that holds the recipe."""
    named = given or os.environ.get("NEMO_RL_ROOT")
    if named:
        directory = Path(named).expanduser().absolute()
        if not directory.is_dir():
            raise RecipeError("there is no such checkout", where=str(directory), fix="Correct --checkout.")
        return directory
    return next((parent for parent in path.absolute().parents if (parent / _INSIDE_CHECKOUT).is_dir()), None)


def checks_json(report: Report) -> list[dict[str, object]]:
    """Return what checks say, as `check --json` and `submit --json` print it."""
    return [_as_json(result) for result in report.results]


def _as_json(result: Result) -> dict[str, object]:
    return {
        "id": result.id,
        "title": result.title,
        "outcome": result.outcome,
        "message": result.message,
        "foretells": result.foretells,
        "where": [{"file": where.file, "line": where.line, "key": where.key} for where in result.where],
        "fixes": [fix_json(fix) for fix in result.fixes],
    }


def _memory_summary(report: Report, inputs: Inputs) -> dict[str, object] | None:
    """Say which phases would not fit: an estimate, which warns and does not fail."""
    if report.recipe is None:
        return None
    found = estimate(report.recipe, inputs.models, inputs.request.gpu_memory_gib)
    short = [phase.id for phase in found.phases if not phase.fits]
    return {"gpu_gib": found.gpu_gib, "fits": found.fits if found.phases else None, "does_not_fit": short}


def fix_json(fix: Fix) -> dict[str, object]:
    """Return a fix as `check --json` prints it."""
    return {
        "title": fix.title,
        "edits": [
            {"key": edit.key, "from": jsonable(edit.before), "to": jsonable(edit.after)}
            | ({"remove": True} if edit.remove else {})
            for edit in fix.edits
        ],
    }


def _print_report(report: Report, *, everything: bool) -> None:
    for outcome in _ORDER[: None if everything else -1]:
        for result in report.results:
            if result.outcome != outcome:
                continue
            print(f"{_MARKS[outcome]} {result.id:4} {result.message or result.title}")
            for where in result.where:
                print(f"          {where.file}:{where.line} {where.key}".rstrip())
            if outcome == "fail" and result.foretells:
                print(f"          would end with: {result.foretells}")
            for number, fix in enumerate(result.fixes, 1):
                print(f"          fix {result.id}:{number}  {fix.title}")
    counts = {outcome: sum(r.outcome == outcome for r in report.results) for outcome in _ORDER}
    print(
        f"{counts['fail']} would fail, {counts['warn']} doubtful, {counts['unknown']} cannot be told, "
        f"{counts['pass']} passed"
    )


def _apply_fix(options: argparse.Namespace, path: Path, checker: Checker, report: Report) -> Report:
    """Edit the recipe's text, see that the finding is gone and nothing else fails, then save."""
    fix = _chosen(options.fix, report)
    document = Document.open(path)
    edit_document(document, fix)
    after = checker.check(path, options.override, revision=document.revision)
    results = after.results
    before = {result.id for result in report.failing}
    new = sorted({result.id for result in results if result.outcome == "fail"} - before)
    if new:
        what = f"in this file the fix would break {', '.join(new)}"
        raise RecipeError(what, where=str(path), fix="Edit the recipe by hand; nothing was changed.")
    name = options.fix.partition(":")[0].upper()
    count = sum(result.id == name for result in report.failing)
    left = sum(result.id == name and result.outcome == "fail" for result in results)
    if count and left >= count:
        what = f"{name} would still fail: an override, or the job's size, has the last word"
        raise RecipeError(what, where=str(path), fix="Change the override; nothing was changed.")
    sys.stderr.write(document.diff())
    if not options.dry_run:
        store(document, dry_run=False)
    say(f"{'would apply' if options.dry_run else 'applied'}: {fix.title}")
    return after


def _chosen(text: str, report: Report) -> Fix:
    name, _, number = text.partition(":")
    found = report.of(name.upper())
    if not found:
        raise RecipeError(f"there is no check '{name}'", fix="Give an id that `check` lists, such as C34.")
    fixes = [fix for result in found for fix in result.fixes if fix.edits]
    if not fixes:
        raise ExplainedError(f"{name.upper()} offers no fix", fix=found[0].message or "It passes.")
    index = int(number) if number.isdigit() else 1 if not number else 0
    if not 1 <= index <= len(fixes):
        raise RecipeError(f"{name.upper()} offers {len(fixes)} fixes, not number {number}")
    return fixes[index - 1]


def edit_document(document: Document, fix: Fix) -> None:
    """Apply a fix to a recipe's text, as one step."""
    with document.group():
        for edit in fix.edits:
            if edit.remove:
                document.delete(edit.key)
            else:
                document.set(edit.key, edit.after, copy=True)  # type: ignore[arg-type] # plain values


def memory(options_: argparse.Namespace) -> int:
    """Print the memory of every phase, and what would fit."""
    path = recipe_path(options_.file)
    inputs = _inputs(options_, path)
    recipe = Resolver().resolve(path, [*options_.override, *inputs.request.overrides()])
    found = estimate(recipe, inputs.models, inputs.request.gpu_memory_gib)
    would = () if options_.no_search else _would_fit(recipe, inputs.models, found)
    if options_.json:
        print_json(memory_json(found, would))
    else:
        _print_memory(found, would)
    return int(Exit.OK if found.phases and found.fits else Exit.FAILED)


def _would_fit(recipe: EffectiveRecipe, models: Models, found: Estimate) -> tuple[Option, ...]:
    return () if found.fits else options(demand_of(recipe, models), found.gpu_gib)


def memory_json(found: Estimate, would: tuple[Option, ...] = ()) -> dict[str, object]:
    """Return an estimate as `memory --json` prints it."""
    return SCHEMA | {
        "gpu_gib": found.gpu_gib,
        "phases": [
            {
                "id": phase.id,
                "peak_allocated_gib": round(phase.allocated, 3),
                "needed_gib": round(phase.needed, 3),
                "fits": phase.fits,
                "uncertainty": phase.uncertainty,
                "moment": phase.moment,
                "terms": [{"name": term.name, "gib": round(term.gib, 3)} for term in phase.terms],
            }
            for phase in found.phases
        ],
        "host_gib_per_node": None if found.host_gib_per_node is None else round(found.host_gib_per_node, 1),
        "would_fit": [
            {"side": o.side, "nodes": o.nodes, "needed_gib": round(o.needed, 3), **fix_json(o.fix)}
            for o in would
        ],
        "notes": list(found.notes),
    }


def _print_memory(found: Estimate, would: tuple[Option, ...]) -> None:
    for phase in found.phases:
        verdict = "fits" if phase.fits else "DOES NOT FIT"
        needs = f"needs {phase.needed:6.1f} of {found.gpu_gib:g} GiB ±{phase.uncertainty:.0%}"
        print(f"{phase.id:14} {needs}  {verdict}")
        print(f"               peak of tensors {phase.allocated:.1f} GiB, when {phase.moment}")
        for term in phase.terms:
            if term.gib >= 0.05:
                print(f"               {term.gib:7.2f}  {term.name}")
    if found.host_gib_per_node is not None:
        print(f"host memory    about {found.host_gib_per_node:.0f} GiB per node, besides Ray's object store")
    for option in would:
        print(f"would fit      {option.fix.title}  ({option.needed:.1f} GiB)")
    for note in found.notes:
        print(f"note           {note}")


def models(options_: argparse.Namespace) -> int:
    """Print what is known of a model."""
    known = Models.of()
    if options_.download:
        from recipes.models.download import download

        fetched = download(known.hub, options_.id, os.environ)
        if isinstance(fetched, UnknownModel):
            raise OutsideError(f"cannot tell: {fetched.reason}", fix=fetched.fix)
    facts = known.find(options_.id)
    if isinstance(facts, UnknownModel):
        raise ExplainedError(f"cannot tell: {facts.reason}", fix=facts.fix)
    values: dict[str, object] = {
        "id": facts.id,
        "source": facts.source,
        "layers": facts.layers,
        "hidden": facts.hidden,
        "heads": facts.heads,
        "kv_heads": facts.kv_heads,
        "head_dim": facts.head_dim,
        "ffn": facts.ffn,
        "vocab": facts.vocab,
        "tied": facts.tied,
        "params": facts.params,
        "context": facts.context,
        "path": facts.path or None,
    }
    if options_.json:
        print_json(SCHEMA | values)
        return 0
    for name, value in values.items():
        print(f"{name:10} {'unknown' if value is None else value}")
    if facts.source == "table":
        say("from the built-in table, not from the model's own config.json")
    return 0
