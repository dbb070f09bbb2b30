"""The output in `docs/juwels.md`, remade on the test cluster: `python -m tests.slurm.guide` (as root).

The guide's text is written by hand. In its indented blocks, each line `$ COMMAND` is run in a shell as at
JSC, and the lines below it are replaced by what it prints. `RUN` in a command is the latest run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.slurm.jsc_shell import JscShell, opened

GUIDE = Path(__file__).parents[2] / "docs" / "juwels.md"
_PROMPT = "    $ "
_RUN = re.compile(r"\b\d{8}-\d{6}-[\w-]+-[0-9a-f]{4}\b")


@dataclass(frozen=True)
class Shown:
    """A command of the guide, with the output below it."""

    command: str
    output: tuple[str, ...]


def shown_commands(text: str) -> list[Shown]:
    """Return the commands of a guide with their outputs."""
    return [Shown(command, tuple(output)) for command, output in _parts(text.splitlines()) if command]


def remade(text: str, run: Callable[[str], list[str]]) -> str:
    """Return a guide with the output of its commands as `run` prints it."""
    lines = []
    for command, rest in _parts(text.splitlines()):
        if command:
            lines += [f"{_PROMPT}{command}", *(f"    {line}".rstrip() for line in run(command))]
        else:
            lines += rest
    return "\n".join(lines) + "\n"


def shape(output: Sequence[str]) -> list[str]:
    """Return the lines of an output without what differs from run to run: times, names, sizes, progress."""
    text = "\n".join(line.strip() for line in output if "·" not in line)
    text = re.sub(r"\bdt-[0-9a-f]{16}\b", "TOKEN", _RUN.sub("RUN", text))
    return re.sub(r"[\d.,:]*\d|--:--:--", "#", text).splitlines()


def _parts(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield commands with the lines of their output, and other lines without a command."""
    command, kept = "", list[str]()
    for line in lines:
        if line.startswith(_PROMPT):
            yield command, kept
            command, kept = line.removeprefix(_PROMPT), []
        elif command and not line.startswith("    "):
            yield command, kept
            command, kept = "", [line]
        else:
            kept.append(line.removeprefix("    ") if command else line)
    yield command, kept


@dataclass
class Runner:
    """Runs the guide's commands, one after another, as a user at JSC would."""

    shell: JscShell
    latest: str = ""
    """The latest run that was submitted."""

    def __call__(self, command: str) -> list[str]:
        """Run a command; returns the lines that it prints."""
        done = subprocess.run(
            self.shell.argv("bash", "-c", re.sub(r"\bRUN\b", self.latest, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=240,
        )
        if "submit" in command and "dry-run" not in command:
            self.latest = next(iter(_RUN.findall(done.stdout)), self.latest)
        text = done.stdout.replace(f"{sys.prefix}/bin", f"{self.shell.home}/.local/bin")
        return [line.rstrip() for line in text.splitlines()]


def main() -> int:
    """Remake the guide."""
    releases = Path(os.environ.get("DISTILL_TUI_TEST_DATA", "../shared")) / "nemo-versions"
    cluster = Cluster()
    cluster.up()
    with opened(cluster, releases) as shell:
        GUIDE.write_text(remade(GUIDE.read_text(encoding="utf-8"), Runner(shell)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
