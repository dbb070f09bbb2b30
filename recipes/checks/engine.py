"""Applying all rules to a recipe, and trying every fix before it is offered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks import (
    backend_rules,
    batch_rules,
    checkpoint_rules,
    driver_rules,
    expert_rules,
    generation_rules,
    loader_rules,
    megatron_option_rules,
    megatron_rules,
    memory_rules,
    model_rules,
    number_rules,
    optimizer_rules,
    parallel_rules,
    read_rules,
    schema_rules,
    settings_rules,
    vllm_rules,
)
from recipes.checks.core import Context, Finding, Inputs, RecipeLine, Result, Rule
from recipes.errors import RecipeError
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.secrets import masked

if TYPE_CHECKING:
    from recipes.planning import Fix
    from recipes.revision import Revision

_READS = "C5"
_STAND_IN = "rehearsal/"
"""How the names of a rehearsal's models begin."""
_OFFERED = 3
_TRIED = 8
"""Fixes that are offered and tried, at most, per finding."""


def _nothing(context: Context) -> tuple[Finding, ...]:  # the recipe has been read: nothing to report
    return ()


ENTRY_RULES = (
    Rule(
        "C1",
        "The recipe and its parents load",
        _nothing,
        "FileNotFoundError, or a YAML error",
        "utils/config.py",
    ),
    Rule(
        "C2",
        "Interpolations resolve",
        _nothing,
        "InterpolationKeyError: Interpolation key not found",
        "run_distillation.py",
    ),
    Rule("C3", "Overrides apply", _nothing, "Failed to parse Hydra overrides", "utils/config.py"),
)
"""Rules that are decided before there is an effective recipe, by the resolver itself."""

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *ENTRY_RULES,
            *schema_rules.RULES,
            *read_rules.RULES,
            *settings_rules.RULES,
            *checkpoint_rules.RULES,
            *batch_rules.RULES,
            *parallel_rules.RULES,
            *backend_rules.RULES,
            *generation_rules.RULES,
            *model_rules.RULES,
            *driver_rules.RULES,
            *vllm_rules.RULES,
            *megatron_rules.RULES,
            *megatron_option_rules.RULES,
            *memory_rules.RULES,
            *loader_rules.RULES,
            *number_rules.RULES,
            *expert_rules.RULES,
            *optimizer_rules.RULES,
        ),
        key=lambda rule: int(rule.id[1:]),
    )
)
"""All rules, by number."""


@dataclass(frozen=True)
class Report:
    """The results of all rules for a recipe; `recipe` is None where it could not be read."""

    results: tuple[Result, ...]
    recipe: EffectiveRecipe | None = None

    @property
    def ok(self) -> bool:
        """Return whether no failure is predicted."""
        return not self.failing

    @property
    def failing(self) -> tuple[Result, ...]:
        """The findings that predict a failure."""
        return tuple(result for result in self.results if result.outcome == "fail")

    def blocking(self, skipped: Collection[str] = ()) -> tuple[Result, ...]:
        """Return the findings that block a submission, without skipped ones.

        Skipped are rules by id (`C66`), or a rule's finding on one key (`C66:policy.model_name`).
        """
        return tuple(result for result in self.failing if not is_skipped(result, skipped))

    def of(self, id_: str) -> tuple[Result, ...]:
        """Return the results of one rule."""
        return tuple(result for result in self.results if result.id == id_)


def is_skipped(result: Result, skipped: Collection[str]) -> bool:
    """Return whether a finding is skipped: by its rule's id, or with the key that it is about."""
    return result.id in skipped or any(f"{result.id}:{line.key}" in skipped for line in result.where[:1])


def skip_id(result: Result) -> str:
    """Return what skips a single finding: its rule's id, with the key that it is about where it has one."""
    return f"{result.id}:{result.where[0].key}" if result.where else result.id


