"""JSON files of models, read within limits: a shared cache holds what somebody else has put there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from recipes.limits import JSON_VALUES
from recipes.reading import read_limited

if TYPE_CHECKING:
    from pathlib import Path

    from recipes.limits import Limit


def read_json(path: Path, limit: Limit) -> Any:  # noqa: ANN401 - any JSON
    """Return a JSON file's content.

    Raises:
        OSError: it cannot be read, is no regular file or is larger than the limit.
        ValueError: it is no JSON, or holds more values than the limit allows.
    """
    data = read_limited(path, limit)
    if data.count(b",") + data.count(b"[") + data.count(b"{") > JSON_VALUES.value:
        raise ValueError(f"it may hold more than {JSON_VALUES}")
    try:
        return json.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
