"""Comments of stock recipes, as explanations of keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.document import Document
from recipes.errors import RecipeError
from recipes.library import starting_recipes

if TYPE_CHECKING:
    from recipes.yaml.comments import Comment

STOCK_RECIPES = (
    "examples/configs/distillation_math.yaml",
    "examples/configs/distillation_math_megatron.yaml",
)
"""Recipes of a checkout whose comments explain keys."""


@dataclass(frozen=True, slots=True)
class HelpText:
    """Explanation of a key and where it is written (file, or file:line)."""

    text: str
    source: str


def joined(comment: Comment) -> str:
    """Return a comment as one text."""
    return " ".join(" ".join((comment.above, comment.beside)).split())


class StockComments:
    """Comments of the recipes that come with a checkout, or with this package."""

    def __init__(self, checkout: Path | None) -> None:
        self._paths = [checkout / name for name in STOCK_RECIPES] if checkout is not None else []
        self._documents: list[Document] | None = None

    def of(self, key: str) -> list[HelpText]:
        """Return the first recipe's comment on a key, if any has one."""
        for document in self._read():
            if not document.is_written(key):
                continue
            text = joined(document.comment(key))
            if text:
                return [HelpText(text, f"{document.name}:{document.line(key)}")]
        return []

    def values(self, key: str) -> list[HelpText]:
        """Return the value that each recipe writes for a key, as YAML; none for sections."""
        return [
            HelpText(document.yaml(key), f"{document.name}:{document.line(key)}")
            for document in self._read()
            if document.is_written(key) and not isinstance(document.get(key), dict)
        ]

    def _read(self) -> list[Document]:
        if self._documents is None:
            self._documents = []
            for path in self._paths or starting_recipes():
                try:
                    self._documents.append(Document.open(path))
                except RecipeError:
                    continue  # another release, or a fork that has moved it
        return self._documents
