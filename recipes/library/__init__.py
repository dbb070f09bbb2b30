"""Recipes that ship with the program, as files beside this one."""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).parent


def starting_recipes() -> tuple[Path, ...]:
    """Return the files, by name."""
    return tuple(sorted(DIRECTORY.glob("*.yaml")))
