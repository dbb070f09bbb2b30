"""Running checks: all side by side, each with a time limit; one that hangs costs its own verdict."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from launcher.doctor.verdict import DoctorCheck, Examination, HealthReport, Verdict, unknown
from launcher.text import clean
from launcher.transports.base import is_remote
from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject
    from launcher.transports.base import Transport

LIMIT_S = 2.0
"""For each check: all of them, with the start of the program, shall end within 3 s."""
FAR_LIMIT_S = 60.0
"""For all checks of a host: each of its calls has a limit of its own."""
_FAR_AT_ONCE = 4
"""Checks of a host that are made side by side: a server allows some ten sessions on a connection."""
_MOST_PATIENT = 10.0


def patient(limit_s: float) -> float:
    """Return a time limit on this machine: longer by as much as others keep its processors busy."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return limit_s * min(max(waiting, 1.0), _MOST_PATIENT)


def limit_of(transport: Transport) -> float:
    """Return the seconds that a check may take on a machine, on this one as patiently as it needs now."""
    return FAR_LIMIT_S if is_remote(transport) else patient(LIMIT_S)


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
        limit_s: Seconds for each check; without a verdict by then it is unknown. None: as `limit_of` has it.
        tell: Gets each examination as it comes.
    """
    limit_s = limit_of(subject.transport) if limit_s is None else limit_s
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
    """Yield the answers as they come, for as long as the checks may take; here each check has a thread."""
    answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[DoctorCheck] = queue.SimpleQueue()
    end = time.monotonic() + limit_s
    for check in checks:
        waiting.put(check)

    def run() -> None:
        with suppress(queue.Empty):
            while time.monotonic() < end:
                check, started = waiting.get_nowait(), time.monotonic()
                answers.put((check, _judged(check, subject), time.monotonic() - started))

    for number in range(min(len(checks), _FAR_AT_ONCE) if subject.is_far else len(checks)):
        threading.Thread(target=run, name=f"doctor-{number}", daemon=True).start()
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
