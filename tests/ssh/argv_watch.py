"""Command lines of all processes of this machine, of all its namespaces, searched for secrets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PAUSE_S = 0.02


@dataclass
class ArgvWatch:
    """Looks at every process again and again."""

    secrets: list[str]
    """What must stand in no command line; more may be added."""
    held: dict[str, str] = field(default_factory=dict)
    """Secret -> a command line that had it."""
    seen: set[int] = field(default_factory=set)
    """Processes that were looked at."""

    def look(self) -> None:
        """Look at all processes once."""
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            self.seen.add(int(process.name))
            for secret in self.secrets:
                if secret.encode() in line:
                    self.held[secret] = line.replace(b"\0", b" ").decode(errors="replace")


@contextmanager
def watching_argv(secrets: Sequence[str]) -> Iterator[ArgvWatch]:
    """Watch the command lines of all processes meanwhile."""
    watch, over = ArgvWatch(list(secrets)), threading.Event()

    def watch_on() -> None:
        while not over.is_set():
            watch.look()
            time.sleep(_PAUSE_S)

    thread = threading.Thread(target=watch_on, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def files_with(secrets: Sequence[str], *roots: Path) -> dict[Path, list[str]]:
    """Return the files below some directories that hold secrets."""
    found = {}
    for root in roots:
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                held = [secret for secret in secrets if secret.encode() in data]
                if held:
                    found[path] = held
    return found
