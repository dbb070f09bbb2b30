"""Runs of others that are copied here: nothing is written outside of the copy, nothing in it is a link or a key."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from launcher.errors import InputError
from launcher.runs import load
from launcher.storage.copying import fetch_run
from launcher.transports.local import LocalTransport
from recipes.errors import ExplainedError
from tests.hostile.attempts import ROOT
from tests.hostile.far_inputs import LINES, AnyAnswer, fill, snapshot

(SAMPLE,) = (path for path in (ROOT / "screenshots" / "sample").iterdir() if path.is_dir())


def far_run(directory: Path, random: Random) -> Path:
    """Make a directory with a run of another machine, a file of the user, and a place for the copy."""
    run = directory / "far" / SAMPLE.name
    run.mkdir(parents=True)
    for name in ("run.json", "jobs.json", "recipe.yaml"):
        shutil.copy(SAMPLE / name, run)
    fill(run, random)
    (directory / "victim").write_text("kept")
    (directory / "here").mkdir()
    # The file that a line with an absolute path would be read from, and written to.
    inside = Path(run, str(directory / "victim").lstrip("/"))
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.write_text("taken")
    return run


def wrong_with_copy(directory: Path, run: Path, transport: LocalTransport) -> list[str]:
    """Copy a run; return what is wrong afterwards."""
    target = directory / "here"
    before = snapshot(directory, [target])
    wrong = []
    try:
        fetch_run(transport, load(LocalTransport(), str(run)), target, sleep=lambda _: None)
    except ExplainedError:
        pass  # refused in words
    except Exception as error:  # noqa: BLE001 - the fault that is looked for
        wrong.append(f"{type(error).__name__}: {error}")
    if snapshot(directory, [target]) != before:
        wrong.append("something beside the copy was written")
    for path in target.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            wrong.append(f"{path} is no file")
        elif path.is_file() and path == target / SAMPLE.name / "secrets.env":
            wrong.append(f"{path} was copied")
    return wrong


@pytest.mark.parametrize(
    "count", [25, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_directories_that_others_left(tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int) -> None:
    random, bad = Random(count), []
    for number in range(count):
        directory = tmp_path / str(number)
        run = far_run(directory, random)
        transport: LocalTransport = LocalTransport()
        lines: list[str] = []
        if number % 2:
            victim = str(directory / "victim").lstrip("/")
            lines = [line.replace("VICTIM", victim) for line in random.choices(LINES, k=random.randint(1, 5))]
            transport = AnyAnswer(lines)
        bad += [f"{wrong} {lines}" for wrong in wrong_with_copy(directory, run, transport)]
        shutil.rmtree(directory)
    with capsys.disabled():
        print(f"\nfar runs: tried {count}, bad {len(bad)}")
    assert bad == []


def test_a_name_with_a_line_break_is_no_other_file(tmp_path: Path) -> None:
    run = far_run(tmp_path, Random(1))
    planted = run / "x\n5 1.0 " / str(tmp_path).lstrip("/")
    planted.mkdir(parents=True)
    (planted / "victim").write_text("taken")
    assert wrong_with_copy(tmp_path, run, LocalTransport()) == []
    assert (tmp_path / "victim").read_text() == "kept"


def test_a_run_that_does_not_fit_is_not_begun(tmp_path: Path) -> None:
    run = far_run(tmp_path, Random(2))
    with pytest.raises(InputError, match=r"are to be copied, and .* are free"):
        fetch_run(
            AnyAnswer(["999999999999999999 1.0 big.bin"]), load(LocalTransport(), str(run)), tmp_path / "here"
        )
    assert not list((tmp_path / "here").rglob("*.part"))
