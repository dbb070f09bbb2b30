"""Notice that a command of Slurm has not answered yet."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.headless.wait_notice import WaitNotice, child_pids, command_of

WAITS_FOR_INPUT = "#!/bin/sh\necho ready\nread line\n"


@pytest.fixture(params=["sinfo", "other"])
def child(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    script = tmp_path / request.param
    script.write_text(WAITS_FOR_INPUT)
    script.chmod(0o755)
    with subprocess.Popen([script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_a_command_that_has_not_ended_is_named_once(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    name = command_of(child.pid)
    assert child.pid in set(child_pids())
    monkeypatch.setattr("tui.headless.output.say", said.append)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.delitem(sys.modules, "textual", raising=False)
    polls: list[int] = []

    def counted() -> Iterator[int]:
        polls.append(1)
        return iter([child.pid])

    monkeypatch.setattr("tui.headless.wait_notice.child_pids", counted)
    with WaitNotice(poll_s=0.001):
        while len(polls) < 5:
            time.sleep(0.001)
    assert said == ["waiting for sinfo …"] * (name == "sinfo")


def test_nothing_is_said_where_nobody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    monkeypatch.setattr("tui.headless.wait_notice.child_pids", lambda: pytest.fail("it looks for processes"))
    with WaitNotice(poll_s=0.0):
        pass
    assert command_of(2**30) == ""
