"""Texts of new recipes: a copy of another one, or a recipe on top of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.chain import DEFAULTS
from recipes.document import Document
from recipes.errors import RecipeError
from recipes.files import is_file, save
from recipes.inheritance import Resolver
from recipes.library import DIRECTORY
from recipes.yaml.scalars import same
from recipes.yaml.write import scalar_text

if TYPE_CHECKING:
    from recipes.files import Saved

_STOCK_FOLDERS = (
    "",
    "examples/configs",
    "examples/configs/recipes/llm",
    "examples/configs/recipes/vlm",
    "examples",
)
_MOST_STEPS_UP = 3
"""Steps up past which a parent is named by its absolute path: a longer way there breaks at the first move."""


def stock_recipe(name: str, checkout: Path | None) -> Path:
    """Return the recipe that a name stands for: a file, a packaged recipe, or one of the checkout's.

    Raises:
        RecipeError: there is none.
    """
    names = (name, f"{name}.yaml")
    folders = [Path(), DIRECTORY]
    if checkout is not None:
        folders += [checkout / folder for folder in _STOCK_FOLDERS]
    for folder in folders:
        for candidate in names:
            path = folder / Path(candidate).expanduser()
            if is_file(path):
                return path
    where = f" (looked in {checkout}/examples, too)" if checkout is not None else ""
    fix = "Give a path, or the name of a recipe that comes with NeMo-RL or with this program."
    raise RecipeError(f"no such recipe: '{name}'{where}", fix=fix)


def derived_text(parent: Path, child: Path) -> str:
    """Return the text of a recipe that inherits everything from a parent."""
    name = _way(parent, child)
    return (
        f"# Based on {_printable(parent.name)}: write only what differs from it.\n"
        f"{DEFAULTS}: {scalar_text(name)}\n"
    )


def copied_text(stock: Path, target: Path) -> str:
    """Return the text of a copy at another path: what it inherits is named from there.

    Raises:
        RecipeError: the recipe, or a parent of it, cannot be read.
    """
    document = Document.open(stock)
    parents = document.get(DEFAULTS) if document.has(DEFAULTS) else None
    if isinstance(parents, str):
        document.set((DEFAULTS,), _way(stock.parent / parents, target))
    elif isinstance(parents, list):
        for index, parent in enumerate(parents):
            document.set((DEFAULTS, index), _way(stock.parent / str(parent), target))
    newline = "\r\n" if "\r\n" in document.text else "\n"
    text = document.text.removeprefix("\ufeff")
    return f"# Copied from {_printable(stock.name)}.{newline}{text}"


def create(path: Path, text: str, like: Path) -> Saved:
    """Write a new recipe that means the same as another one.

    Raises:
        RecipeError: the file exists, cannot be written, or would not mean the same.
    """
    if path.exists() or path.is_symlink():
        raise RecipeError(f"{path} exists already", where=path, fix="Give another name, or remove it.")
    resolver = Resolver()
    document = Document(text, str(path), path=path)
    revision = document.revision
    made = resolver.resolve(path, (), tree=revision.tree, composed=revision.composed)
    if not same(made.values, resolver.resolve(like).values):
        raise RecipeError(f"the new recipe would not mean the same as {like}", where=path)
    return save(path, text.encode("utf-8"), None)


def _way(parent: Path, child: Path) -> str:
    """Return the path of a parent as a child names it."""
    target = parent.resolve()
    way = os.path.relpath(str(target), str(child.absolute().parent.resolve()))
    return str(target) if way.count("../") > _MOST_STEPS_UP else way


def _printable(name: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in name)
