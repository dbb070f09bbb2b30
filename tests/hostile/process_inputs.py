"""Generators of odd processes: streams closed or full, variables of any content, limits, a directory that is gone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.hostile.attempts import ROOT

STREAMS = ("", ">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-", "> /dev/full", "2> /dev/full", "| head -c 1", "| true", "< /dev/zero",
           "> /dev/full 2>&1", "<&- >&-", "< .")  # fmt: skip
VARIABLES = (
    "", "-u HOME", "HOME=/nosuch", "HOME=/etc/passwd", "HOME=/proc/1", "HOME=", "HOME=relative", "HOME=~nosuch", "COLUMNS=10000000",
    "COLUMNS=-5 LINES=0", "COLUMNS=x", "TERM=", "-u TERM", "TERM=\x1b[2J", "LC_ALL=C", "LC_ALL=nosuch", "PYTHONIOENCODING=ascii",
    "PYTHONIOENCODING=latin-1", "LC_ALL=tr_TR.UTF-8", "TZ=Nosuch/Zone", "TZ=:/dev/zero", "USER=\x1b[2J\u202e LOGNAME=\x07", "-u USER",
    "XDG_CONFIG_HOME=/dev/null XDG_STATE_HOME=/proc/1 XDG_CACHE_HOME=/dev/full", "XDG_CONFIG_HOME=\udcff", "XDG_STATE_HOME=\x01",
    "DISTILL_TUI_RUNS=~nosuch/x", "DISTILL_TUI_RUNS=/dev/full", "DISTILL_TUI_RUNS=\udcff\x1b", "DISTILL_TUI_RUNS=/proc/1/root",
    "TEXTUAL_COLOR_SYSTEM=x TEXTUAL_FPS=x", "TEXTUAL_THEME=nosuch", "NO_COLOR=1", "PATH=", "PATH=/dev/null", "-i", "HF_HOME=/dev/zero",
    "NEMO_RL_ROOT=/dev/full", "NEMO_RL_ROOT=\x1b", "PYTHONWARNINGS=error", "PYTHONOPTIMIZE=2", "PYTHONHASHSEED=0", "TMPDIR=/nosuch",
)  # fmt: skip
LIMITS = ("", "", "", "ulimit -n 6; ", "ulimit -n 9; ", "ulimit -n 14; ", "ulimit -f 0; ", "mkdir gone; cd gone; rmdir ../gone; ",
          "umask 000; ", "umask 777; ", "ulimit -s 256; ")  # fmt: skip
COMMANDS = (
    "runs", "runs --json", "settings", "recipe lint r.yaml", "recipe resolve r.yaml --json", "watch --once logs", "watch --once --json logs",
    "report logs", "report logs --tar t.tgz", "check r.yaml", "cancel nosuch", "resume nosuch", "--help", "recipe --help", "",
    "recipe set r.yaml a 2", "detect", "profile", "settings notify bell", "watch '~nosuch/x'", "recipe show $'\\xff.yaml'",
    "site export", "recipe diff r.yaml r.yaml", "edit r.yaml", "new", "memory r.yaml",
)  # fmt: skip
DEADLINE_S = 90
"""Time of the whole process with its start, on a machine that has other work."""


@dataclass(frozen=True)
class OddProcess:
    """A command line with what is odd about its process."""

    limits: str
    variables: str
    command: str
    streams: str

    @property
    def script(self) -> str:
        """The shell's words for it."""
        words = " ".join(shlex.quote(word) for word in self.variables.split(" ") if word)
        if self.variables.startswith("-u "):
            words = self.variables
        program = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'distill_tui.py'))}"
        return f"{self.limits}env {words} {program} {self.command} {self.streams}"


def odd_processes(random: Random, count: int) -> Iterator[OddProcess]:
    """Yield processes: every oddity in turn, with others of the other kinds."""
    for number in range(count):
        chosen = [random.choice(kind) for kind in (LIMITS, VARIABLES, COMMANDS, STREAMS)]
        if number % 2:  # one oddity alone
            chosen = ["", "", chosen[2], ""]
            kind = (number // 2) % 3
            position, values = ((0, LIMITS), (1, VARIABLES), (3, STREAMS))[kind]
            chosen[position] = values[(number // 6) % len(values)]
        yield OddProcess(chosen[0], chosen[1], chosen[2], chosen[3])


def wrong_with_process(process: OddProcess, directory: Path) -> str:
    """Run a process; return what is wrong with it."""
    directory.mkdir()
    (directory / "r.yaml").write_text("# ü\na: 1\n")
    (directory / "logs").mkdir()
    (directory / "logs" / "ray-driver.log").write_bytes(
        b"\xff\xfe \x1b[2J gr\xc3\xb6\xc3\x9fe\nValueError: no\n"
    )
    environment = {name: os.environ[name] for name in ("PATH",)} | {
        "HOME": str(directory), "LANG": "C.UTF-8", "TERM": "xterm", "DISTILL_TUI_RUNS": str(directory / "runs"),
    }  # fmt: skip
    script = os.fsencode(process.script)
    began = time.monotonic()
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=directory, env=environment, capture_output=True, stdin=subprocess.DEVNULL,
            check=False, timeout=DEADLINE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no end within {time.monotonic() - began:.0f} s"
    if b"Traceback" in done.stderr + done.stdout:
        return done.stderr.decode("utf-8", "replace")[-600:]
    if done.returncode not in (0, 1, 2, 3, 126, 127, 141):
        return f"exit code {done.returncode}: {done.stderr[-300:]!r}"
    if b"\x1b" in done.stderr + done.stdout and "recipe show" not in process.command:
        return f"an escape byte in {(done.stderr + done.stdout)[-300:]!r}"
    return ""
