"""Verdicts on attempts: what a hostile input must never bring about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.hostile.attempts import (
    DEADLINE_S,
    MEMORY_MIB,
    SECRET,
    Attempt,
    Outcome,
    Tally,
    run_attempts,
)

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Without U+0085, which a recipe's text may hold as a line break."""
Look = Callable[[Attempt, Path, Outcome], Iterator[str]]
"""Further look at what an attempt left behind; yields what is wrong."""


def tally(attempts: Iterable[Attempt], directory: Path, look: Look, *, at_once: int = 1) -> Tally:
    """Try attempts, so many batches at once; count them, and note those that end badly."""
    result = Tally()
    for attempt, folder, outcome, peak in run_attempts(attempts, directory, at_once=at_once):
        result.tried[attempt.group] += 1
        result.peak_mib = max(result.peak_mib, peak)
        result.slowest_s = max(result.slowest_s, outcome.cpu_s)
        reasons = [*wrong_with(attempt, outcome), *look(attempt, folder, outcome)]
        if peak > MEMORY_MIB:
            reasons.append(f"{peak:.0f} MiB (the batch)")
        if reasons:
            result.bad.append(f"{attempt.group}/{attempt.kind}: {describe(attempt)}: {'; '.join(reasons)}")
    return result


def describe(attempt: Attempt) -> str:
    """Return an attempt for a report, cut where it is long."""
    files = {name: data[:160] for name, data in attempt.files.items()}
    return f"{[word[:80] for word in attempt.argv]!r} {str(files)[:600]} {dict(attempt.special)}"


def wrong_with(attempt: Attempt, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with an outcome, whatever was tried."""
    if outcome.fault or outcome.code not in (0, 1, 2, 3):
        yield outcome.fault or f"exit code {outcome.code}"
    # Others use the machine, too.
    if outcome.cpu_s > DEADLINE_S or outcome.wall_s > attempt.deadline_s + 20 * outcome.cpu_s:
        yield f"{outcome.cpu_s:.1f} s of CPU in {outcome.wall_s:.1f} s"
    if "too deeply or too large (" in outcome.err:
        yield "it ended at a limit of Python and not at one of ours"
    error = outcome.err[outcome.err.rfind("\ndistill-tui: ") + 1 :]  # behind what was said before
    if outcome.code in (2, 3) and error.count("\n") > 3:
        yield f"an error of {error.count(chr(10))} lines: {error[:300]!r}"
    if outcome.code in (2, 3) and not error.startswith("distill-tui: "):
        yield f"an error without words: {outcome.err[:200]!r}"
    if _UNPRINTABLE.search(outcome.err):
        yield f"control characters in {outcome.err[:300]!r}"
    if _UNPRINTABLE.search(outcome.out):
        yield f"control characters in {outcome.out[:300]!r}"
    if SECRET in outcome.out + outcome.err:
        yield f"the secret in {(outcome.out + outcome.err)[:400]!r}"
    if "--json" in attempt.argv and outcome.code == 0 and len(outcome.out.encode()) < 20_000:
        json.loads(outcome.out)
    if attempt.refused and (outcome.code == 0 or not re.search(attempt.refused, outcome.err)):
        yield f"not refused with {attempt.refused}: {outcome.code} {outcome.err[:300]!r}"


def unchanged_unless_edited(attempt: Attempt, folder: Path, outcome: Outcome) -> Iterator[str]:
    """Yield what changed in the folder of an attempt that only reads or failed, and what was left there."""
    if not folder.is_dir():
        return
    names = {path.name for path in folder.iterdir()}
    left = names - set(attempt.files) - set(attempt.special)
    if left:
        yield f"left behind: {sorted(left)}"
    edits = {"set", "unset", "insert", "comment", "minimise"} & set(attempt.argv[:2])
    if edits and outcome.code == 0:
        return
    for name, data in attempt.files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            yield f"{name!r} was changed although the command ended with {outcome.code}"
