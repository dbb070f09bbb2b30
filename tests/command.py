"""Running the command as its users do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launcher.clusters.local import JOB_ID_VARIABLE


@dataclass(frozen=True)
class Command:
    """The `distill-tui` of some environment, with runs kept in a directory of its own."""

    runs: Path
    program: Path = field(default_factory=lambda: Path(sys.executable).parent / "distill-tui")

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return this process's environment with the runs root set, and changes."""
        return {**os.environ, "DISTILL_TUI_RUNS": str(self.runs), **(changes or {})}

    def __call__(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [self.program, *arguments],
            env=self.environment(changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )

    def start(self, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        """Start it."""
        return subprocess.Popen(
            [self.program, *arguments],
            env=self.environment(changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def processes_of(runs: Path) -> dict[int, str]:
    """Return the processes of all runs under a root (by the job id and the paths in their environment)."""
    mark, root = f"{JOB_ID_VARIABLE}=".encode(), str(runs).encode()
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment = (directory / "environ").read_bytes()
            if mark in environment and root in environment:
                found[int(directory.name)] = (directory / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return {pid: line for pid, line in found.items() if line}
