"""Differences between two predictions for a recipe: failures and warnings that came, and that went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recipes.checks import Report, Result
    from recipes.memory import Estimate

_SHOWN = 2


@dataclass(frozen=True, slots=True)
class PreflightChanges:
    """Changes since the prediction before: findings, and phases that no longer fit or fit again."""

    new: tuple[Result, ...] = ()
    """Failures first, then warnings."""
    solved: tuple[Result, ...] = ()
    overfull: tuple[str, ...] = ()
    relieved: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the changes as one sentence; "" for none."""
        parts = [
            *_named("would now fail", (item for item in self.new if item.outcome == "fail")),
            *([f"no longer fits: {', '.join(self.overfull)}"] if self.overfull else ()),
            *_named("new warning", (item for item in self.new if item.outcome == "warn")),
            *(
                [f"solved: {', '.join(dict.fromkeys(item.id for item in self.solved))}"]
                if self.solved
                else ()
            ),
            *([f"fits again: {', '.join(self.relieved)}"] if self.relieved else ()),
        ]
        return "; ".join(parts)


def _named(words: str, results: Iterable[Result]) -> list[str]:
    items = list(results)
    if not items:
        return []
    texts = [f"{item.id} {item.message or item.title}" for item in items[:_SHOWN]]
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return [f"{words}: {', '.join(texts)}{more}"]


def subject(result: Result) -> str:
    """Return the key that a finding is about; "" for none."""
    return result.where[0].key if result.where else ""


def identity(result: Result) -> tuple[str, str, str]:
    """Return what makes two findings the same one: rule, outcome and key."""
    return result.id, result.outcome, subject(result)


def changes(
    before: Report | None, after: Report, memory_before: Estimate | None, memory_after: Estimate | None
) -> PreflightChanges:
    """Compare two predictions; nothing has changed where there is none before."""
    if before is None:
        return PreflightChanges()
    old, new = _findings(before), _findings(after)
    full_before, full_after = _overfull(memory_before), _overfull(memory_after)
    return PreflightChanges(
        tuple(result for key, result in new.items() if key not in old),
        tuple(result for key, result in old.items() if key not in new),
        tuple(phase for phase in full_after if phase not in full_before) if memory_before else (),
        tuple(phase for phase in full_before if phase not in full_after) if memory_after else (),
    )


def _findings(report: Report) -> dict[tuple[str, str, str], Result]:
    return {
        identity(result): result
        for outcome in ("fail", "warn")
        for result in report.results
        if result.outcome == outcome
    }


def _overfull(memory: Estimate | None) -> list[str]:
    return [phase.id for phase in memory.phases if not phase.fits] if memory is not None else []
