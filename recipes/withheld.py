"""Values of a recipe without the secrets of the environment: what is printed and stored of it.

A value that comes from a secret variable (`${oc.env:WANDB_API_KEY}`), directly or through other keys, stays
the interpolation that it is written as; NeMo-RL evaluates it in the job.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recipes.bounds import named_values
from recipes.interpolation import is_interpolation
from recipes.secrets import Mask, secret_names
from recipes.values import Leaf, Map, Seq, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recipes.keys import KeyPath

_ENVIRONMENT = "oc.env"
_WORD = re.compile(r"\w+", re.ASCII)


@dataclass
class Withheld:
    """Finder of the secret variables that the values below a root come from."""

    root: Map
    mask: Mask
    secrets: frozenset[str]
    _names: dict[KeyPath, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Map, environment: Mapping[str, str] | None = None) -> Withheld:
        """Return the finder for a recipe's merged values; the environment is by default this process's."""
        environment = os.environ if environment is None else environment
        return cls(root, Mask.of(environment), secret_names(environment))

    def names(self, value: Value, path: KeyPath) -> frozenset[str]:
        """Return the secret variables that a value comes from."""
        if not self.secrets:
            return frozenset()
        if not isinstance(value, Leaf):
            items = value.items.items() if isinstance(value, Map) else enumerate(value.items)
            return frozenset[str]().union(*(self.names(item, (*path, step)) for step, item in items))
        if not is_interpolation(value.value):
            return frozenset()
        if path not in self._names:
            self._names[path] = frozenset()  # a circle names nothing more
            self._names[path] = self._of_text(str(value.value), path)
        return self._names[path]

    def _of_text(self, text: str, path: KeyPath) -> frozenset[str]:
        targets = list(named_values(self.root, text, path))
        words = set(_WORD.findall(text))
        words |= {
            target.value
            for target, _ in targets
            if isinstance(target, Leaf) and isinstance(target.value, str)
        }
        own = self.secrets & words if _ENVIRONMENT in text else frozenset[str]()
        return own.union(*(self.names(target, target_path) for target, target_path in targets))

    def public(self, value: Value, data: object, path: KeyPath = ()) -> Any:  # noqa: ANN401 - a recipe's data
        """Return resolved data with the interpolation wherever a value comes from a secret.

        `value` is what is written for the data, `path` where.
        """
        if isinstance(value, Map) and isinstance(data, dict):
            return {key: self._item(value.items.get(key), item, (*path, key)) for key, item in data.items()}
        if isinstance(value, Seq) and isinstance(data, list) and len(value.items) == len(data):
            pairs = zip(value.items, data, strict=True)
            return [self.public(item, inner, (*path, index)) for index, (item, inner) in enumerate(pairs)]
        if not isinstance(value, Leaf) or not is_interpolation(value.value):
            return data
        held = self.names(value, path) or (isinstance(data, str) and self.mask(data) != data)
        return value.value if held else data

    def _item(self, value: Value | None, data: object, path: KeyPath) -> Any:  # noqa: ANN401
        return data if value is None else self.public(value, data, path)
