"""Checks of the workers' Python environments: built, complete, in place."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.doctor.package_gaps import gap_words, gaps_of
from launcher.doctor.software_checks import CHANGES_WORKERS, checkout_path, in_checkout
from launcher.doctor.venv import Venv
from launcher.doctor.verdict import Verdict, failed, passed, warned
from recipes.checks.offline import MARK, prefetch_command

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject
    from recipes.checks.offline import Need


def worker_venvs_are_there(subject: Subject) -> Verdict | None:
    """D18: the environments of the recipe's workers are built."""
    needs = [need for need in subject.worker_needs if not need.stuck]
    missing = [need for need in needs if not need.present]
    if not subject.worker_needs:
        return None
    if missing:
        commands = tuple(dict.fromkeys(_on_login_node(subject, need.command) for need in missing))
        text = f"not in {subject.worker_venvs}: {', '.join(need.name for need in missing)}"
        if subject.offline:
            return failed(text, *commands, changes=CHANGES_WORKERS, automatic=True)
        return warned(f"{text}; the job builds them", *commands, changes=CHANGES_WORKERS, automatic=True)
    return passed(f"{len(needs)} in {subject.worker_venvs}")


def _on_login_node(subject: Subject, command: str) -> str:
    """Return a command that builds environments as one that runs in the checkout and may use the internet."""
    return in_checkout(subject, re.sub(r"\buv run\b", "env -u UV_OFFLINE uv run", command))


def no_building_was_interrupted(subject: Subject) -> Verdict | None:
    """D19: no building of a worker's environment was interrupted: every node would wait for its end."""
    if not subject.worker_needs:
        return None
    stuck = [need for need in subject.worker_needs if need.stuck]
    if stuck:
        return failed(
            f"begun and never finished in {subject.worker_venvs}: {_names(stuck)}",
            *(_on_login_node(subject, need.command) for need in stuck),
            changes=CHANGES_WORKERS,
            automatic=True,
        )
    marked = [need for need in subject.worker_needs if need.marked]
    if marked:
        text = f"{_names(marked)} in {subject.worker_venvs}: a node builds it now, or was interrupted"
        commands = (
            f"{_on_login_node(subject, need.command)} && rm -f {_mark(subject, need)}" for need in marked
        )
        return warned(text, *commands, changes=CHANGES_WORKERS)
    return passed(f"no {subject.worker_venvs}/*/{MARK}")


def _names(needs: Iterable[Need]) -> str:
    return ", ".join(need.name for need in needs)


def _mark(subject: Subject, need: Need) -> str:
    return shlex.quote(f"{subject.worker_venvs}/{need.actor}/{MARK}")


def _built_workers(subject: Subject) -> Iterator[tuple[str, Venv]]:
    """Yield the workers' environments that are there, by the full name of the worker."""
    if subject.worker_venvs is not None:
        for need in subject.worker_needs:
            if need.present:
                yield need.actor, Venv(subject.worker_venvs / need.actor)


def worker_venvs_are_complete(subject: Subject) -> Verdict | None:
    """D20: the workers' environments have the packages of their extras, as the checkout names these."""
    problems, incomplete, stops_runs, count = [], [], False, 0
    for actor, venv in _built_workers(subject):
        environment = subject.actors.get(actor)
        if not venv.packages or environment is None:
            continue
        if gaps := gaps_of(checkout_path(subject), venv, environment.extras, subject.node.architecture):
            problems.append(f"{_short(actor)} ({', '.join(environment.extras)}): {gap_words(gaps)}")
            incomplete.append(actor)
            stops_runs = stops_runs or any(gap.stops_runs for gap in gaps)
        count += 1
    if problems:
        judge = failed if stops_runs else warned
        command = _build(subject, incomplete)
        return judge("; ".join(problems), command, changes=CHANGES_WORKERS, automatic=True)
    return passed(f"{count} hold the packages of their extras") if count else None


def worker_venvs_are_in_place(subject: Subject) -> Verdict | None:
    """D21: the workers' environments were built where they are, for a Python that is there."""
    workers = list(_built_workers(subject))
    reasons = {actor: reason for actor, venv in workers if (reason := venv.misplacement())}
    if reasons:
        # What uv has installed it does not install again: the scripts would keep their old Python.
        aside = (_move_aside(venv.path) for actor, venv in workers if actor in reasons)
        text = "; ".join(f"{_short(actor)}: {reason}" for actor, reason in reasons.items())
        return failed(text, *aside, _build(subject, list(reasons)), changes=CHANGES_WORKERS)
    return passed(f"{len(workers)} in {subject.worker_venvs}") if workers else None


def _move_aside(venv: Path) -> str:
    return f"mv {shlex.quote(str(venv))} {shlex.quote(f'{venv}.old')}"


def _short(actor: str) -> str:
    return actor.rpartition(".")[2]


def _build(subject: Subject, actors: list[str]) -> str:
    """Return the command that builds or completes the environments of some workers."""
    assert subject.worker_venvs is not None
    checkout = subject.context.checkout if subject.context is not None else None
    return _on_login_node(subject, prefetch_command(checkout, subject.worker_venvs, actors))
