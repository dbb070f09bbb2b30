"""Files that this program wrote and reads back: input like any other, since others may have written them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from launcher.errors import ConnectionLostError, InputError, TransportError
from launcher.text import clean
from launcher.transports.base import Transport

MAX_STORED_BYTES = 8 * 1024 * 1024
"""Limit of a file that is read back: a run of 100,000 steps has a summary of 3 MB."""
_DETAIL_CHARS = 200

if TYPE_CHECKING:
    from collections.abc import Hashable

Model = TypeVar("Model")


def read_stored(transport: Transport, path: Path, model: type[Model], *, works: str = "") -> Model:
    """Return a file's content as its model or dataclass; `works` says in an error what is not affected.

    Raises:
        InputError: it cannot be read, is too large, or is damaged.
        ConnectionLostError: its machine is not reached.
    """
    try:
        entry = transport.stat(str(path))
        if entry is not None and entry.is_dir:
            raise InputError(f"{path.name} is a directory (expected a file)", where=path, fix=works)
        data = transport.read(str(path), 0, MAX_STORED_BYTES + 1)
    except ConnectionLostError:  # that says nothing about the file
        raise
    except TransportError as error:
        raise InputError(error.what, where=path, fix=works or error.fix) from error
    return parse_stored(data, path, model, works=works)


def parse_stored(data: bytes, path: Path, model: type[Model], *, works: str = "") -> Model:
    """Return the bytes of a file as its model or dataclass.

    Raises:
        InputError: they are too many, or damaged.
    """
    if len(data) > MAX_STORED_BYTES:
        limit = f"larger than {MAX_STORED_BYTES // 1024 // 1024} MiB"
        raise InputError(f"{path.name} is damaged: {limit}", where=path, fix=works)
    try:
        adapter: TypeAdapter[Model] = _adapter(cast("Hashable", model))
        return adapter.validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        at = ".".join(str(part) for part in first["loc"])
        detail = clean(f"{at} {first['msg']}".strip())[:_DETAIL_CHARS]
        raise InputError(f"{path.name} is damaged: {detail}", where=path, fix=works) from error


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a type of any kind
    return TypeAdapter(model)


def dump(model: BaseModel) -> bytes:
    """Return a model as the bytes of its file."""
    return (model.model_dump_json(by_alias=True, indent=1) + "\n").encode()