class Checker:
    """Checker of recipes that keeps parsed parents between calls."""

    def __init__(self, inputs: Inputs, resolver: Resolver | None = None) -> None:
        self.inputs = inputs
        self.resolver = resolver or Resolver()

    def check(
        self,
        path: Path,
        overrides: Sequence[str] = (),
        *,
        revision: Revision | None = None,
        recipe: EffectiveRecipe | None = None,
        verify_fixes: bool = True,
    ) -> Report:
        """Check a recipe with overrides; what cannot be read is a failing C1, C2 or C3.

        `revision` is the text where it is not the file's, `recipe` the same recipe where it has been resolved
        with these overrides already. Fixes that are not verified are only proposals.
        """
        all_overrides = [*overrides, *self.inputs.request.overrides()]
        try:
            recipe = recipe or self._resolve(path, all_overrides, revision)
        except RecipeError as error:
            return self._unread(path, overrides, revision, error)
        results = apply(recipe, self.inputs)
        if verify_fixes:
            results = [self._verified(path, all_overrides, revision, results, result) for result in results]
        return Report(tuple(results), recipe)

    def _resolve(self, path: Path, overrides: Sequence[str], revision: Revision | None) -> EffectiveRecipe:
        if revision is None:
            return self.resolver.resolve(path, overrides)
        return self.resolver.resolve(path, overrides, tree=revision.tree, composed=revision.composed)

    def _verified(
        self,
        path: Path,
        overrides: Sequence[str],
        revision: Revision | None,
        results: list[Result],
        result: Result,
    ) -> Result:
        """Keep the fixes after which the finding is gone and nothing fails that did not before."""
        if not any(fix.edits for fix in result.fixes):
            return result
        before = {(other.id, _subject(other)) for other in results if other.outcome == "fail"}
        verified_subject = (result.id, _subject(result))
        verified: list[Fix] = []
        for fix in _distinct(result.fixes)[:_TRIED]:
            try:
                fixed = self._resolve(path, [*overrides, *fix.overrides()], revision)
            except RecipeError:
                continue
            after = apply(fixed, self.inputs)
            failing = {(other.id, _subject(other)) for other in after if other.outcome == "fail"}
            gone = all(
                (other.id, _subject(other)) != verified_subject
                for other in after
                if other.outcome == result.outcome
            )
            if gone and failing <= before:
                verified.append(fix)
                if len(verified) == _OFFERED:
                    break
        return replace(result, fixes=tuple(verified))

    def _unread(
        self, path: Path, overrides: Sequence[str], revision: Revision | None, error: RecipeError
    ) -> Report:
        """Return the entry rule that a recipe breaks: the overrides', the interpolations' or the files'."""
        try:
            self._resolve(path, (), revision)
        except RecipeError as alone:
            return entry_report(error, alone)
        return entry_report(error, None if overrides else error)


def entry_report(error: RecipeError, alone: RecipeError | None) -> Report:
    """Return the report of a recipe that cannot be resolved.

    `alone` is the error without the overrides; None where the recipe resolves without them.
    """
    rule = ENTRY_RULES[2]
    if alone is not None:
        of_interpolation = "nterpolation" in alone.what or "${" in alone.what
        rule = ENTRY_RULES[1] if of_interpolation else ENTRY_RULES[0]
    position = error.where
    where = (
        (RecipeLine(str(getattr(position, "file", position)), getattr(position, "line", 0), ""),)
        if position
        else ()
    )
    message = masked(f"{error.what}. {error.fix}".strip() if error.fix else error.what)
    predicted = f"{rule.foretells} ({rule.source_file})"
    return Report((Result(rule.id, rule.title, "fail", message, predicted, where),))


_OF_ANY_DRIVER = frozenset(("C5", "C18", "C19", "C62", "C63", "C70"))
"""Rules that hold for distillation of another kind, too."""

_OF_TWO_POOLS = frozenset(
    ("C23", "C26", "C34", "C35", "C38", "C59", "C60", "C61", "C63", "C81", "C82", "C83", "C84", "C91")
)
"""Rules that count GPUs as NeMo-RL's releases share them out, with none for the teacher alone."""


def apply(recipe: EffectiveRecipe, inputs: Inputs) -> list[Result]:
    """Apply all rules to an effective recipe; the quick way while somebody types."""
    context = Context(recipe, inputs)
    if context.driver.kind == "other":
        return driver_rules.DRIVER.results(context)
    if str(recipe.get("policy.model_name")).startswith(_STAND_IN):
        message = "unknown: a rehearsal with stand-in models, which NeMo-RL does not run"
        return [Result("C4", "A recipe for NeMo-RL", "unknown", message)]
    if not context.driver.is_on_policy:
        return [result for rule in RULES if rule.id in _OF_ANY_DRIVER for result in rule.results(context)]
    left_out = _OF_TWO_POOLS if driver_rules.has_three_pools(context) else frozenset()
    numbers = {rule.id: rule.results(context) for rule in number_rules.RULES}
    if any(results[0].outcome == "fail" for results in numbers.values()):
        left_out |= number_rules.OF_SIZES
    rules = [rule for rule in RULES if rule.id not in left_out]
    return _once([result for rule in rules for result in numbers.get(rule.id) or rule.results(context)])


def _once(results: list[Result]) -> list[Result]:
    """Leave out missing keys that a rule of their own reports, with a better message.

    The classes (C4) may refuse the same key earlier: both are true, and only C5 names the line that reads it.
    """
    of_keys = (_READS, "C4")
    reported = {
        _subject(result) for result in results if result.outcome == "fail" and result.id not in of_keys
    }
    remaining = [
        result for result in results if result.id != _READS or _subject(result) not in reported - {""}
    ]
    if any(result.id == _READS for result in remaining):
        return remaining
    title = next(rule.title for rule in RULES if rule.id == _READS)
    at = next((number for number, result in enumerate(remaining) if result.id == "C6"), len(remaining))
    return [*remaining[:at], Result(_READS, title, "pass", ""), *remaining[at:]]


def _subject(result: Result) -> str:
    return result.where[0].key if result.where else ""


def _distinct(fixes: Sequence[Fix]) -> list[Fix]:
    return list({fix.overrides(): fix for fix in fixes if fix.edits}.values())
