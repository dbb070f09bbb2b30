"""Files of a run that are read back: whatever is in one, there is one message, and other runs are listed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import distill_tui
from launcher.logs.clock import LogClock
from launcher.monitor.watch import watch_directory
from launcher.runs import Damaged, Run, RunStore
from launcher.saved_summary import load_summary, save_summary
from launcher.stored import MAX_STORED_BYTES
from launcher.transports.base import ProcessId
from launcher.transports.local import LocalTransport
from recipes.errors import ExplainedError
from tests.tui.replay import Replay, make_run
from tui.cli import main

FILES = ("run.json", "jobs.json", "summary.json", "plan.json", "effective.yaml")
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, math.nan, math.inf, "", "x", "--me", "\ud800", "\x1b[2J", "9" * 5000,
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00", [], [[]], {}, {"a": 1}, ["x"] * 3,
)  # fmt: skip
SUMMARY = {
    "schema": 1, "state": "completed", "reason": "", "ended": 1.8e9, "job": None, "attempts": [{"text": "a"}],
    "metrics": {"step": 3, "max_steps": 5, "loss": [0.5], "steps": [1], "checkpoints": [3]}, "findings": [],
}  # fmt: skip


class Settled(LocalTransport):
    """A machine on which no process is looked for, which takes a while."""

    def find_process(self, assignment: str) -> ProcessId | None:
        del assignment
        return None


def two_runs(root: Path) -> tuple[Run, Run]:
    """Make two runs that have ended; the first gets the damage."""
    runs = make_run(root), make_run(root, identity="20261128-010000-demo-cd34")
    for run in runs:
        save_summary(LocalTransport(), run, SUMMARY)
        Path(run.directory, "plan.json").write_text('{"schema": 1, "argv": ["sbatch", "job.sh"]}')
        Path(run.directory, "effective.yaml").write_text("distillation: {}\n")
    return runs


def listed(root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the directories that `runs --json` lists, as runs or as damaged."""
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(root))
    assert main(distill_tui.__version__, ["runs", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    return {item["dir"] for item in (*printed["runs"], *printed["damaged"])}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10**11)


WAYS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
    "deep mappings": lambda path: path.write_bytes(b'{"a":' * 50_000),
    "sparse": sparse,
    "too large": lambda path: path.write_bytes(b" " * (MAX_STORED_BYTES + 1)),
    "directory": lambda path: path.mkdir(),
    "fifo": fifo,
    "loop": lambda path: path.symlink_to(path.name),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "number": lambda path: path.write_text("9" * 10_000),
    "newer": lambda path: path.write_text('{"schema": 2, "id": {"a": 1}}'),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FILES[:3])
def test_the_other_runs_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    bad, good = two_runs(tmp_path)
    Path(bad.directory, name).unlink(missing_ok=True)
    WAYS[way](Path(bad.directory, name))
    assert good.directory in listed(tmp_path, capsys, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", FILES[:3])
def test_every_key_with_every_value(tmp_path: Path, name: str) -> None:
    """Nothing but an explained error, and never the loss of the other run."""
    bad, good = two_runs(tmp_path)
    path = Path(bad.directory, name)
    original = json.loads(path.read_text())
    store = RunStore(Settled(), str(tmp_path))
    for place in places(original):
        for value in (*VALUES, ...):
            path.write_text(json.dumps(changed(original, place, value)))
            runs = store.list()
            assert [item.directory for item in runs] == [bad.directory, good.directory]
            for item in runs:
                assert isinstance(item, Run) or (item.problem and isinstance(item, Damaged))
                if isinstance(item, Run):
                    consume(store, item)


def consume(store: RunStore, run: Run) -> None:
    """Read what commands read of a run."""
    with suppress(ExplainedError):
        summary = load_summary(store.transport, run)
        if summary is not None:
            datetime.fromtimestamp(summary["ended"] or 0, tz=UTC)
            assert isinstance(summary["metrics"]["step"], int | None)
            assert all(isinstance(item["text"], str) for item in summary["attempts"])
        assert run.spec.created > datetime(1960, 1, 1, tzinfo=UTC)
        assert all(job.submitted.timestamp() >= 0 for job in run.jobs)
        assert store.find(run.directory).spec == run.spec


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def changed(value: Any, path: tuple[str | int, ...], new: object) -> Any:
    """Return a document with another value in one place; `...` removes it."""
    if not path:
        return None if new is ... else new
    copy = value.copy()
    if len(path) == 1 and new is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def test_a_log_that_cannot_be_read_hangs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path)
    replay = Replay(run)
    replay.start()
    transport = LocalTransport()
    read = transport.read

    def failing(path: str, offset: int = 0, size: int = -1) -> bytes:
        if path.endswith("ray-driver.log"):
            return b"" if offset else read(path, 0, 5)  # fewer bytes than its entry says
        return read(path, offset, size)

    monkeypatch.setattr(transport, "read", failing)
    watch = watch_directory(transport, run.logs)
    watch.catch_up(final=True)
    assert watch.known_logs


@pytest.mark.parametrize("line", ["9" * 5000, "inf", "nan", "1e308", "-1", "", "1e12"])
def test_a_bad_line_of_the_clock_is_passed_over(line: str) -> None:
    clock = LogClock()
    clock.feed(
        f"{line}\ta.log\t{line}\n{line}\ta.log\t5\n1.8e9\ta.log\t{line}\n1800000000\ta.log\t10\n".encode()
    )
    assert clock.time_of("a.log", 3) == 1_800_000_000
