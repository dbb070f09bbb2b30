"""Recipes to choose from, and the file that a typed recipe names. Reads directories; runs on a thread."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from recipes.library import DIRECTORY, starting_recipes
from recipes.limits import RECIPE_BYTES
from recipes.reading import read_regular
from recipes.remote_path import RemotePath, on_machine_of

HERE, CHECKOUT, RECENT, PACKAGED = "this directory", "NeMo-RL checkout", "used recently", "packaged"
OF_RUN = "values of a run"
_MOST_FILES = 300
"""Files of a directory that are looked at."""
_MOST_PARENTS = 5
_MOST_READ = 2000
"""Files that are read for one directory, parents included."""
_SECTION = re.compile(r"^distillation:", re.MULTILINE)
_DEFAULTS = re.compile(r"^defaults:(.*(?:\n[ \t-].*)*)", re.MULTILINE)
_FILE = re.compile(r"[\w./~+-]+\.ya?ml")
_STOCK = ("examples/configs", "examples/configs/recipes/llm")


@dataclass(frozen=True, slots=True)
class RecipeChoice:
    """A recipe to choose from."""

    text: str
    """As it is typed: names this file and no other."""
    path: Path
    source: str
    label: str = ""
    """Shorter than the text, for a list; empty for the text itself."""


def recipe_file(text: str, here: Path = Path(), library: Path | None = None) -> Path:
    """Return the file that a typed recipe names on a directory's machine: a path, else a packaged recipe.

    A file in the current directory comes before a packaged one of the same name. `library` is where a host
    has, or gets, the packaged ones; without it, there are none of them.
    """
    path = on_machine_of(here, text).expanduser().absolute()
    if library is None:
        library = None if isinstance(path, RemotePath) else DIRECTORY
    named = "/" not in text and any(text == item.name for item in starting_recipes())
    return library / text if named and library is not None and not path.exists() else path


def source_of(path: Path, choices: Iterable[RecipeChoice]) -> str:
    """Return where a recipe comes from, for display."""
    source = next((item.source for item in choices if item.path == path), "")
    return source or (HERE if path.parent == on_machine_of(path, "").absolute() else "")


def recipe_choices(
    recent: Iterable[Path],
    checkout: Path | None,
    runs: Iterable[tuple[str, Path]] = (),
    here: Path | None = None,
    library: Path | None = None,
) -> tuple[RecipeChoice, ...]:
    """Return recipes of this directory and of the checkout, recent, packaged, and of runs; each file once.

    `runs` are names of runs with the file of their effective values; `here` is the directory, by default the
    current one. `library` is where a host has, or gets, the packaged ones; without it, there are none.
    """
    here = Path.cwd() if here is None else here
    if library is None:
        library = None if isinstance(here, RemotePath) else DIRECTORY
    packaged = [library / path.name for path in starting_recipes()] if library is not None else []
    rows = [
        *(RecipeChoice(path.name, path, HERE) for path in _distillation_recipes(here)),
        *_stock(checkout),
        *(RecipeChoice(str(path), path, RECENT) for path in recent if path.parent != library),
        *(_packaged(path, here) for path in packaged),
        *(RecipeChoice(str(path), path, OF_RUN, name) for name, path in runs),
    ]
    first: dict[Path, RecipeChoice] = {}
    for row in rows:
        first.setdefault(row.path, row)
    return tuple(first.values())


def _packaged(path: Path, here: Path) -> RecipeChoice:
    hidden = (here / path.name).exists()
    return RecipeChoice(str(path) if hidden else path.name, path, PACKAGED, path.name)


def _stock(checkout: Path | None) -> list[RecipeChoice]:
    """Return the distillation recipes that come with a checkout, by name."""
    if checkout is None:
        return []
    paths = [path for folder in _STOCK for path in _named_for_distillation(checkout / folder)]
    return [RecipeChoice(str(path), path, CHECKOUT, path.name) for path in paths]


def _named_for_distillation(directory: Path) -> list[Path]:
    return [path for path in _yaml_files(directory) if "distillation" in path.name]


def _distillation_recipes(directory: Path) -> list[Path]:
    verdicts: dict[str, bool] = {}
    return [path for path in _yaml_files(directory) if _is_distillation(path, verdicts)]


def _yaml_files(directory: Path) -> list[Path]:
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError:  # there is no such directory, or it may not be read: it offers nothing
        return []
    return paths[:_MOST_FILES]


def _is_distillation(path: Path, verdicts: dict[str, bool], depth: int = 0) -> bool:
    """Return whether a file has the section, or inherits it; each file is read once, and not too many."""
    key = os.path.normpath(str(path))
    if key not in verdicts:
        if depth > _MOST_PARENTS or len(verdicts) > _MOST_READ:
            return False
        verdicts[key] = False  # where it inherits itself
        verdicts[key] = _has_section(path, verdicts, depth)
    return verdicts[key]


def _has_section(path: Path, verdicts: dict[str, bool], depth: int) -> bool:
    try:
        text = read_regular(path, RECIPE_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    if _SECTION.search(text):
        return True
    block = _DEFAULTS.search(text)
    parents = _FILE.findall(block[1]) if block is not None else []
    return any(
        "distill" in name or _is_distillation(path.parent / name, verdicts, depth + 1) for name in parents
    )
