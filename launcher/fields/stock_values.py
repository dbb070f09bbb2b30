"""Values that a checkout's own distillation recipes have for the fields, for help and choices."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from launcher.fields import FIELDS, Field
from launcher.fields.field_values import text_in
from recipes.errors import RecipeError
from recipes.inheritance import Resolver
from recipes.schema.algorithms import algorithm_of

if TYPE_CHECKING:
    from pathlib import Path

_FOLDERS = ("examples/configs", "examples/configs/recipes/llm")
_MOST_RECIPES = 60
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class StockValues:
    """How many recipes have which value of a field."""

    recipes: int = 0
    """Recipes that were read."""
    counts: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """By field: texts with the number of recipes that have them, the most frequent first."""

    @classmethod
    def of(cls, checkout: Path) -> StockValues:
        """Read a checkout's on-policy distillation recipes; some 20 ms for each of them."""
        texts: dict[str, Counter[str]] = {row.name: Counter() for row in FIELDS if row.of_recipe}
        resolver, recipes = Resolver(), 0
        for path in stock_paths(checkout):
            with contextlib.suppress(RecipeError):  # one that cannot be read is no example
                recipe = resolver.resolve(path)
                if algorithm_of(recipe.values) != "distillation":
                    continue
                recipes += 1
                for row in FIELDS:
                    if row.of_recipe and (text := text_in(row, recipe)):
                        texts[row.name][text] += 1
        return cls(recipes, {name: tuple(counter.most_common()) for name, counter in texts.items()})

    def used(self, item: Field) -> tuple[tuple[str, int], ...]:
        """Return the texts of a field with the number of recipes that have them."""
        return self.counts.get(item.name, ())

    def line(self, item: Field) -> str:
        """Return what the recipes have for a field, as one sentence; "" for nothing."""
        used = self.used(item)
        if not used or (len(used) > _MOST_SHOWN and used[0][1] == 1):
            return ""  # each recipe has its own, as with directories
        shown = ", ".join(f"{text} ({count})" for text, count in used[:_MOST_SHOWN])
        more = ", …" if len(used) > _MOST_SHOWN else ""
        recipes = "distillation recipe" if self.recipes == 1 else f"{self.recipes} distillation recipes"
        return f"NeMo-RL's {recipes}: {shown}{more}."


def stock_paths(checkout: Path) -> list[Path]:
    """Return the distillation recipes that come with a checkout, by name."""
    paths = [path for folder in _FOLDERS for path in sorted((checkout / folder).glob("*distillation*.yaml"))]
    return paths[:_MOST_RECIPES]


def field_help(item: Field, stock: StockValues | None = None) -> tuple[str, ...]:
    """Return the help of a field: its effect, what NeMo-RL's own recipes have, and what follows."""
    used = stock.line(item) if stock is not None else ""
    return tuple(text for text in (item.help, used, item.follows) if text)
