"""The commit of a checkout and its local changes, for the record of a run; git is only asked."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from launcher.errors import TransportError
from launcher.plan import passed_on
from launcher.text import clean, clean_lines
from launcher.transports.base import Transport

TIMEOUT_S = 10.0
"""For each question: a cold file system may take seconds for a checkout of 3,000 files."""
_LINES = 60
_OWN_FILES = ("--", "nemo_rl/package_info.py", "nemo_rl/__init__.py")
"""Files that every checkout has."""


class CheckoutState(BaseModel):
    """The commit of a checkout and how its files differ from it; empty texts where git does not tell."""

    model_config = ConfigDict(frozen=True)

    commit: str = ""
    branch: str = ""
    changes: str = ""
    """`git diff --stat` against the commit, at most 60 lines."""
    untracked: int = 0
    """Files that git does not know."""

    @property
    def dirty(self) -> bool:
        """Whether its files differ from the commit."""
        return bool(self.changes or self.untracked)


def checkout_state(transport: Transport, environment: Mapping[str, str], path: str) -> CheckoutState:
    """Return the state of a checkout; what git does not tell in time is left out."""
    # Optional locks would write into the index of somebody else's checkout.
    own = {**passed_on(environment), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C.UTF-8"}

    def git(*arguments: str) -> str:
        try:
            done = transport.run(["git", "-C", path, *arguments], env=own, timeout_s=TIMEOUT_S)
        except TransportError:
            return ""
        return done.stdout if done.code == 0 else ""

    commit, _, inside = clean_lines(git("rev-parse", "HEAD", "--show-prefix")).partition("\n")
    # An unpacked release in somebody's own repository: that one's commit says nothing of it.
    if not commit or (inside.strip() and not git("ls-files", *_OWN_FILES).strip()):
        return CheckoutState()
    diff = ("diff", "--stat", "--no-color", "--no-ext-diff", "HEAD", "--", ".")
    stat = clean_lines(git(*diff).rstrip()).split("\n")
    if len(stat) > _LINES:
        stat = [*stat[: _LINES - 2], f" … {len(stat) - _LINES + 1} more files", stat[-1]]
    status = git("status", "--porcelain", "--untracked-files=normal", "--no-renames", "--", ".")
    return CheckoutState(
        commit=commit,
        branch=clean(git("rev-parse", "--abbrev-ref", "HEAD").strip()),
        changes="\n".join(stat).strip("\n"),
        untracked=sum(line.startswith("??") for line in status.splitlines()),
    )
