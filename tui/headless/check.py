"""`check`: what would fail at the start of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recipes.checks import Checker, Inputs, Report, Result
from recipes.errors import Exit, FilePosition
from recipes.memory import estimate
from tui.headless.inputs import inputs_of, recipe_path
from tui.headless.output import SCHEMA, print_json, say, show

if TYPE_CHECKING:
    import argparse

_MARKS = {"fail": "FAIL", "warn": "warn", "unknown": "  ? ", "pass": " ok "}


def run(options: argparse.Namespace) -> int:
    """Print the report; with `--fix`, change the recipe first."""
    path = recipe_path(options.file, options.host)
    checker = Checker(inputs_of(options, path))
    report = checker.check(path, options.override)
    if options.fix:
        from tui.headless.fixes import apply_fix

        report = apply_fix(options.fix, path, options.override, checker, report, dry_run=options.dry_run)
    summary = _memory_summary(report, checker.inputs)
    if options.json:
        print_json(SCHEMA | {"ok": report.ok, "checks": checks_json(report), "memory": summary})
    else:
        _print_report(report, everything=options.all)
        if summary and summary["does_not_fit"]:
            phases = ", ".join(map(str, summary["does_not_fit"]))
            say(f"memory: {phases} would not fit into {summary['gpu_gib']} GiB; see `memory`")
    return int(Exit.OK if report.ok else Exit.FAILED)


def checks_json(report: Report) -> list[dict[str, object]]:
    """Return the results of all checks, as `check --json` and `submit --json` print them."""
    return [_as_json(result) for result in report.results]


def _as_json(result: Result) -> dict[str, object]:
    from tui.headless.fixes import fix_json

    return {
        "id": result.id,
        "title": result.title,
        "outcome": result.outcome,
        "message": result.message,
        "foretells": result.foretells,
        "where": [{"file": where.file, "line": where.line, "key": where.key} for where in result.where],
        "fixes": [fix_json(fix) for fix in result.fixes],
    }


def _memory_summary(report: Report, inputs: Inputs) -> dict[str, Any] | None:
    """Return which phases would not fit: an estimate, which warns and does not fail."""
    if report.recipe is None:
        return None
    result = estimate(report.recipe, inputs.models, inputs.request.gpu_memory_gib, inputs.checkout_path)
    short = [phase.id for phase in result.phases if not phase.fits]
    return {"gpu_gib": result.gpu_gib, "fits": result.fits if result.phases else None, "does_not_fit": short}


def _print_report(report: Report, *, everything: bool) -> None:
    outcomes = [outcome for outcome in _MARKS if everything or outcome != "pass"]
    for outcome in outcomes:
        for result in report.results:
            if result.outcome == outcome:
                _print_result(result)
    counts = {outcome: sum(result.outcome == outcome for result in report.results) for outcome in _MARKS}
    show(
        f"{counts['fail']} would fail, {counts['warn']} warning{'s' * (counts['warn'] != 1)}, "
        f"{counts['unknown']} unknown, {counts['pass']} passed"
    )


def _print_result(result: Result) -> None:
    show(f"{_MARKS[result.outcome]} {result.id:4} {result.message or result.title}")
    for where in result.where:
        show(f"          {FilePosition(where.file, where.line)} {where.key}".rstrip())
    if result.outcome == "fail" and result.foretells:
        show(f"          would end with: {result.foretells}")
    for number, fix in enumerate(result.fixes, 1):
        show(f"          fix {result.id}:{number}  {fix.title}")
