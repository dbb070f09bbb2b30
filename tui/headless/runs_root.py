"""The question where runs are kept, at the terminal or as a hint."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.transports.base import is_remote
from recipes.errors import ExplainedError
from tui.headless.output import say

if TYPE_CHECKING:
    from launcher.storage.decision import RunStorage, StorageQuestion
    from launcher.submit.submit import SubmissionPlan
    from launcher.transports.base import Transport


def choose_runs_root(
    plan: SubmissionPlan, storage: RunStorage, transport: Transport, *, asking: bool
) -> bool:
    """Ask where runs are kept, if that is open; return whether it is now another directory.

    Without a terminal, or without `asking`, a line on standard error names the command that decides it.
    """
    from launcher.storage.decision import storage_question

    if plan.blocking or plan.obstacle is not None or is_remote(transport):
        return False  # the settings of another machine are decided there
    question = storage_question(plan.submission.layout, storage, transport, os.environ)
    if question is None:
        return False
    if not asking or not sys.stdin.isatty() or not sys.stderr.isatty():
        say(question.hint())
        return False
    return _ask(question, storage.root.path)


def _ask(question: StorageQuestion, root: Path) -> bool:
    """Ask until there is an answer that can be used; an empty one decides nothing."""
    from launcher.settings import KEEP
    from launcher.storage.decision import decide
    from tui.headless.settings import tell_earlier

    for line in question.lines():
        say(line)
    choices = question.choices()
    for number, (_, words) in enumerate(choices, 1):
        say(f"  {number}  {words}")
    say(f"  k  keep {root}")
    keys = "".join(f"{number}, " for number in range(1, len(choices) + 1))
    while True:
        say(f"Keep runs where? [{keys}k, or a directory; empty: as it is, ask again next time] ")
        answer = sys.stdin.readline().strip()
        if not answer:
            return False
        if answer.isdecimal() and 1 <= int(answer) <= len(choices):
            answer = choices[int(answer) - 1][0]
        elif answer.isdecimal():
            say(f"there is no answer {answer}")
            continue
        elif answer.lower() in ("k", KEEP):
            answer = KEEP
        try:
            chosen = decide(answer, os.environ)
        except ExplainedError as error:
            say(str(error))
            continue
        say(f"runs are kept in {chosen}; `distill-tui settings storage.runs DIR` changes that")
        tell_earlier()
        return chosen != root
