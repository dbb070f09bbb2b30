"""The schema of the newest release, which comes with this package (`python -m recipes.schema` makes it)."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from recipes.schema.types import Description, from_json

DATA = Path(__file__).with_name("shipped.json")


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return data


def release() -> str:
    """Return the release whose schema this is."""
    return str(_data()["release"])


def drivers() -> tuple[str, ...]:
    """Return the drivers of which there is a schema."""
    return tuple(_data()["drivers"])


@lru_cache(maxsize=16)
def description(driver: str) -> Description:
    """Return the schema of a driver.

    Raises:
        KeyError: there is none.
    """
    data = _data()
    return from_json(data["drivers"][driver] | {"classes": data["classes"], "release": data["release"]})


def has_recipe(path: str) -> bool:
    """Tell whether a path in a checkout is that of a recipe that comes with some release."""
    folder, _, name = path.rpartition("/")
    return name in _data()["recipes"].get(folder, ())


def keys(algorithm: str) -> Any:  # noqa: ANN401 - nested data, for `recipes.known_keys`
    """Return the keys that stock recipes and newer versions use besides, for an algorithm."""
    return _data()["keys"].get(algorithm, {})
