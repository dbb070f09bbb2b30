"""What the checkout at hand knows: keys, data sets, and the values of its own recipes. Read once for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from launcher.fields.data_set_names import data_set_names
from launcher.fields.stock_values import StockValues
from recipes.known_keys import KeyTree, known_keys
from recipes.schema.algorithms import algorithm_of
from tui.screens.wizard.wizard_state import DraftStatus

_USUAL = "distillation"


@dataclass(slots=True)
class ReleaseReader:
    """Knowledge of checkouts, by their directories; "" is no checkout."""

    path_of: Callable[[str], Path] = Path
    """Returns the path of a checkout on its machine."""
    _key_trees: dict[tuple[str, str], KeyTree | None] = field(default_factory=dict)
    _data_sets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _stock: dict[str, StockValues] = field(default_factory=dict)

    def add_to(self, status: DraftStatus) -> DraftStatus:
        """Return the status with what is known of its checkout; recipes are read by `with_stock` alone."""
        directory = status.checkout.path if status.checkout is not None else ""
        path = self.path_of(directory) if directory else None
        algorithm = (algorithm_of(status.recipe.values) if status.recipe is not None else None) or _USUAL
        key = (directory, algorithm)
        if key not in self._key_trees:
            self._key_trees[key] = known_keys(algorithm, path)
        if directory not in self._data_sets:
            self._data_sets[directory] = data_set_names(path) if path is not None else ()
        return replace(
            status,
            key_tree=self._key_trees[key],
            data_sets=self._data_sets[directory],
            stock=self._stock.get(directory),
        )

    def with_stock(self, status: DraftStatus) -> DraftStatus:
        """Return the status with the values of the checkout's own recipes; takes 0.2 s the first time."""
        if status.checkout is None:
            return status
        directory = status.checkout.path
        if directory not in self._stock:
            self._stock[directory] = StockValues.of(self.path_of(directory))
        return replace(status, stock=self._stock[directory])
