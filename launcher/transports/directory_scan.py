"""One listing of a directory of this machine, which goes on behind an entry that gives no answer.

A link to a mount whose server is gone, or such a mount itself, hangs the look at that entry alone. The others
are listed; it is listed as silent, and not looked at again before its call has returned.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from launcher.transports.base import FileStat
from recipes.file_calls import absolute, unanswered_paths


def entry_of(name: str, status: os.stat_result) -> FileStat:
    """Return an entry from what `stat` says of it."""
    return FileStat(name, status.st_size, status.st_mtime, status.st_ino, stat.S_ISDIR(status.st_mode))


@dataclass(slots=True)
class DirectoryScan:
    """A listing as far as it got; `run` is called on a thread, which may hang."""

    path: str
    entries: list[FileStat] = field(default_factory=list)
    pending: list[os.DirEntry[str]] | None = None
    """Entries that are to be looked at, the next one last; None before the names are listed."""
    at: os.DirEntry[str] | None = None
    """Entry that is being looked at."""

    def run(self) -> list[FileStat]:
        """Look at what is pending; return all entries, sorted by name.

        Raises:
            OSError: the directory cannot be listed.
        """
        if self.pending is None:
            with os.scandir(self.path) as iterator:
                self.pending = list(iterator)
        silent = set(unanswered_paths())
        while self.pending:
            item = self.at = self.pending.pop()
            if silent and self.where in silent:
                self.entries.append(_silent(item.name))
                continue
            try:
                self.entries.append(self.look_at(item))
            except OSError:  # removed meanwhile, or a broken link
                continue
        return sorted(self.entries, key=lambda entry: entry.name)

    def look_at(self, item: os.DirEntry[str]) -> FileStat:
        """Return what is known of an entry."""
        return entry_of(item.name, item.stat())

    @property
    def where(self) -> str:
        """Path of the entry that is being looked at; of the directory before the first one."""
        return absolute(self.path if self.at is None else os.path.join(self.path, self.at.name))

    def behind_silence(self) -> DirectoryScan | None:
        """Return what goes on without the entry that gave no answer; None where the directory gave none."""
        if self.at is None or self.pending is None:
            return None
        return type(self)(self.path, [*self.entries, _silent(self.at.name)], list(self.pending), self.at)


def _silent(name: str) -> FileStat:
    return FileStat(name, 0, 0.0, 0, is_dir=False, is_silent=True)
