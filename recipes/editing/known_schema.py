"""What the checkout at hand says of a recipe's keys, read once per algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.known_keys import KeyTree, known_keys
from recipes.schema.algorithms import algorithm_of, driver_of_algorithm

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from recipes.schema.checkout_schema import Schemas
    from recipes.schema.types import Description

USUAL_ALGORITHM = "distillation"
"""Algorithm of a recipe that has no section of any algorithm."""


@dataclass
class KnownSchema:
    """Keys and classes of a checkout, or of the newest release where there is none."""

    schemas: Schemas
    checkout: Path | None
    recipe_path: Path | None = None
    """Recipe whose own keys do not count as known where it lies among the stock recipes."""
    _trees: dict[str, KeyTree | None] = field(default_factory=dict)

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

    def shipped_release(self, algorithm: str) -> str:
        """Return the release whose classes stand in for a checkout's; "" for the checkout's own."""
        schema = self.schemas.of(driver_of_algorithm(algorithm), self.checkout)
        return schema.shipped if schema is not None else ""
