"""What becomes of chosen values: overrides, lines of a recipe's own file, or a new recipe on top of it.

The values are compared as they are written, before interpolation, so that what refers to another key still
does so in the outcome. Each outcome is read back: it means what was chosen, or it is refused.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.compare import ABSENT, ValueDifference, differences
from recipes.document import Document
from recipes.editing.here import remove_here, set_here
from recipes.editing.starting import derived_text
from recipes.errors import RecipeError
from recipes.files import Saved, is_taken, is_writable, save, unified_diff
from recipes.inheritance import Resolver
from recipes.keys import format_key, parse_key
from recipes.library import DIRECTORY
from recipes.planning.edits import RecipeEdit, overrides_of
from recipes.planning.setup import Setup
from recipes.remote_path import on_machine_of
from recipes.values import Plain, plain
from recipes.yaml.scalars import same
from recipes.yaml.typed import writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from recipes.inheritance import EffectiveRecipe

_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+")
_STOCK_DIRECTORY = "examples/configs/recipes/llm"
_MOST_NUMBERS = 1000


@dataclass(frozen=True, slots=True)
class ChosenValues:
    """Values that differ from a base recipe; in the differences, `a` is the base's."""

    base: EffectiveRecipe
    edited: EffectiveRecipe
    """The base with everything that was chosen."""
    differences: tuple[ValueDifference, ...]

    @classmethod
    def of(cls, base: EffectiveRecipe, edited: EffectiveRecipe) -> ChosenValues:
        """Compare a recipe with what it became."""
        return cls(base, edited, tuple(_leaves(plain(base.merged), plain(edited.merged))))

    @property
    def empty(self) -> bool:
        """Whether nothing was chosen."""
        return not self.differences

    def edits(self) -> tuple[RecipeEdit, ...]:
        """Return the choices as edits."""
        return tuple(_edit(item) for item in self.differences)

    def overrides(self) -> tuple[str, ...]:
        """Return the choices as overrides."""
        return overrides_of(self.edits())


@dataclass(frozen=True, slots=True)
class RecipeText:
    """Text of a recipe that is not written yet."""

    path: Path
    text: str
    diff: str
    """Unified diff from the file as it is; from nothing for a new one."""
    opened: bytes | None
    """Bytes of the file that the text is made from; None for a new one."""

    def write(self, *, accept_changes: bool = False) -> Saved:
        """Write the text atomically.

        Raises:
            ChangedOnDiskError: the file changed since, or a new one is there by now.
            RecipeError: the file system refuses.
        """
        if self.opened is None and is_taken(self.path):
            raise _exists(self.path)
        return save(self.path, self.text.encode("utf-8"), self.opened, accept_changes=accept_changes)


@dataclass(frozen=True, slots=True)
class ChildPlace:
    """Directory for a new recipe."""

    directory: Path
    title: str


def child(chosen: ChosenValues, target: Path, *, header: str = "") -> RecipeText:
    """Return a new recipe that inherits from the base and has only what differs from it.

    `header` is a comment for its top, a line or several.

    Raises:
        RecipeError: the file exists, a key was removed (inheriting cannot take one away), or the text would
            not mean the same.
    """
    if is_taken(target):
        raise _exists(target)
    text = child_text(chosen, target, header=header)
    return RecipeText(target, text, unified_diff("", text, "/dev/null", str(target)), None)


def child_text(chosen: ChosenValues, target: Path, *, header: str = "") -> str:
    """Return the text of `child`, also where the file exists: it can be opened in an editor.

    Raises:
        RecipeError: as for `child`.
    """
    removed = [item.key for item in chosen.differences if item.b is ABSENT]
    if removed:
        raise RecipeError(
            f"a recipe on top of another cannot take keys away: {', '.join(removed[:5])}",
            where=str(chosen.base.path),
            fix="Set them to another value, or save into the file itself.",
        )
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    document = Document(comment + derived_text(chosen.base.path, target), str(target), path=target)
    for item in chosen.differences:
        document.set(parse_key(item.key), writable(item.b))
    _check(document, target, chosen)
    return _with_gaps(document.text)


def into_file(chosen: ChosenValues) -> RecipeText:
    """Return the base's own text with the chosen values; comments and everything else stay.

    Raises:
        RecipeError: a value cannot be set there, or the text would not mean the same.
    """
    path = chosen.base.path
    document = Document.open(path)
    opened = document.text.encode("utf-8")
    with document.group():
        _apply(document, chosen.edits(), chosen.base)
        # An anchor may carry a value to keys that were to stay: those get their own.
        followers = _leaves(plain(_read(document, path).merged), plain(chosen.edited.merged))
        _apply(document, tuple(_edit(item) for item in followers), chosen.base)
    _check(document, path, chosen)
    diff = unified_diff(opened, document.text, str(path), f"{path} (new)")
    return RecipeText(path, document.text, diff, opened)


