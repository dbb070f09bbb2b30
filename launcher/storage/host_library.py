"""The recipes that come with the program, on a host: copied there when one of them is used."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from launcher.base_directories import state_root
from launcher.transports.base import NewFile, Transport
from recipes.library import starting_recipes
from recipes.remote_path import look_again

FOLDER = "library"
"""Directory below the state directory there; in it one for each content."""


def library_on(transport: Transport, environment: Mapping[str, str]) -> Path:
    """Return the directory of these recipes on a transport's machine; it need not be there yet."""
    return transport.path(str(state_root(environment) / FOLDER / _digest()))


def copy_library(transport: Transport, directory: Path) -> None:
    """Copy the recipes there in one request, unless they are there.

    Raises:
        TransportError: they cannot be written, or the host does not answer.
    """
    recipes = starting_recipes()
    if all((directory / path.name).exists() for path in recipes):
        return
    transport.write_files([NewFile(str(directory / path.name), path.read_bytes()) for path in recipes])
    for path in (directory / recipes[0].name, directory, *directory.parents):
        look_again(path)  # directories above it may have been made, too


@cache
def _digest() -> str:
    text = b"\0".join(path.name.encode() + path.read_bytes() for path in starting_recipes())
    return hashlib.sha256(text).hexdigest()[:12]
