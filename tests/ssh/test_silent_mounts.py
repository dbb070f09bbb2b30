"""Links on a host to a mount whose server is gone: one verdict for each, and all else is listed and read."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.errors import TransportError
from launcher.monitor.watch_run import watch_run
from launcher.runs import load
from launcher.transports.base import ReadRange
from launcher.transports.ssh import look_ahead, silent_entries
from launcher.transports.ssh.silent_entries import entries_of
from launcher.transports.ssh.silent_paths import SilentPaths
from launcher.transports.ssh.transport import SshTransport
from recipes.inheritance import Resolver
from tests.hostile.attempts import ROOT
from tests.hostile.silent_mount import can_mount, silent_mount
from tests.ssh.server import Server

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not can_mount(), reason="mounts are made by root, with /dev/fuse"),
]
(SAMPLE,) = (path for path in (ROOT / "screenshots" / "sample").iterdir() if path.is_dir())
SILENT = "no answer from the file system"


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[Path]:
    """Return a directory on which no call returns."""
    path = tmp_path / "dead"
    path.mkdir()
    with silent_mount(path):
        yield path


@pytest.fixture
def transport(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshTransport]:
    """Return a transport that waits a second where it would wait longer."""
    monkeypatch.setattr(look_ahead, "_TIMEOUT_S", 2.0)
    monkeypatch.setattr(silent_entries, "_ANSWER_S", 2)
    transport = SshTransport(server.host(), deadline_s=2.0)
    yield transport
    transport.close()


def test_a_run_whose_log_leads_to_a_dead_mount_is_watched(
    dead: Path, transport: SshTransport, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    shutil.copytree(SAMPLE, root / SAMPLE.name)
    shutil.copytree(SAMPLE, root / "other")
    logs = root / SAMPLE.name / "logs"
    (logs / "ray-worker-x.log").symlink_to(dead / "x.log")
    (logs / "more-logs").symlink_to(dead / "logs")
    (root / "away").symlink_to(dead / "run")
    watch = watch_run(transport, load(transport, str(root / SAMPLE.name)))
    watch.catch_up(final=True)
    near = watch_run(transport, load(transport, str(root / "other")))
    near.catch_up(final=True)
    assert watch.state.step == near.state.step > 0
    assert not watch.problem
    (silent,) = (log for log in watch.state.logs.values() if log.problem)
    assert silent.problem == SILENT
    before = time.monotonic()
    watch.poll()  # what gave no answer is not asked again at once
    assert time.monotonic() - before < 60
    with transport.looking_at_files((str(root),), ("run.json", "jobs.json", "summary.json")):
        names = {entry.name: entry.is_silent for entry in transport.listdir(str(root))}
        assert names == {SAMPLE.name: False, "other": False, "away": True}
        assert transport.read(str(root / "other" / "run.json")) == (root / "other" / "run.json").read_bytes()


def test_each_call_gives_one_verdict(dead: Path, transport: SshTransport, tmp_path: Path) -> None:
    place = tmp_path / "a b'$x"
    place.mkdir()
    for number in range(70):
        (place / f"file {number:02}\n").write_text("x" * number)
    (place / "link").symlink_to(dead / "x")
    (place / "broken").symlink_to("nowhere")
    (place / ".hidden").mkdir()
    entries = {entry.name: entry for entry in transport.listdir(str(place))}
    assert len(entries) == 72
    assert [name for name, entry in entries.items() if entry.is_silent] == ["link"]
    assert (entries["file 07\n"].size, entries[".hidden"].is_dir) == (7, True)
    for call in (transport.stat, transport.read, transport.listdir):
        with pytest.raises(TransportError, match=SILENT):
            call(str(place / "link"))
    assert transport.read(str(place / "file 07\n")) == b"x" * 7
    with transport.looking_at((str(place),), 1, ""):
        transport.read_ahead(
            [ReadRange(str(place / name), 0, 5) for name in ("file 09\n", "link", "file 08\n")]
        )
        assert transport.read(str(place / "file 08\n"), 0, 5) == b"x" * 5
        with pytest.raises(TransportError, match=SILENT):
            transport.read(str(place / "link"), 0, 5)
    assert entries_of(transport.connection, [str(place / "broken")]) == {}


def test_a_recipe_whose_neighbour_or_parent_leads_to_a_dead_mount(
    dead: Path, transport: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from launcher.transports.ssh import host_listings

    monkeypatch.setattr(host_listings, "_ANSWER_S", 2.0)
    (tmp_path / "base.yaml").write_text("a: 1\n")
    (tmp_path / "child.yaml").write_text("defaults: base.yaml\nb: 2\n")
    (tmp_path / "lost.yaml").write_text("defaults: gone.yaml\nb: 2\n")
    (tmp_path / "gone.yaml").symlink_to(dead / "gone.yaml")
    assert Resolver().resolve(transport.path(str(tmp_path / "child.yaml"))).get("a") == 1
    for name in ("gone.yaml", "lost.yaml"):
        with pytest.raises(Exception, match=SILENT):
            Resolver().resolve(transport.path(str(tmp_path / name)))


def test_pauses_grow() -> None:
    now = [0.0]
    silent = SilentPaths(lambda: now[0])
    for pause in (30, 60, 120, 240, 480, 600, 600):
        silent.note("/a/b")
        assert silent.is_silent("/a/b")
        assert not silent.is_silent("/a")
        assert silent.are_below("/a")
        assert silent.are_below("/")
        assert not silent.are_below("/a/b/c")
        now[0] += pause
        assert not silent.is_silent("/a/b")
    silent.forget("/a/b")
    assert not silent.are_below("/")
