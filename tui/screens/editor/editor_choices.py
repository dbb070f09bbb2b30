"""Rows of the editor's lists, and what can be typed for a place. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recipes.editing import Placement
from tui.widgets.choice_list import ListChoice

if TYPE_CHECKING:
    from recipes.editing import FittingChange, KeyMatch, LegalValue
    from recipes.planning import Fix

PLACE_HINT = "nodes x GPUs of each node x GiB of a GPU, such as 2 x 4 x 40; empty for the recipe's own"
_PLACE = re.compile(
    r"\s*(\d{1,6})\s*[x×*]\s*(\d{1,6})(?:\s*(?:GPUs?)?\s*[x×*]\s*(\d{1,6}(?:\.\d+)?)\s*(?:GiB|GB)?)?\s*",
    re.IGNORECASE,
)


def placement_of(text: str) -> Placement | None:
    """Read `nodes x GPUs [x GiB]`; empty text is the recipe's own place, None is no place."""
    if not text.strip():
        return Placement()
    match = _PLACE.fullmatch(text)
    if match is None or int(match[1]) < 1 or int(match[2]) < 1:
        return None
    memory = float(match[3]) if match[3] else None
    return Placement(int(match[1]), int(match[2]), memory) if memory is None or memory > 0 else None


def value_choice(item: LegalValue) -> ListChoice:
    """Return a value to choose: what it would make fail, in full while it is the current one."""
    note = item.note or ("present value" if item.present else "")
    return ListChoice(item.text, note, "fail" if item.note else "", detail=item.note)


def match_choice(match: KeyMatch) -> ListChoice:
    """Return a match of the search: its value, or that it is not set."""
    value = match.value if match.is_set else "(not set)"
    reason = match.help if match.reason == "comment" or not match.is_set else ""
    return ListChoice(match.key, f"{value}  {reason}".strip(), value=match.key, detail=match.help)


def change_choice(change: FittingChange, index: int) -> ListChoice:
    """Return a change with which the recipe fits: what each phase then needs."""
    needed = ", ".join(f"{phase} {gib:.0f}" for phase, gib in change.needed)
    left = f"; {' and '.join(change.overfull)} would still not fit" if change.overfull else ""
    detail = f"{change.fix.title} · then {needed} GiB{left}"
    return ListChoice(change.fix.title, "", "warn" if change.overfull else "pass", str(index), detail)


def fix_choice(fix: Fix, index: int) -> ListChoice:
    """Return a fix to choose."""
    return ListChoice(fix.title, value=str(index), detail=fix.title)
