"""The Python of a job's environment: whether it starts there, and whether modules must be loaded for it.

A module's Python finds its library through LD_LIBRARY_PATH, which `module load` sets. Nothing but the
interpreter itself is started: no site packages, no code of the checkout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import LaunchError, TransportError
from launcher.plan import passed_on
from launcher.text import clean
from launcher.transports.base import Transport

LIBRARIES = "LD_LIBRARY_PATH"
_TIMEOUT_S = 10.0
"""A start takes 10 ms; on a cold parallel file system, seconds."""
_LOADER = re.compile(
    r"error while loading shared libraries: (?P<library>[^\n]+)|: (?P<version>version `[^\n]+ not found)"
)
"""Complaint of the dynamic loader (glibc, elf/dl-minimal.c, elf/dl-version.c)."""


@dataclass(frozen=True, slots=True)
class InterpreterState:
    """The start of a job's Python."""

    python: str
    complaint: str = ""
    """What the loader says where it does not start in the job's environment; empty where it does."""
    starts_here: bool = True
    """Whether it starts with the libraries of the shell."""
    needs_libraries: bool = False
    """Whether it starts only with LD_LIBRARY_PATH."""

    def obstacle(self, modules: tuple[str, ...]) -> LaunchError | None:
        """Return why a job would end at once; `modules` are those that are loaded in the shell."""
        if not self.complaint:
            return None
        fix = "Load the modules that it was made with, and give their names with --modules."
        if self.starts_here and modules:
            fix = "It starts in your shell: --modules loaded makes jobs load the modules of your shell."
        elif self.starts_here:
            fix = f"It starts in your shell: --env {LIBRARIES} passes the path of its libraries."
        return LaunchError(f"the job's Python does not start: {self.complaint}", where=self.python, fix=fix)

    def note(self, modules: tuple[str, ...]) -> str:
        """Return a remark where the job depends on the shell; `modules` are those loaded there."""
        if self.complaint or not self.needs_libraries:
            return ""
        text = f"the job's Python needs {LIBRARIES}, which the job gets from your shell"
        if not modules:
            return text
        return f"{text} ({', '.join(modules)}); --modules loaded makes jobs load these, and is remembered"


def interpreter_state(
    transport: Transport, venv: str, shell: Mapping[str, str], job: Mapping[str, str]
) -> InterpreterState:
    """Return how a job's Python starts: with the libraries of the job, of the shell, and with none.

    Args:
        transport: The machine.
        venv: The Python environment of the job.
        shell: This program's environment.
        job: The job's environment.
    """
    python = str(Path(venv, "bin", "python"))
    complaints: dict[str, str] = {}

    def complaint(libraries: str) -> str:
        if libraries not in complaints:
            complaints[libraries] = _complaint(transport, python, shell, libraries)
        return complaints[libraries]

    own, mine = job.get(LIBRARIES, ""), shell.get(LIBRARIES, "")
    in_job = complaint(own)
    if in_job:
        return InterpreterState(python, in_job, starts_here=own != mine and not complaint(mine))
    return InterpreterState(python, needs_libraries=bool(own) and bool(complaint("")))


def _complaint(transport: Transport, python: str, shell: Mapping[str, str], libraries: str) -> str:
    """Return the loader's complaint; empty where it starts, or does not for another reason."""
    environment = passed_on(shell) | ({LIBRARIES: libraries} if libraries else {})
    try:
        done = transport.run([python, "-I", "-S", "-c", ""], env=environment, timeout_s=_TIMEOUT_S)
    except TransportError:
        return ""  # no program that can be run: `check_venv` tells of that
    match = _LOADER.search(done.stderr) if done.code else None
    return clean((match["library"] or match["version"]).strip()) if match is not None else ""
