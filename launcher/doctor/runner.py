"""Running checks: all side by side, each with a time limit; one that hangs costs its own verdict."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from launcher.doctor.verdict import DoctorCheck, Examination, HealthReport, Verdict, unknown
from launcher.text import clean
from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject

LIMIT_S = 2.0
"""For each check: all of them, with the start of the program, shall end within 3 s."""
_MOST_PATIENT = 10.0


def patient(limit_s: float) -> float:
    """Return a time limit on this machine: longer by as much as others keep its processors busy."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return limit_s * min(max(waiting, 1.0), _MOST_PATIENT)


def examine(
    checks: Iterable[DoctorCheck],
    subject: Subject,
    *,
    limit_s: float | None = None,
    tell: Callable[[Examination], None] = lambda _: None,
) -> HealthReport:
    """Return the verdicts of the checks that apply.

    A call that a dead file system never answers cannot be ended: its daemon thread is left behind.

    Args:
        checks: The checks.
        subject: What is examined.
        limit_s: Seconds for each check; without a verdict by then it is unknown. None: 2 s, or `patient`.
        tell: Gets each examination as it comes.
    """
    limit_s = patient(LIMIT_S) if limit_s is None else limit_s
    applicable = [check for check in checks if check.needs <= subject.available]
    outcomes: queue.SimpleQueue[tuple[DoctorCheck, Verdict | None, float]] = queue.SimpleQueue()
    begun = time.monotonic()

    def run(check: DoctorCheck) -> None:
        started = time.monotonic()
        verdict = _judged(check, subject)
        outcomes.put((check, verdict, time.monotonic() - started))

    for check in applicable:
        threading.Thread(target=run, args=(check,), name=f"doctor-{check.id}", daemon=True).start()
    verdicts: dict[str, tuple[Verdict | None, float]] = {}
    while len(verdicts) < len(applicable):
        try:
            check, verdict, seconds = outcomes.get(timeout=max(begun + limit_s - time.monotonic(), 0.001))
        except queue.Empty:
            break
        verdicts[check.id] = verdict, seconds
        if verdict is not None:
            tell(Examination(check, verdict, seconds))
    examinations = []
    for check in applicable:
        if check.id not in verdicts:
            late = Examination(check, unknown(f"no answer within {limit_s:.3g} s"), limit_s)
            examinations.append(late)
            tell(late)
            continue
        verdict, seconds = verdicts[check.id]
        if verdict is not None:
            examinations.append(Examination(check, verdict, seconds))
    return HealthReport(tuple(examinations))


def _judged(check: DoctorCheck, subject: Subject) -> Verdict | None:
    """Return a check's verdict; an error of the machine is no verdict about the run."""
    try:
        return check.judge(subject)
    except ExplainedError as error:
        return unknown(error.what)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a loop of links
        return unknown(clean(f"{type(error).__name__}: {error}"))
