"""Running checks: all side by side, each with a time limit; one that hangs costs its own verdict."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

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
    examinations: dict[str, Examination] = {}
    answered: set[str] = set()
    for check, verdict, seconds in _outcomes(applicable, subject, limit_s):
        answered.add(check.id)
        if verdict is not None:
            examinations[check.id] = Examination(check, verdict, seconds)
            tell(examinations[check.id])
    for check in applicable:
        if check.id not in answered:
            late = unknown(f"no answer within {limit_s:.3g} s")
            examinations[check.id] = Examination(check, late, limit_s)
            tell(examinations[check.id])
    return HealthReport(tuple(examinations[item.id] for item in applicable if item.id in examinations))


_Answer: TypeAlias = tuple[DoctorCheck, Verdict | None, float]
"""A check with its verdict (None: it does not apply), and the seconds that it took."""


def _outcomes(checks: Sequence[DoctorCheck], subject: Subject, limit_s: float) -> Iterator[_Answer]:
    """Yield the answers as they come, for as long as the checks may take; each check has a thread."""
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    end = time.monotonic() + limit_s

    def run(check: DoctorCheck) -> None:
        started = time.monotonic()
        answers.put((check, _judged(check, subject), time.monotonic() - started))

    for check in checks:
        threading.Thread(target=run, args=(check,), name=f"doctor-{check.id}", daemon=True).start()
    for _ in checks:
        try:
            yield answers.get(timeout=max(end - time.monotonic(), 0.001))
        except queue.Empty:
            return


def _judged(check: DoctorCheck, subject: Subject) -> Verdict | None:
    """Return a check's verdict; an error of the machine is no verdict about the run."""
    try:
        return check.judge(subject)
    except ExplainedError as error:
        return unknown(error.what)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a loop of links
        return unknown(clean(f"{type(error).__name__}: {error}"))
