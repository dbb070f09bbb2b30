"""Notice on the terminal that a command waits for one of Slurm's, which may not answer for a minute."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_POLL_S = 3.0
_SLURM_COMMANDS = frozenset(
    {"sinfo", "squeue", "sacct", "sacctmgr", "scontrol", "sbatch", "scancel", "sprio"}
)


class WaitNotice:
    """Notice that a child process has not ended yet, once for each command; to be used with `with`.

    Without effect where standard error is no terminal, and once a screen is open.
    """

    def __init__(self, poll_s: float = _POLL_S) -> None:
        self._poll_s = poll_s
        self._over = threading.Event()

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            threading.Thread(target=self._watch, name="wait notice", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        before: frozenset[int] = frozenset()
        notified: set[str] = set()
        while not self._over.wait(self._poll_s) and "textual" not in sys.modules:
            now = frozenset(child_pids())
            for command in {command_of(pid) for pid in now & before} - notified - {""}:
                notified.add(command)
                from tui.headless.output import say

                say(f"waiting for {command} …")
            before = now


def child_pids() -> Iterator[int]:
    """Yield the children of this process; none where the system does not tell."""
    parent = str(os.getpid())
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = entry.read_text(errors="replace").rpartition(")")[2]
        except OSError:  # it has ended
            continue
        if after_name.split()[1:2] == [parent]:
            yield int(entry.parent.name)


def command_of(pid: int) -> str:
    """Return the name of the command that a process runs; of a script, the script's; "" once it is over."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    names = [word.rpartition(b"/")[2].decode(errors="replace") for word in words[:2]]
    return next((name for name in names if name in _SLURM_COMMANDS), "")
