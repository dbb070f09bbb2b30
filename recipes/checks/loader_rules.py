"""Rules on recipes that the loader of another release reads otherwise: C88, C89.

They concern NeMo-RL's own driver with the recipe as `--config`. A run that is submitted here gets the
effective values written out, which leaves no loader anything to decide: nothing is reported then.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from recipes.chain import defaults_position
from recipes.checks.core import Context, Finding, RecipeLine, Rule, shown, warn
from recipes.interpolation import MISSING
from recipes.keys import format_key
from recipes.merge import OVERRIDE_KEY
from recipes.planning import Fix
from recipes.values import Leaf, Map, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recipes.chain import Chain

_CONFIG = "utils/config.py"
_CALL = re.compile(r"(?<!\\)(?:\\\\)*\$\{\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*:")
"""Beginning of a call; OmegaConf's own functions are those of `oc.`."""
_HERE = "a run submitted here gets the effective values"


def called(text: str) -> list[str]:
    """Return the functions that a text calls in interpolations, in their order, without OmegaConf's own."""
    names = (name for name in _CALL.findall(text) if not name.startswith("oc."))
    return list(dict.fromkeys(names))


def _functions(context: Context) -> Iterator[Finding]:
    """C88."""
    checkout = context.checkout
    if checkout is None or context.inputs.request.submitting:
        return
    calls = [
        (format_key(path), leaf.value, name)
        for path, leaf in leaves(context.recipe.merged)
        if isinstance(leaf, Leaf) and isinstance(leaf.value, str) and "${" in leaf.value
        for name in called(leaf.value)
    ]
    registered = checkout.functions(context.driver.script) if calls else frozenset[str]()
    if not registered:
        return
    names = ", ".join(sorted(registered))
    for key, text, name in calls:
        if name in registered or checkout.registers(name):
            continue
        yield warn(
            f"{key} calls {name}, which this NeMo-RL does not have (it has {names}); {_HERE}",
            key,
            fixes=_written_out(context, key, text),
            foretells=f"Unsupported interpolation type {name}",
        )


def _written_out(context: Context, key: str, text: str) -> list[Fix]:
    """Return the fix that writes what an interpolation gives."""
    value = context.get(key)
    if isinstance(value, dict | list):
        return []
    return [Fix(f"{key}: {text} -> {shown(value)}", (context.edit(key, value),))]


def _inheritance(context: Context) -> Iterator[Finding]:
    """C89."""
    checkout, chain = context.checkout, context.recipe.chain
    if checkout is None or chain is None or context.inputs.request.submitting:
        return
    if not chain.parents or not checkout.text(_CONFIG):
        return
    if not checkout.has("a parent's own directory"):
        yield from _parents_elsewhere(chain)
    for link in chain.distinct():
        if not checkout.has("override marker"):
            yield from _kept_markers(link)
        elif not checkout.has("mandatory values while merging"):
            yield from _mandatory(link)


def _parents_elsewhere(chain: Chain) -> Iterator[Finding]:
    """Find the parents' parents that are looked for in the recipe's directory (v0.4 and v0.5)."""
    directory = chain.source.path.parent
    for link in chain.distinct():
        for name, parent in zip(link.source.parents, link.parents, strict=True):
            elsewhere = directory / name
            if link is chain or _is_same(elsewhere, parent.source.path):
                continue
            what = "another file is" if elsewhere.is_file() else "there is none"
            finding = warn(
                f"this NeMo-RL looks for {name}, a parent of {link.source.path.name}, beside the recipe, "
                f"where {what} (v0.6 and later look beside {link.source.path.name}); {_HERE}",
                foretells=f"FileNotFoundError: {elsewhere}" if what == "there is none" else "",
            )
            yield replace(finding, lines=_defaults_line(link))


def _defaults_line(link: Chain) -> tuple[RecipeLine, ...]:
    position = defaults_position(link.source)
    return () if position is None else (RecipeLine(position.file, position.line, "defaults"),)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _kept_markers(link: Chain) -> Iterator[Finding]:
    """Find the sections that are to replace their parents', where the loader merges them (v0.4 and v0.5)."""
    for step, section in link.source.values.items.items():
        marker = section.items.get(OVERRIDE_KEY) if isinstance(section, Map) else None
        if isinstance(marker, Leaf) and marker.value is True:
            key = format_key((step,))
            yield warn(
                f"{key}.{OVERRIDE_KEY} has no effect in this NeMo-RL (v0.6 and later have it): its parents' "
                f"keys stay in {key}; {_HERE}",
                key,
            )


def _mandatory(link: Chain) -> Iterator[Finding]:
    """Find the top-level values that must be given later, which end the merging of v0.6 and v0.7."""
    for step, value in link.source.values.items.items():
        if isinstance(value, Leaf) and value.value == MISSING:
            key = format_key((step,))
            yield warn(
                f"{key} is {MISSING} in {link.source.path.name}, which this NeMo-RL cannot merge; {_HERE}",
                key,
                foretells=f"Missing mandatory value: {key}",
            )


RULES = (
    Rule("C88", "Functions in interpolations", _functions, "Unsupported interpolation type", _CONFIG),
    Rule("C89", "Inheritance as this release has it", _inheritance, "FileNotFoundError", _CONFIG),
)
