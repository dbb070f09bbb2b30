"""The rule on keys and types: C4. It predicts failures in the driver's first seconds."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.keys import format_key
from recipes.planning import Fix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.schema.checkout_schema import Judgement, Schema
    from recipes.schema.explain import SchemaProblem

_POLICY = "models/policy/__init__.py"
_SIDES = ("policy", "teacher")


def _types(context: Context) -> Iterator[Finding]:
    """C4: what the configuration classes refuse, as the driver that the recipe is for applies them."""
    schema = context.schema
    if schema is None:
        yield undecided("which types its keys have", "Give a --checkout that has the recipe's driver.")
        return
    judgements = list(schema.judge(context.recipe.values))
    keys = {format_key(judgement.problem.path) for judgement in judgements}
    for judgement in judgements:
        if len(keys) == 1 or not _follows(context, format_key(judgement.problem.path), keys):
            yield _finding(context, schema, judgement)
    if schema.compiled.unknown:
        what = "; ".join(schema.compiled.unknown)
        yield undecided("all that the checkout's configuration classes refuse", f"Not evaluated: {what}.")


def _follows(context: Context, key: str, keys: set[str]) -> bool:
    """Return whether a value is what an interpolation makes of another one that is refused as well."""
    from recipes.origins import chain_of

    origin = context.recipe.origin(key)
    if origin is None or origin.how != "interpolation":
        return False
    return any(link.key in keys for link in chain_of(context.recipe, key)[1:])


def _finding(context: Context, schema: Schema, judgement: Judgement) -> Finding:
    problem = judgement.problem
    key = format_key(problem.path)
    message = _message(context, schema, problem, key)
    if judgement.late is not None:
        message += f" (checked later, at {judgement.late.where})"
    if schema.shipped:
        message += f" (by the classes of NeMo-RL {schema.shipped}, for want of a checkout's)"
    if not schema.compiled.validates:
        return warn(f"{message}; this NeMo-RL does not check it, and uses it as it is", key)
    foretold = f"validation error for {judgement.title}: {key}: {problem.message}"
    if not judgement.certain:
        return warn(message, key, foretells=foretold)
    return fail(message, key, fixes=_fixes(context, problem, key), foretells=foretold)


def _message(context: Context, schema: Schema, problem: SchemaProblem, key: str) -> str:
    if problem.kind == "missing":
        if len(problem.path) == 1:
            return f"the section {key} is missing"
        meant = _misspelt(schema, problem)
        return f"{key} is missing" + (f"; there is {meant} instead, which is unknown" if meant else "")
    if not key:
        return f"the recipe must be {problem.expected}"
    if problem.kind == "extra":
        return f"{key} is not accepted there"
    if isinstance(problem.value, (dict, list)):
        form = "a section" if isinstance(problem.value, dict) else "a list"
        return f"{key} is {form}, it must be {problem.expected}"
    return f"{key} is {shown(problem.value)}, it must be {problem.expected}"


def _misspelt(schema: Schema, problem: SchemaProblem) -> str:
    """Return a key of the section that is unknown and spelled like the one that is missing."""
    from recipes.schema.key_info import keys_below

    *above, name = problem.path
    if not isinstance(problem.value, dict):
        return ""
    names = set(keys_below(schema.description, ".".join(map(str, above))))
    others = [str(other) for other in problem.value if other not in names]
    near = get_close_matches(str(name)[:80], others, n=1, cutoff=0.75)
    return format_key((*above, near[0])) if near else ""


def _fixes(context: Context, problem: SchemaProblem, key: str) -> list[Fix]:
    """Offer for a missing key what stands beside it: the value for training, or that of the other side.

    For a wrong value, the same as text where text is asked for, and what the stock recipe has.
    """
    if problem.kind == "extra":
        return []
    if problem.kind != "missing":
        return _other_values(context, problem, key)
    twin = key.replace(".val_", ".")
    if twin == key and problem.path[0] in _SIDES:
        other = _SIDES[1 - _SIDES.index(str(problem.path[0]))]
        twin = format_key((other, *problem.path[1:]))
    value = context.get(twin) if twin != key else None
    return [context.fix(key, value)] if isinstance(value, (bool, int, float, str)) else []


def _other_values(context: Context, problem: SchemaProblem, key: str) -> list[Fix]:
    value, fixes = problem.value, []
    if problem.expected == "a text" and isinstance(value, bool | int | float):
        text = shown(value)
        fixes.append(Fix(f"{key}: {text} -> '{text}'", (context.edit(key, text),)))
    stock = context.checkout.base_recipe if context.checkout is not None else None
    if stock is not None and stock.has(key) and isinstance(stock.get(key), bool | int | float | str | None):
        fixes.append(context.fix(key, stock.get(key)))
    return fixes


RULES = (Rule("C4", "Required keys and their types", _types, "validation error for MasterConfig", _POLICY),)
