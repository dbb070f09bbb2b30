"""Documents of JSON with any value in any place."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, "", "x", "--me", "4711,4712", "\udcff", "\x1b[2J", "9" * 5000, "0001-01-01T00:00:00Z", [],
    "9999-12-31T23:59:59Z", [[]], {}, {"a": 1}, ["x"] * 3, "../../../etc", "/dev/zero", "\u202e", "a" * 300_000, 2**63, -(2**70),
)  # fmt: skip


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def changed(random: Random, document: Any) -> Any:
    """Return a document with one to three values changed or missing."""
    document = json.loads(json.dumps(document))
    for _ in range(random.randint(1, 3)):
        path = random.choice(places(document))
        value = deepcopy(random.choice(VALUES))
        if not path:
            if random.random() < 0.1:
                return value
            continue
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        if random.random() < 0.2 and isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
    return document
