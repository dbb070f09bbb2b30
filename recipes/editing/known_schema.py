"""What the checkout at hand says of a recipe's keys, read once per algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.keys import format_key
from recipes.known_keys import KeyTree, known_keys
from recipes.schema.algorithms import algorithm_of, driver_of_algorithm
from recipes.schema.key_info import key_info

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from recipes.schema.checkout_schema import Schemas
    from recipes.schema.types import Description

USUAL_ALGORITHM = "distillation"
"""Algorithm of a recipe that has no section of any algorithm."""
_DEEPEST = 8


@dataclass
class KnownSchema:
    """Keys and classes of a checkout, or of the newest release where there is none."""

    schemas: Schemas
    checkout: Path | None
    recipe_path: Path | None = None
    """Recipe whose own keys do not count as known where it lies among the stock recipes."""
    _trees: dict[str, KeyTree | None] = field(default_factory=dict)
    _texts: dict[str, dict[str, str]] = field(default_factory=dict)

    def algorithm(self, values: Mapping[str, Any]) -> str:
        """Return the algorithm that a recipe's sections are for."""
        return algorithm_of(values) or USUAL_ALGORITHM

    def key_tree(self, algorithm: str) -> KeyTree | None:
        """Return the known keys of an algorithm; None where there are none."""
        if algorithm not in self._trees:
            self._trees[algorithm] = known_keys(algorithm, self.checkout, apart_from=self.recipe_path)
        return self._trees[algorithm]

    def description(self, algorithm: str) -> Description | None:
        """Return the configuration classes of an algorithm; None where there are none."""
        schema = self.schemas.of(driver_of_algorithm(algorithm), self.checkout)
        return schema.description if schema is not None else None

    def known_texts(self, algorithm: str) -> Mapping[str, str]:
        """Return every known key of an algorithm with the words of its class, outer keys first."""
        if algorithm not in self._texts:
            tree, description = self.key_tree(algorithm), self.description(algorithm)
            keys = _keys_of(tree, ()) if tree is not None else ()
            self._texts[algorithm] = {key: _doc(description, key) for key in keys}
        return self._texts[algorithm]


def _keys_of(tree: KeyTree, path: tuple[str, ...]) -> Iterator[str]:
    if len(path) > _DEEPEST:
        return
    for name, below in tree.keys.items():
        if name and not name.isdigit():
            yield format_key((*path, name))
            yield from _keys_of(below, (*path, name))


def _doc(description: Description | None, key: str) -> str:
    if description is None or '"' in key:
        return ""
    info = key_info(description, key)
    return info.doc if info is not None else ""
