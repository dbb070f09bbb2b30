"""Keys unknown to NeMo-RL, and policy settings that the teacher does not follow."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from recipes.keys import KeyPath, format_key
from recipes.known_keys import KeyTree, algorithm_of, known_keys
from recipes.values import Map, Seq, Value, find, plain
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recipes.document import Document
    from recipes.inheritance import EffectiveRecipe
    from recipes.yaml.write import Writable

STUDENT, TEACHER = "policy", "teacher"


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key in the recipe's own file that NeMo-RL does not know; `did_you_mean` is "" without a guess."""

    key: str
    line: int
    did_you_mean: str


@dataclass(frozen=True, slots=True)
class Drift:
    """A setting that was one for student and teacher until the student's was changed alone.

    `key` goes below `policy` and `teacher`; `file` and `line` say where the student's was changed.
    """

    key: str
    policy: object
    teacher: object
    file: str
    line: int


def unknown_keys(recipe: EffectiveRecipe, own: Value, checkout: Path | None = None) -> list[UnknownKey]:
    """List the unknown keys that a recipe's own file writes; none if its algorithm is unknown.

    A key that a parent has too counts as known: it is the parent's business.
    """
    algorithm = algorithm_of(recipe.values)
    key_tree = known_keys(algorithm, checkout, apart_from=recipe.path) if algorithm else None
    if key_tree is None or not isinstance(own, Map):
        return []
    sections = {name: item for name, item in own.items.items() if name not in ("defaults",)}
    unknown = _unknown(Map(sections, own.mark), key_tree, ())
    return [
        UnknownKey(
            format_key(path), value.mark.line, suggestion(path, key_tree) if number < _MOST_GUESSES else ""
        )
        for number, (path, value) in enumerate(unknown)
        if find(recipe.inherited, path) is None
    ]


_MOST_GUESSES = 200
"""Unknown keys for which the one that was meant is looked for: 1.5 ms each."""
_LONGEST_NAME = 80


def _unknown(value: Value, key_tree: KeyTree, path: KeyPath) -> Iterator[tuple[KeyPath, Value]]:
    if isinstance(value, Seq):
        for index, item in enumerate(value.items):
            yield from _unknown(item, key_tree, (*path, index))
    if not isinstance(value, Map) or key_tree.open or not key_tree.keys:
        return
    for key, item in value.items.items():
        if key == "_override_" and len(path) == 1:
            continue
        below = key_tree.keys.get(str(key))
        if below is not None:
            yield from _unknown(item, below, (*path, key))
        elif not item.mark.merged:
            yield (*path, key), item


def unknown_path(recipe: EffectiveRecipe, path: KeyPath, key_tree: KeyTree) -> tuple[str, str] | None:
    """Return the unknown key on the way to a path, and the one that was meant ("" without a guess).

    None where all is known, or comes from a parent too.
    """
    way = unknown_way(recipe, path, key_tree)
    return None if way is None else (format_key(way), suggestion(way, key_tree))


def unknown_way(recipe: EffectiveRecipe, path: KeyPath, key_tree: KeyTree) -> KeyPath | None:
    """Return the path up to its first unknown key; None where all is known, or comes from a parent too."""
    section = key_tree
    for position, step in enumerate(path):
        if section.open or not section.keys:
            return None
        if isinstance(step, int) or (isinstance(step, str) and step.isdigit()):
            continue
        below = section.keys.get(str(step))
        if below is None:
            way = path[: position + 1]
            return way if find(recipe.inherited, way) is None else None
        section = below
    return None


def suggestion(path: KeyPath, key_tree: KeyTree) -> str:
    """Guess the key that was meant: one with a like name in its section, or its name in another section.

    "" without a guess.
    """
    *above, last = path
    section = key_tree
    for step in above:
        section = section.keys.get(str(step), section) if not isinstance(step, int) else section
    near = get_close_matches(str(last)[:_LONGEST_NAME], section.keys, n=1, cutoff=0.75)
    if near:
        return format_key((*above, near[0]))
    same_name = [
        other for other in _paths_to(key_tree, str(last), ()) if other[0] in (path[0], "distillation")
    ]
    same_name = same_name or list(_paths_to(key_tree, str(last), ()))
    shortest = min(same_name, key=len, default=None)
    return "" if shortest is None else format_key(shortest)


