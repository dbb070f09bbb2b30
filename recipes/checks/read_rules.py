"""The rule on keys that NeMo-RL reads without a default: C5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, undecided, warn
from recipes.checks.data import datasets
from recipes.drivers import SCRIPTS
from recipes.reads import Found, find_reads, missing_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Fix

_DEFAULTS: dict[str, object] = {
    "checkpointing.checkpoint_must_save_by": None,
    "checkpointing.keep_top_k": 3,
    "checkpointing.save_optimizer": True,
    "logger.gpu_monitoring.collection_interval": 10,
    "logger.gpu_monitoring.flush_interval": 10,
}
"""Values for keys of the base recipe where there is no checkout to take them from."""


def reads(context: Context) -> Found | None:
    """Return the reads of the recipe's driver; None where there is no such driver."""
    checkout, driver = context.checkout, context.driver
    if checkout is not None and checkout.has_sources:
        return checkout.reads(driver.script) if driver.script is not None else None
    scripts = SCRIPTS.get(driver.kind, ())
    return find_reads(None, scripts[0]) if scripts else None


def _missing(context: Context) -> Iterator[Finding]:
    """C5."""
    found = reads(context)
    if found is None:
        if context.driver.script is not None:
            yield undecided(
                f"which keys {context.driver.script} reads", "The script has no function main.", "policy"
            )
        return
    own = context.checkout is not None and context.checkout.has_sources
    release = "" if own else f", in NeMo-RL {found.release}"
    environments = {entry.env for entry in datasets(context.recipe) if entry.env}
    for missing in missing_keys(found.reads, context.recipe.values, environments):
        make = fail if missing.certain else warn
        reading = "reads" if missing.certain else "may read"
        yield make(
            f"{missing.key} is missing; {missing.file}:{missing.line} {reading} it "
            f"without a default{release}",
            missing.key,
            fixes=_fixes(context, missing.key),
            foretells=f"KeyError: '{missing.path[-1]}'",
        )


def _fixes(context: Context, key: str) -> list[Fix]:
    """Set the key as the checkout's base recipe does."""
    stock = context.checkout.base_recipe if context.checkout is not None else None
    if stock is not None and stock.has(key):
        return [context.fix(key, stock.get(key))]
    return [context.fix(key, _DEFAULTS[key])] if key in _DEFAULTS else []


RULES = (
    Rule(
        "C5",
        "Keys that are read without a default",
        _missing,
        "KeyError",
        "utils/checkpoint.py, utils/logger.py",
    ),
)
