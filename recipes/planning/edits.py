"""Changes of a recipe as data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_WORD = re.compile(r"[A-Za-z_][\w/.-]*")
_RESERVED = ("null", "true", "false", "inf", "nan", "yes", "no", "on", "off", "y", "n")


@dataclass(frozen=True, slots=True)
class RecipeEdit:
    """Change of one value; `absent`: the key was not there, `remove`: it is deleted."""

    key: str
    before: object
    after: object
    absent: bool = False
    remove: bool = False

    def overrides(self) -> tuple[str, ...]:
        """Return the edit as Hydra overrides, as values would be read after it."""
        if not self.remove:
            return (f"++{self.key}={hydra(self.after)}",)
        # Hydra takes a key that holds null for absent when it is to delete it.
        return (f"++{self.key}=0", f"~{self.key}") if self.before is None else (f"~{self.key}",)


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together, with a title; without edits, something to do outside the recipe."""

    title: str
    edits: tuple[RecipeEdit, ...] = field(default=())

    def overrides(self) -> tuple[str, ...]:
        """Return the edits as Hydra overrides."""
        return overrides_of(self.edits)


def overrides_of(edits: Iterable[RecipeEdit]) -> tuple[str, ...]:
    """Return edits as Hydra overrides, in their order."""
    return tuple(override for edit in edits for override in edit.overrides())


def hydra(value: object) -> str:
    """Write a value as Hydra's override grammar reads it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{hydra(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(hydra(item) for item in value) + "]"
    if isinstance(value, str):
        if _WORD.fullmatch(value) and value.lower() not in _RESERVED:
            return value  # quotes would need Hydra's own parser, which takes 0.3 s to import
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return json.dumps(value)
