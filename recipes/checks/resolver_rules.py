"""Rule on the functions in interpolations, such as `${mul:2,4}`: C88. Releases register different ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown
from recipes.keys import format_key
from recipes.planning import Fix
from recipes.values import Leaf, leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = re.compile(r"(?<!\\)(?:\\\\)*\$\{\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*:")
"""Beginning of a call; OmegaConf's own functions are those of `oc.`."""


def called(text: str) -> list[str]:
    """Return the functions that a text calls in interpolations, in their order, without OmegaConf's own."""
    names = (name for name in _CALL.findall(text) if not name.startswith("oc."))
    return list(dict.fromkeys(names))


def _functions(context: Context) -> Iterator[Finding]:
    """C88."""
    checkout = context.checkout
    if checkout is None:
        return
    merged = context.recipe.merged
    for path, leaf in leaves(merged):
        if not isinstance(leaf, Leaf) or not isinstance(leaf.value, str) or "${" not in leaf.value:
            continue
        for name in called(leaf.value):
            registered = checkout.functions(context.driver.script)
            if not registered or name in registered or checkout.registers(name):
                continue
            key = format_key(path)
            names = ", ".join(sorted(registered))
            yield fail(
                f"{key} calls {name}, which this NeMo-RL does not have (it has {names})",
                key,
                fixes=_written_out(context, key, leaf.value),
                foretells=f"Unsupported interpolation type {name}",
            )


def _written_out(context: Context, key: str, text: str) -> list[Fix]:
    """Return the fix that writes what an interpolation gives."""
    value = context.get(key)
    if isinstance(value, dict | list):
        return []
    return [Fix(f"{key}: {text} -> {shown(value)}", (context.edit(key, value),))]


RULES = (
    Rule(
        "C88",
        "Functions in interpolations",
        _functions,
        "Unsupported interpolation type",
        "utils/config.py",
    ),
)
