"""Files of a run on this machine: written whole or not at all, read in pieces; and which processes live."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import TransportError
from launcher.transports.base import ProcessId
from launcher.transports.local import LocalTransport
from launcher.transports.replies import WHOLE_FILE_BYTES

LOCAL = LocalTransport(deadline_s=3.0)


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_a_file_is_written_with_its_directories_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "run.json"
    LOCAL.write_atomic(str(path), b"one")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"one", 0o644)
    LOCAL.write_atomic(str(path), b"two", 0o600)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o600)
    assert names(path.parent) == ["run.json"]


def test_the_bytes_are_flushed_before_the_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, Any]] = []
    fsync, replace = os.fsync, os.replace

    def flushed(handle: int) -> None:
        steps.append(("flush", os.fstat(handle).st_size))
        fsync(handle)

    def renamed(source: str, target: Path) -> None:
        # Beside its target, hidden, and recognised as its own.
        assert Path(source).parent == tmp_path
        assert Path(source).name.startswith(".run.json.")
        steps.append(("rename", Path(source).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    LOCAL.write_atomic(str(tmp_path / "run.json"), b"text")
    assert steps == [("flush", 4), ("rename", b"text")]


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"old")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(TransportError) as raised:
            LOCAL.write_atomic(str(path), b"new")
    assert raised.value.what == f"cannot write {path}: No space left on device"
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["run.json"])


def test_a_failure_that_has_no_words_of_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("odd")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(TransportError, match="odd"):
        LOCAL.write_atomic(str(tmp_path / "x\x1b[2Jy"), b"new")
    with pytest.raises(TransportError) as raised:
        LOCAL.read(str(tmp_path / "no\x1b[2Jpe"))
    assert "\x1b" not in raised.value.what
    assert raised.value.what.startswith("cannot read ")


def test_reading_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    read = [LOCAL.read(str(path), *piece) for piece in ((), (4,), (4, 3), (8, 5), (10,), (20,), (3, 0))]
    assert read == [b"0123456789", b"456789", b"456", b"89", b"", b"", b""]
    assert LOCAL.read(str(path), 0, -1) == b"0123456789"
    before = len(os.listdir("/proc/self/fd"))
    LOCAL.read(str(path))
    assert len(os.listdir("/proc/self/fd")) == before


def test_reading_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TransportError, match="cannot read"):
        LOCAL.read(str(tmp_path / "pipe"))


def test_a_directory_is_listed_by_name_without_links_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"xyz")
    (tmp_path / "a").mkdir()
    (tmp_path / "c").symlink_to("nothing")
    (tmp_path / "d").symlink_to("b")
    status = (tmp_path / "b").stat()
    entries = LOCAL.listdir(str(tmp_path))
    assert [(entry.name, entry.is_dir) for entry in entries] == [("a", True), ("b", False), ("d", False)]
    for entry in entries[1:]:
        assert (entry.size, entry.mtime, entry.inode) == (3, status.st_mtime, status.st_ino)
    with pytest.raises(TransportError, match=f"cannot list {tmp_path}/none: No such file"):
        LOCAL.listdir(str(tmp_path / "none"))


def process(pid: int, started: int) -> ProcessId:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ProcessId(LOCAL.host, boot, pid, started)


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


def test_a_process_is_alive_until_it_ends_also_as_a_zombie() -> None:
    with subprocess.Popen(["sleep", "100"]) as child:
        try:
            one = process(child.pid, started(child.pid))
            assert LOCAL.alive(one) is True
            assert LOCAL.alive(process(child.pid, one.started + 1)) is False
            child.kill()
            until(child.pid, ") Z")
            # It has ended, though nobody has waited for it: the run it belongs to is over.
            assert LOCAL.alive(one) is False
        finally:
            child.kill()
    assert LOCAL.alive(one) is False


@pytest.mark.parametrize("name", ["a) Z (b", r"\377) Z (\201"])
def test_a_process_whose_name_looks_like_the_state_of_a_zombie(name: str) -> None:
    script = f'printf "{name}" > /proc/$$/comm; read -r'
    with subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE) as child:
        try:
            until(child.pid, ") Z (")
            assert LOCAL.alive(process(child.pid, started(child.pid))) is True
        finally:
            child.kill()


def until(pid: int, text: str) -> None:
    """Wait for what the kernel tells of a process."""
    end = time.monotonic() + 10
    while text.encode() not in Path(f"/proc/{pid}/stat").read_bytes():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_whole_file_may_have_so_many_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    os.truncate(path, WHOLE_FILE_BYTES + 1)
    with pytest.raises(TransportError) as raised:
        LOCAL.read(str(path))
    assert raised.value.what == f"cannot read {path}: larger than 64 MiB"
    assert len(LOCAL.read(str(path), size=WHOLE_FILE_BYTES + 1)) == WHOLE_FILE_BYTES + 1
    assert LOCAL.read(str(path), size=0) == b""
    os.truncate(path, WHOLE_FILE_BYTES)
    assert len(LOCAL.read(str(path))) == WHOLE_FILE_BYTES


def test_the_rest_of_a_larger_file_is_read_where_it_fits(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    os.truncate(path, WHOLE_FILE_BYTES + 1)
    assert LOCAL.read(str(path), WHOLE_FILE_BYTES - 4) == bytes(5)
    assert len(LOCAL.read(str(path), 1)) == WHOLE_FILE_BYTES
    assert LOCAL.read(str(path), WHOLE_FILE_BYTES + 9) == b""


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TransportError, match="Illegal seek"):
        LOCAL.read(str(tmp_path / "pipe"), 0, 5)
