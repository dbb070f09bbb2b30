"""Many files of another machine in few requests, with the answers of today."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from launcher.errors import TransportError
from launcher.monitor.watch import watch_directory
from launcher.runs import Run, RunStore
from launcher.transports.base import FileStat, ReadRange
from launcher.transports.local import LocalTransport
from launcher.transports.ssh import look_ahead
from launcher.transports.ssh.transport import SshTransport
from tests.driver_text import DriverText
from tests.ssh.laptop import ROOT, requests_of
from tests.ssh.server import Server

pytestmark = pytest.mark.long
LOGS = 30


@pytest.fixture
def far(server: Server) -> SshTransport:
    return SshTransport(server.host())


def test_a_poll_of_many_logs_is_two_requests(
    far: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "x" / "7-logs"
    logs.mkdir(parents=True)
    (logs / "ray-driver.log").write_text(DriverText([0.5] * 5, end="").text())
    for number in range(LOGS - 1):
        (logs / f"ray-worker-{number}.log").write_text("started\n" * 50)
    far.environment()
    watch = watch_directory(far, str(tmp_path / "x"))
    calls = requests_of(far, monkeypatch)
    watch.poll()
    assert (watch.state.step, len(watch.known_logs)) == (5, LOGS)
    assert len(calls) <= 3
    calls.clear()
    monkeypatch.setattr(look_ahead, "FRESH_S", 60.0)
    watch.poll()  # at once: the listing is that of before
    assert calls == []
    monkeypatch.setattr(look_ahead, "FRESH_S", 0.0)
    for log in logs.iterdir():
        with log.open("a") as file:
            file.write("one more line\n")
    watch.poll()
    assert len(calls) == 2
    assert watch.problem == ""
    local = watch_directory(LocalTransport(), str(tmp_path / "x"))
    local.catch_up()
    assert watch.state.metrics == local.state.metrics
    shutil.rmtree(logs.parent)
    watch.poll()
    assert "cannot list" in watch.problem
    far.close()


def test_a_list_of_runs_is_two_requests(
    far: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sample,) = (path for path in (ROOT / "screenshots" / "sample").iterdir() if path.is_dir())
    spec = json.loads((sample / "run.json").read_text())
    for number in range(20):
        run = tmp_path / f"20261128-0423{number:02}-demo-{number:04x}"
        run.mkdir()
        (run / "run.json").write_text(json.dumps(spec | {"id": run.name}))
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    (tmp_path / "none").mkdir()
    expected = RunStore(LocalTransport(), str(tmp_path)).list()
    far.environment()
    calls = requests_of(far, monkeypatch)
    assert RunStore(far, str(tmp_path)).list() == expected
    assert len([item for item in expected if isinstance(item, Run)]) == 20
    assert len(calls) == 2
    far.close()


def test_within_a_look_answers_are_those_of_the_files(far: SshTransport, odd_path: Path) -> None:
    (odd_path / "logs").mkdir()
    (odd_path / "other").mkdir()
    (odd_path / "other" / "inner").write_text("x")
    (odd_path / "logs" / "a b'$x.log").write_bytes(b"0123456789")
    (odd_path / "logs" / "link").symlink_to("a b'$x.log")
    (odd_path / "logs" / "broken").symlink_to("nowhere")
    local, log = LocalTransport(), str(odd_path / "logs" / "a b'$x.log")
    with far.looking_at((str(odd_path),), 3, "*logs"):
        for directory in (odd_path, odd_path / "logs", odd_path / "other"):
            there, here = far.listdir(str(directory)), local.listdir(str(directory))
            assert [(item.name, item.size, item.is_dir) for item in there if not item.is_dir] == [
                (item.name, item.size, item.is_dir) for item in here if not item.is_dir
            ]
        assert far.stat(str(odd_path / "logs" / "none")) is None
        entry = far.stat(log)
        assert isinstance(entry, FileStat)
        assert (entry.size, entry.inode) == (10, os.stat(log).st_ino)
        far.read_ahead([ReadRange(log, 2, 5)])
        assert far.read(log, 2, 5) == b"23456"
        assert far.read(log, 4, 2) == b"45"
        assert far.read(log, 0, 3) == b"012"
        assert far.read(log) == b"0123456789"
        assert far.read(log, 20, 3) == b""
        far.write_atomic(log, b"changed")
        assert far.read(log) == b"changed"
        found = far.stat(log)
        assert isinstance(found, FileStat)
        assert found.size == 7
    with pytest.raises(TransportError, match="cannot list"):
        far.listdir(str(odd_path / "nowhere"))
    far.close()