def child_name(recipe: EffectiveRecipe, nodes: int | None = None, gpus_per_node: int | None = None) -> str:
    """Return a name as NeMo-RL's own recipes have it: algorithm, student, teacher, nodes and GPUs."""
    setup = Setup.of(recipe)
    student, teacher = (_slug(side.model) for side in setup.sides)
    names = f"{student}-from-{teacher}" if teacher else student
    size = f"{nodes or setup.nodes}n{gpus_per_node or setup.gpus_per_node}g"
    return f"distillation-{names}-{size}.yaml"


def child_places(base: Path, checkout: Path | None) -> tuple[ChildPlace, ...]:
    """Return the directories that a new recipe may go to: the checkout's, beside the base, the current one.

    Directories that cannot be written, and the package's own, are left out.
    """
    rows = [ChildPlace(checkout / _STOCK_DIRECTORY, "NeMo-RL's recipes")] if checkout is not None else []
    rows += [
        ChildPlace(base.parent.absolute(), "beside the recipe"),
        ChildPlace(on_machine_of(base, "").absolute(), "this directory"),
    ]
    first: dict[Path, ChildPlace] = {}
    for row in rows:
        resolved = row.directory.resolve()
        if resolved != DIRECTORY.resolve() and row.directory.is_dir() and is_writable(row.directory):
            first.setdefault(resolved, row)
    return tuple(first.values())


def free_path(directory: Path, name: str) -> Path:
    """Return a path of a name in a directory where nothing is yet: the name, or it with a number.

    Raises:
        RecipeError: there are too many.
    """
    stem, suffix = os.path.splitext(name)
    for number in range(1, _MOST_NUMBERS):
        path = directory / (name if number == 1 else f"{stem}-{number}{suffix}")
        if not is_taken(path):
            return path
    raise RecipeError("too many recipes of this name", where=str(directory / name), fix="Give another name.")


def _leaves(a: Plain, b: Plain) -> Iterator[ValueDifference]:
    """Yield the differences of two recipes; a section that only the second has, by its leaves."""
    for item in differences(a, b):
        if item.a is ABSENT and isinstance(item.b, dict) and item.b:
            yield from _below(item.key, item.b)
        else:
            yield item


def _below(key: str, section: dict[Any, Any]) -> Iterator[ValueDifference]:
    for name, value in section.items():
        inner = f"{key}.{format_key((name,))}"
        if isinstance(value, dict) and value:
            yield from _below(inner, value)
        else:
            yield ValueDifference(inner, ABSENT, value)


def _edit(item: ValueDifference) -> RecipeEdit:
    removed, absent = item.b is ABSENT, item.a is ABSENT
    return RecipeEdit(
        item.key,
        None if absent else item.a,
        None if removed else item.b,
        absent=absent,
        remove=removed,
    )


def _apply(document: Document, edits: Iterable[RecipeEdit], base: EffectiveRecipe) -> None:
    for edit in edits:
        if edit.remove:
            remove_here(document, edit.key, inherited=base)
        else:
            set_here(document, edit.key, writable(edit.after), write_out=True, inherited=base)


def _read(document: Document, path: Path) -> EffectiveRecipe:
    revision = document.revision
    return Resolver().resolve(path, (), tree=revision.tree, composed=revision.composed)


def _check(document: Document, path: Path, chosen: ChosenValues) -> None:
    """Raise `RecipeError` where a text does not mean what was chosen."""
    made = _read(document, path)
    if not same(made.values, chosen.edited.values):
        keys = [item.key for item in differences(chosen.edited.values, made.values)]
        raise RecipeError(
            f"the saved recipe would not mean what was chosen (at {', '.join(keys[:5])})",
            where=str(path),
            fix="Use the values as overrides, or edit the recipe.",
        )


def _slug(model: str) -> str:
    name = model.rstrip("/").rpartition("/")[2].lower()
    return _NOT_IN_NAMES.sub("-", name).strip("-.")


def _with_gaps(text: str) -> str:
    """Put an empty line before each section of a text that was made here."""
    lines = text.split("\n")
    for number in range(len(lines) - 1, 0, -1):
        first = lines[number][:1]
        if (
            first
            and first not in " #-"
            and lines[number - 1].strip()
            and not lines[number - 1].startswith("#")
        ):
            lines.insert(number, "")
    return "\n".join(lines)


def _exists(path: Path) -> RecipeError:
    return RecipeError(f"{path} exists already", where=str(path), fix="Give another name, or remove it.")
