"""Keys of a recipe as people write them: `policy.scheduler.0.kwargs`, `a."b.c"`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recipes.errors import Exit, RecipeError
from recipes.limits import DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Step = str | int | float | bool | None
"""One step of a path: a key of a mapping as it is typed, or the number of a list item."""

KeyPath = tuple[Step, ...]
"""A path into a recipe. A string step also finds the key or item that is spelled like it."""

_LONGEST_GUESSED = 200
"""Characters of a misspelt key that are compared with others."""
_PLAIN = re.compile(r"[^.\"\s]+")
_STEP = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."][^.]*)')


class KeyMissingError(RecipeError):
    """A recipe has no such key."""

    exit_code = Exit.FAILED


def nearest_key(key: str, keys: Iterable[str]) -> str:
    """Return the key that was most likely meant: one of its name, else a similar one."""
    from difflib import get_close_matches

    wanted = parse_key(key[:_LONGEST_GUESSED])
    present = list(keys)
    sections = {format_key(parse_key(name)[:-1]) for name in present} - {""}
    candidates = [*present, *sections]
    same_name = [name for name in candidates if wanted and parse_key(name)[-1] == wanted[-1]]
    near = get_close_matches(key, same_name, n=1, cutoff=0.0) or get_close_matches(
        key, candidates, n=1, cutoff=0.8
    )
    return near[0] if near else ""


def parse_key(text: str) -> KeyPath:
    """Split a dotted key into its steps; "" and "." are the whole recipe. Raises `RecipeError`."""
    if text in ("", "."):
        return ()
    steps: list[Step] = []
    position = 0
    while True:
        match = _STEP.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != "."):
            fix = 'Write a.b.c, list items by number (a.0.b), keys with a dot in quotes (a."b.c").'
            raise RecipeError(f"invalid key '{text}'", fix=fix)
        quoted, plain = match.groups()
        steps.append(plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        if len(steps) > DEPTH.value:
            raise RecipeError(
                f"invalid key '{text[:60]}…' (more than {DEPTH})", fix="No recipe nests so deep."
            )
        if match.end() == len(text):
            return tuple(steps)
        position = match.end() + 1


def format_key(path: Iterable[Step]) -> str:
    """Join steps to a dotted key that `parse_key` reads back."""
    return ".".join(format_step(step) for step in path)


def format_step(step: Step) -> str:
    """Write one step of a dotted key: quoted if it is empty or holds a dot, quote or space."""
    text = step if isinstance(step, str) else step_text(step)
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def list_index(text: str) -> int | None:
    """Return the list index that a step is written as, None if it is none (`int` takes other digits, too)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def step_text(step: object) -> str:
    """Write a key that is not a string as in a dotted key and in JSON."""
    if step is None:
        return "null"
    if isinstance(step, bool):
        return "true" if step else "false"
    return str(step)


def find_step(mapping: Mapping[Step, object], step: Step) -> Step | None:
    """Return the key of a mapping that a step means, None if there is none (a key None is never meant)."""
    if isinstance(step, str) and step in mapping:  # only a string equals a string
        return step
    if step in mapping and any(key is step or type(key) is type(step) for key in mapping if key == step):
        return step
    if isinstance(step, str):
        for key in mapping:
            if key is not None and not isinstance(key, str) and step_text(key) == step:
                return key
    return None
