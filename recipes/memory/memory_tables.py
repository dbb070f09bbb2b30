"""Tables for docs/memory.md: `python -m recipes.memory.memory_tables DIR …`.

Each DIR is a checkout of NeMo-RL, named like its release. The first table is the account's terms with their
formulas; the second, which cards the checkouts' base recipe and the packaged recipes need.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from recipes.inheritance import Resolver
from recipes.memory.estimate import Estimate, estimate
from recipes.memory.rank_sizes import SYMBOLS
from recipes.memory.shapes import Moment, Work
from recipes.memory.training import student_moments, teacher_moments
from recipes.memory.wrapping import V2_HOLDING
from recipes.models import Models
from recipes.models.table import TABLE

CARDS = (40, 80, 141)
"""GiB, as given with --gpu-memory."""
_BASE = "examples/configs/distillation_math.yaml"
_PACKAGED = Path(__file__).parents[1] / "library"
_LEFT_OUT = ("rehearsal.yaml", "nemo-gym.yaml")
"""Packaged recipes without models of their own."""
_EVERYWHERE = ("", "4 P/W", "8 P/W")
"""Formulas of terms that every moment has; without one, the allocator's segments and the workspace."""
_TRAINING = ("student-train", "teacher-score")


def symbols_table() -> str:
    """Return the symbols of the formulas."""
    return _table(("symbol", "stands for"), SYMBOLS.items())


def terms_table() -> str:
    """Return every moment with its terms, for the workers of NeMo-RL."""
    work = Work(TABLE["Qwen/Qwen3-8B"], gpus=8, tokens=2048)
    ways = (
        ("v1", student_moments(work)),
        ("v2", student_moments(replace(work, wrapping=V2_HOLDING))),
        ("v2, one GPU", student_moments(replace(work, gpus=1, wrapping=V2_HOLDING))),
        ("teacher, v1", teacher_moments(work)),
        ("teacher, v2", teacher_moments(replace(work, wrapping=V2_HOLDING))),
        ("teacher, v2, one GPU", teacher_moments(replace(work, gpus=1, wrapping=V2_HOLDING))),
    )
    rows = [
        (way, f"`{moment.id}`: {moment.title}", _sum(moment)) for way, moments in ways for moment in moments
    ]
    return _table(("worker", "moment", "terms"), rows)


def _sum(moment: Moment) -> str:
    return ", ".join(
        f"{term.name} {term.formula}" for term in moment.terms if term.formula not in _EVERYWHERE
    )


def cards_table(checkouts: Sequence[Path]) -> str:
    """Return what each recipe needs at its own size, and the cards on which all of its phases fit."""
    header = ("recipe", "GPUs", "GiB", *(path.name for path in checkouts))
    rows: list[tuple[str, ...]] = []
    for name, paths in _recipes(checkouts):
        by_checkout = [
            {card: _estimate(path, checkout, card) for card in CARDS}
            for path, checkout in zip(paths, checkouts, strict=True)
        ]
        values = [Resolver().resolve(path, ()).values["cluster"] for path in paths]
        gpus = f"{values[-1]['num_nodes']} x {values[-1]['gpus_per_node']}"
        for phase in _TRAINING:
            cells = (_needed(estimates[CARDS[-1]], phase) for estimates in by_checkout)
            rows.append((name, gpus, phase, *cells))
        rows.append((name, gpus, "fits on", *(_fitting(estimates) for estimates in by_checkout)))
    return _table(header, rows)


def _recipes(checkouts: Sequence[Path]) -> Iterator[tuple[str, list[Path]]]:
    yield "base recipe", [path / _BASE for path in checkouts]
    for path in sorted(_PACKAGED.glob("*.yaml")):
        if path.name not in _LEFT_OUT:
            yield path.stem, [path] * len(checkouts)


def _estimate(path: Path, checkout: Path, card: int) -> Estimate:
    models = Models.of({"HF_HOME": "/nonexistent"})
    return estimate(Resolver().resolve(path, ()), models, float(card), checkout)


def _needed(result: Estimate, phase_id: str) -> str:
    return next((f"{phase.needed:.1f}" for phase in result.phases if phase.id == phase_id), "unknown")


def _fitting(estimates: dict[int, Estimate]) -> str:
    return ", ".join(str(card) for card, result in estimates.items() if result.fits) or "none"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(f"{symbols_table()}\n")
    sys.stdout.write(f"{terms_table()}\n")
    sys.stdout.write(cards_table([Path(argument) for argument in sys.argv[1:]]))