def _paths_to(key_tree: KeyTree, name: str, path: KeyPath) -> Iterator[KeyPath]:
    for key, below in key_tree.keys.items():
        if key == name:
            yield (*path, key)
        yield from _paths_to(below, name, (*path, key))


_TRAINED = ("optimizer", "scheduler")
"""Sections read for training alone: the driver makes the teacher with `init_optimizer=False`."""
_GENERATION = frozenset(("backend", "temperature", "top_p", "top_k", "colocated"))
"""Parts of `generation` that scale or filter the logits of a side that generates nothing."""
_TRAINING_SIZES = frozenset(
    (
        "train_global_batch_size",
        "train_micro_batch_size",
        "generation_batch_size",
        "refit_buffer_size_gb",
        "dynamic_batching.train_mb_tokens",
        "sequence_packing.train_mb_tokens",
    )
)
"""Sizes that are read in a step of training or generation; Megatron's set-up reads the first two as well."""


def is_read_from_teacher(recipe: EffectiveRecipe, key: str) -> bool:
    """Return whether NeMo-RL reads a key from the teacher, which gives logits and is never trained.

    `key` goes below `teacher`. The teacher's backend decides which of its two sections is read.
    """
    section, _, rest = key.partition(".")
    megatron = recipe.get(f"{TEACHER}.megatron_cfg.enabled") is True
    if section in ("megatron_cfg", "dtensor_cfg") and rest and rest != "enabled":
        return (section == "megatron_cfg") == megatron
    if section in _TRAINED:
        return False
    if section == "generation" and rest:
        return rest.partition(".")[0] in _GENERATION
    if key in ("train_global_batch_size", "train_micro_batch_size"):
        return megatron
    return key not in _TRAINING_SIZES


def teacher_drift(recipe: EffectiveRecipe) -> list[Drift]:
    """List the settings where the teacher kept the value that the student's was changed from.

    Settings that NeMo-RL does not read from the teacher are left out.

    A file sets both in one, by merging the student's section into the teacher's or by writing the same
    value twice. A later file or an override that sets only `policy.*` leaves `teacher.*` behind.
    """
    student, teacher = recipe.merged.items.get(STUDENT), recipe.merged.items.get(TEACHER)
    if student is None or teacher is None:
        return []
    order = {file: number for number, file in enumerate(recipe.files)}
    return list(_drift(recipe, (), student, teacher, order))


def _drift(
    recipe: EffectiveRecipe, path: KeyPath, student: Value, teacher: Value, order: dict[str, int]
) -> Iterator[Drift]:
    if isinstance(student, Map) and isinstance(teacher, Map):
        for key, item in student.items.items():
            teacher_item = teacher.items.get(key)
            if teacher_item is not None:
                yield from _drift(recipe, (*path, key), item, teacher_item, order)
        return
    student_level, teacher_level = _level(student, order), _level(teacher, order)
    before = student.under
    while before is not None and _level(before, order) > teacher_level:
        before = before.under
    if student_level <= teacher_level or before is None:
        return
    if not same(plain(before), plain(teacher)) or same(plain(student), plain(teacher)):
        return
    key = format_key(path)
    now, then = recipe.get(f"{STUDENT}.{key}"), recipe.get(f"{TEACHER}.{key}")
    if not same(now, then) and is_read_from_teacher(recipe, key):
        yield Drift(key, now, then, student.mark.file, student.mark.line)


def _level(value: Value, order: dict[str, int]) -> int:
    """Return how late in the chain a value is written; overrides come last."""
    return len(order) + value.mark.line if value.mark.override else order.get(value.mark.file, 0)


def set_in_both(document: Document, key: str, value: Writable, *, spelling: str = "") -> None:
    """Set a setting for student and teacher in one step; raises `RecipeError` and then changes nothing."""
    with document.group():
        for section in (STUDENT, TEACHER):
            document.set(f"{section}.{key}", value, spelling=spelling, copy=True)
