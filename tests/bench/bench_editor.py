"""Time from a key press in the recipe editor to the new tree, checks and memory, over stock recipes.

Run as `python tests/bench/bench_editor.py [CHECKOUT …]`: all distillation recipes of each checkout (without
one, the packaged recipes) are edited, a value set and a character typed. Prints CPU milliseconds; exits with
1 where opening, the 95th percentile of a recipe, or `loop` is above the target. `loop` is the longest time
that a thread ticking as a screen's loop does waited for its turn while another one analyses, as far as that
one was computing: what other processes take of a busy machine is left out.
"""

from __future__ import annotations

import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from recipes.editing import EditSession, Placement, RecipeAnalyser, prepare_reading, read_text
from recipes.library import starting_recipes

PRESSES = 30
TARGET_MS, OPEN_MS, LOOP_MS = 100.0, 300.0, 50.0
PLACE = Placement(2, 4, 40.0)
_TICK_S = 0.005


class EditorTimes(NamedTuple):
    """CPU milliseconds of one recipe: until every leaf is there, then until its checks are, and so on."""

    open: float
    first: float
    presses: list[float]
    wait: float
    """Longest time that another thread, ticking as a screen's loop does, waited for its turn."""


def distillation_recipes(checkout: Path) -> list[Path]:
    """Return the distillation recipes of a checkout."""
    return sorted(path for path in (checkout / "examples").rglob("*.yaml") if "distillation" in path.name)


def times_of(path: Path, checkout: Path | None) -> EditorTimes:
    """Edit one recipe."""
    start = time.process_time()
    session = EditSession.open(path)
    analyser = RecipeAnalyser(path, checkout=checkout, environment={})
    analyser.first_outline(session.state)
    opened = time.process_time()
    analysis = analyser.update(session.state, PLACE)
    first = time.process_time()
    prepare_reading()  # as the screen does, once the recipe is shown
    gc.freeze()  # as the screen does: a full collection over all that is loaded takes 0.1 s

    def press(number: int) -> None:
        nonlocal analysis
        if number % 2:
            session.set_text(
                "policy.max_total_sequence_length", str(2048 + number), inherited=analysis.recipe
            )
        else:
            session.take(read_text(session.state, f"{session.text}#"), merge_step=True)
        analysis = analyser.update(session.state, PLACE)

    presses = []
    for number in range(PRESSES):
        begin = time.process_time()
        press(number)
        presses.append((time.process_time() - begin) * 1000)

    def press_often() -> None:
        for number in range(10):
            press(number)

    wait = longest_wait(press_often)
    return EditorTimes((opened - start) * 1000, (first - opened) * 1000, presses, wait)


def longest_wait(work: Callable[[], object]) -> float:
    """Return the longest wait of this thread, in milliseconds of the CPU time of another one that works."""
    thread = threading.Thread(target=work)
    thread.start()
    worst, before, used = 0.0, time.monotonic(), 0.0
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    while True:
        time.sleep(_TICK_S)
        now, used_before = time.monotonic(), used
        try:
            used = time.clock_gettime(clock)
        except OSError:  # the thread has ended
            return worst * 1000
        worst, before = max(worst, min(now - before - _TICK_S, used - used_before)), now


def percentile_95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def main() -> int:
    """Print a line for each recipe."""
    worst, longest, wait, met = 0.0, 0.0, 0.0, True
    for checkout in map(Path, sys.argv[1:]) if sys.argv[1:] else (None,):
        for path in distillation_recipes(checkout) if checkout is not None else starting_recipes():
            times = times_of(path, checkout)
            late = percentile_95(times.presses)
            worst = max(worst, late)
            longest = max(longest, max(times.presses))
            wait = max(wait, times.wait)
            met = met and late <= TARGET_MS and times.open <= OPEN_MS and times.wait <= LOOP_MS
            middle = statistics.median(times.presses)
            source = checkout.name[:8] if checkout is not None else "packaged"
            print(
                f"{source:9}{path.name[:52]:53}open {times.open:4.0f}  first {times.first:4.0f}  "
                f"press median {middle:5.1f}  p95 {late:5.1f}  loop {times.wait:4.0f} ms"
            )
    print(f"worst p95 {worst:.1f} ms of {TARGET_MS:.0f}, longest {longest:.1f} ms")
    print(f"longest wait of the loop {wait:.0f} ms of {LOOP_MS:.0f}")
    print(f"targets {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
