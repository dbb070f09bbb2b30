"""The edges of a process: whatever its streams, variables and limits are, an answer in words and no traceback."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from launcher.errors import InputError, TransportError
from launcher.paths import runs_root
from launcher.transports.bounded_command import OutputTooLargeError, run_bounded
from launcher.transports.local import LocalTransport
from tests.hostile.attempts import ROOT
from tests.hostile.process_inputs import OddProcess, odd_processes, wrong_with_process
from tests.tui.fakeslurm import LoginNode
from tests.tui.terminal import opened
from tui.terminal import on_signals
from tui.theme import THEME, initial_theme


@pytest.mark.parametrize(
    "process",
    [
        OddProcess("", "", "runs", ">&-"),
        OddProcess("", "", "", "<&- >&- 2>&-"),
        OddProcess("", "", "report /nosuch", "2> /dev/full"),
        OddProcess("", "DISTILL_TUI_RUNS=~nosuch/x", "runs", ""),
        OddProcess("", "", "--help", "> /dev/full"),
    ],
    ids=["stdout closed", "all closed", "stderr full", "no such home", "stdout full"],
)
def test_an_odd_process(process: OddProcess, tmp_path: Path) -> None:
    assert wrong_with_process(process, tmp_path / "d") == ""


@pytest.mark.parametrize(("full", "code"), [("/dev/full", 3), ("/dev/null", 0)])
def test_a_result_that_cannot_be_written_is_an_error(full: str, code: int) -> None:
    words = [sys.executable, str(ROOT / "distill_tui.py"), "--help"]
    with open(full, "w") as output:
        done = subprocess.run(words, stdout=output, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == code
    assert (b"No space left on device: standard output" in done.stderr) is bool(code)


@pytest.mark.long
@pytest.mark.parametrize("options", [("--json",), ()], ids=["json", "lines"])
def test_a_submission_whose_result_cannot_be_written_names_its_job(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    node = LoginNode.at(tmp_path)
    words = [
        sys.executable,
        str(ROOT / "distill_tui.py"),
        "submit",
        str(node.recipe),
        "--nodes",
        "1",
        "--time",
        "2:00:00",
    ]
    with open("/dev/full", "w") as output:
        done = subprocess.run(
            [*words, "--yes", *options], env=node.environment, stdout=output, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            text=True, check=False, timeout=100,
        )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stderr.index("submitted: job 4711, run ") < done.stderr.index(
        "No space left on device: standard output"
    )
    (record,) = node.runs.glob("*/jobs.json")
    assert '"4711"' in record.read_text()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_odd_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count, bad = int(os.environ.get("DISTILL_TUI_PROCESSES", "300")), []
    for number, process in enumerate(odd_processes(Random(5), count)):
        wrong = wrong_with_process(process, tmp_path / str(number))
        if wrong:
            bad.append(f"{process}: {wrong}")
    with capsys.disabled():
        print(f"\nprocesses: tried {count}, bad {len(bad)}")
    assert bad == []


def test_a_home_directory_that_is_unknown() -> None:
    with pytest.raises(InputError, match="the home directory of '~nosuch' is unknown"):
        runs_root({"DISTILL_TUI_RUNS": "~nosuch/x"})


def test_a_theme_that_there_is_not() -> None:
    assert initial_theme({"TEXTUAL_THEME": "nosuch"}) == THEME.name
    assert initial_theme({"TEXTUAL_THEME": "nord"}) == "nord"


async def test_signals_that_end_a_process_leave_the_app() -> None:
    left: list[int] = []
    on_signals(left.append, lambda: left.append(-1))
    for number in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU):
        signal.raise_signal(number)
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
    loop = asyncio.get_running_loop()
    for number in signal.Signals:
        loop.remove_signal_handler(number)
    assert left == [131, 138, 140, 142, 152]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGUSR2, signal.SIGALRM])
def test_a_signal_that_ends_the_app_restores_the_terminal(number: signal.Signals, tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "DISTILL_TUI_RUNS": str(tmp_path / "runs"),
        "COLUMNS": "10000000",
        "TEXTUAL_FPS": "x",
        "TEXTUAL_COLOR_SYSTEM": "y",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    with opened(environment=environment) as terminal:
        terminal.see("No runs yet", limit_s=60)
        os.kill(terminal.pid, number)
        assert terminal.wait(60) == 128 + number
        written = terminal.written
        assert written.rfind(b"\x1b[?1049l") > written.rfind(b"\x1b[?1049h") > 0
        assert written.rfind(b"\x1b[?25h") > written.rfind(b"\x1b[?25l")


def test_a_command_that_leaves_a_child_with_the_pipe() -> None:
    done = run_bounded(["sh", "-c", "sleep 30 & echo out; echo err >&2; exit 3"], timeout_s=20)
    assert (done.code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_a_command_that_never_ends_or_prints_without_end() -> None:
    with pytest.raises(TimeoutError):
        run_bounded(["sh", "-c", "trap '' TERM; sleep 30 & sleep 30"], timeout_s=0.3)
    with pytest.raises(OutputTooLargeError):
        run_bounded(["sh", "-c", "yes"], timeout_s=20, limit=1 << 20)
    with pytest.raises(TransportError, match="null byte"):
        LocalTransport().run(["echo", "a\0b"])
    with pytest.raises(TransportError, match="did not end within 0 s"):
        LocalTransport().run(["sleep", "30"], timeout_s=0.2)
