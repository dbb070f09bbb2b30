"""Data sets that a checkout has by name, read from its source without running it.

nemo_rl/data/datasets/response_datasets/__init__.py has a dictionary of them from v0.6 on, and comparisons
of the name before.
"""

from __future__ import annotations

import ast
from pathlib import Path

from recipes.errors import RecipeError
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular

_SOURCE = "nemo_rl/data/datasets/response_datasets/__init__.py"
_REGISTRY, _NAME = "DATASET_REGISTRY", "dataset_name"


def data_set_names(checkout: Path) -> tuple[str, ...]:
    """Return the names of a checkout's data sets in the order of its source; () where it cannot be read."""
    try:
        tree = ast.parse(read_regular(checkout / _SOURCE, SOURCE_BYTES))
    except (OSError, RecipeError, SyntaxError, ValueError, RecursionError):
        return ()  # no checkout, or one that is laid out otherwise: any name may be typed
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == _REGISTRY for target in targets):
                names |= dict.fromkeys(_texts(*node.value.keys))
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == _NAME:
            names |= dict.fromkeys(_texts(*node.comparators))
    return tuple(names)


def _texts(*nodes: ast.expr | None) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
