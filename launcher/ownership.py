"""Ownership of run directories: only the user's own act on the user's word alone.

Whoever can write a run's files chooses what `cancel` and `resume` do with the user's rights. So orders about
a directory that another user can write are shown first, with its owner and the exact command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from launcher.errors import InputError, LaunchError
from launcher.runs import JOBS, SPEC, Run
from launcher.text import clean
from launcher.transports.base import Transport


class ForeignRunError(InputError):
    """An order about a run that another user can write, and that was not confirmed."""

    def __init__(self, run: Run, reason: str, command: Sequence[str]) -> None:
        self.reason, self.command = reason, shlex.join(command)
        super().__init__(
            f"not done: {reason}; it would run `{self.command}`",
            where=Path(run.directory),
            fix="Read its run.json and jobs.json; --trust does it all the same.",
        )

    @property
    def question(self) -> str:
        """The question that names the owner and the command."""
        return f"{self.where}: {self.reason}. Run `{self.command}` all the same?"


_NAMES = ("", SPEC, JOBS, "job.sh")
_READ_BY_JOBS = (".sh", ".sub", ".py", ".yaml", ".json", ".env")


def foreign_reason(transport: Transport, run: Run, *, starts: bool = False) -> str:
    """Return who else decides what a run's files say; empty for the user's own.

    `starts`: a job is started, which reads and runs the other files of the directory, too.
    """
    names: Iterable[str] = _NAMES
    if starts:
        entries = transport.listdir(run.directory)
        names = dict.fromkeys((*_NAMES, *(e.name for e in entries if e.name.endswith(_READ_BY_JOBS))))
    for name in names:
        path = str(Path(run.directory, name))
        owner = transport.ownership(path)
        if owner is None:
            continue
        what = clean(name) or "the run's directory"
        if not owner.is_own:
            return f"{what} belongs to {owner.user}"
        if owner.writable_by:
            return f"{what} of {owner.user} can be written by {owner.writable_by}"
    return ""


def require_owner(transport: Transport, run: Run, refusal: str, command: Sequence[str] = ()) -> None:
    """Refuse to change another user's run; a command that would do it is named instead, where there is one.

    Raises:
        LaunchError: the run's directory belongs to another user.
    """
    owner = transport.ownership(run.directory)
    if owner is not None and not owner.is_own:
        raise LaunchError(
            f"{clean(run.spec.id)} {refusal}: its directory belongs to {owner.user}",
            where=Path(run.directory),
            fix=f"`{shlex.join(command)}` does it where you may." if command else f"Ask {owner.user}.",
        )


def require_own(
    transport: Transport, run: Run, command: Sequence[str], *, trust: bool, starts: bool = False
) -> None:
    """Refuse an order about a run that another user can write, unless the user trusts it.

    Args:
        transport: The run's machine.
        run: The run.
        command: The exact command that the order would run.
        trust: The user has agreed to that.
        starts: It starts a job.

    Raises:
        ForeignRunError: the run is another user's, or others can write it.
    """
    reason = "" if trust else foreign_reason(transport, run, starts=starts)
    if reason:
        raise ForeignRunError(run, reason, command)
