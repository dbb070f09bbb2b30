"""Fixes of findings: as JSON, and applied to a recipe's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.document import Document
from recipes.errors import ExplainedError, RecipeError
from tui.headless.output import say
from tui.headless.recipe_files import jsonable, save_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recipes.checks import Checker, Report
    from recipes.planning import Fix


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


def edit_document(document: Document, fix: Fix) -> None:
    """Apply a fix to a recipe's text, as one step."""
    with document.group():
        for edit in fix.edits:
            if edit.remove:
                document.delete(edit.key)
            else:
                document.set(edit.key, edit.after, copy=True)  # type: ignore[arg-type] # plain values


def apply_fix(
    name: str, path: Path, overrides: Sequence[str], checker: Checker, report: Report, *, dry_run: bool
) -> Report:
    """Edit the recipe's text, verify that the finding is gone and nothing else fails, then save.

    `name` is `ID` or `ID:N`. Returns the report after the fix.

    Raises:
        RecipeError: there is no such check or fix, or the fix does not help.
        ExplainedError: the check offers no fix.
    """
    fix = _fix_named(name, report)
    document = Document.open(path)
    edit_document(document, fix)
    after = checker.check(path, overrides, revision=document.revision)
    _require_better(name.partition(":")[0].upper(), path, report, after)
    say(document.diff().removesuffix("\n"))
    if not dry_run:
        save_document(document)
    say(f"{'would apply' if dry_run else 'applied'}: {fix.title}")
    return after


def _require_better(check_id: str, path: Path, before: Report, after: Report) -> None:
    failing_before = {result.id for result in before.failing}
    new = sorted({result.id for result in after.failing} - failing_before)
    if new:
        what = f"in this file the fix would break {', '.join(new)}"
        raise RecipeError(what, where=str(path), fix="Edit the recipe by hand; nothing was changed.")
    count = sum(result.id == check_id for result in before.failing)
    left = sum(result.id == check_id for result in after.failing)
    if count and left >= count:
        what = f"{check_id} would still fail: an override, or the job's size, has the last word"
        raise RecipeError(what, where=str(path), fix="Change the override; nothing was changed.")


def _fix_named(name: str, report: Report) -> Fix:
    check_id, _, number = name.partition(":")
    results = report.of(check_id.upper())
    if not results:
        raise RecipeError(f"unknown check '{check_id}'", fix="Give an id that `check` lists, such as C34.")
    fixes = [fix for result in results for fix in result.fixes if fix.edits]
    if not fixes:
        raise ExplainedError(f"{check_id.upper()} offers no fix", fix=results[0].message or "It passes.")
    index = int(number) if number.isdecimal() else 1 if not number else 0
    if not 1 <= index <= len(fixes):
        raise RecipeError(
            f"{check_id.upper()} has no fix number {number}", fix=f"Give a number from 1 to {len(fixes)}."
        )
    return fixes[index - 1]
