"""Hostile writes: an edit is saved whole or refused, the file stays what it was, and no edit is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.attempts import ROOT
from tests.hostile.verdicts import tally
from tests.hostile.write_inputs import look_at_write, write_attempts

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of other users are made by root only")
_PAIR = """
import io, os, sys
from pathlib import Path
from tui.cli import main
path, pairs = sys.argv[1], int(sys.argv[2])
Path(path).write_text("a: 0\\nb: 0\\n")
sys.stderr = io.StringIO()
main("0", ["recipe", "set", path, "a", "0"])  # what is imported now, no child imports
for number in range(1, pairs + 1):
    reading, writing = os.pipe()
    children = []
    for key in ("a", "b"):
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)  # ends when the parent lets both go
            os._exit(main("0", ["recipe", "set", path, key, str(number)]))
        children.append(child)
    os.close(reading)
    os.close(writing)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    text = Path(path).read_text()
    if codes != [0, 0] or text != f"a: {number}\\nb: {number}\\n":
        raise SystemExit(f"pair {number}: {codes} {text!r}")
print(sorted(os.listdir(Path(path).parent)))
"""


def edit_in_pairs(directory: Path, pairs: int) -> None:
    """Let two processes set two keys of one recipe at the same moment, again and again."""
    command = [sys.executable, "-c", _PAIR, str(directory / "r.yaml"), str(pairs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert done.stdout == "['r.yaml']\n", done.stdout + done.stderr


@pytest.mark.long
def test_two_edits_at_once_lose_nothing(tmp_path: Path) -> None:
    edit_in_pairs(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_200_pairs_of_edits_at_once_lose_nothing(tmp_path: Path) -> None:
    edit_in_pairs(tmp_path, 200)


@needs_root
def test_hostile_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_to_all(tmp_path)
    result = tally(write_attempts(20, seed=1), tmp_path, look_at_write)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.bad == []


@needs_root
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_hostile_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_to_all(tmp_path)
    result = tally(write_attempts(500, seed=2), tmp_path, look_at_write)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.tried["writes"] == 500
    assert result.bad == []


def open_to_all(directory: Path) -> None:
    """Let another user pass through the directories of the tests."""
    for path in (directory, *directory.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
