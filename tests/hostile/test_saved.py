"""Smallest examples of saves that must lose nothing: attributes, names, edits at once."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.errors import TransportError
from launcher.transports.local import LocalTransport
from recipes.attributes import Attributes
from recipes.document import Document
from recipes.errors import Exit
from recipes.files import AttributesError, save
from recipes.locks import Holder, LockedError, RecipeLock
from tests.hostile.attempts import ROOT

HEAD = "distillation: {max_num_steps: 10}\n"
Run = Callable[..., tuple[int, str, str]]


def test_an_access_list_and_attributes_are_kept(tmp_path: Path) -> None:
    from tests.hostile.write_inputs import access_list

    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    try:
        os.setxattr(path, "user.note", b"kept")
        os.setxattr(path, "system.posix_acl_access", access_list({4711: 6}, 0))
    except OSError:
        pytest.skip("no extended attributes in this file system")
    before = Attributes.of(path)
    save(path, b"a: 2\n", b"a: 1\n")
    assert Attributes.of(path) == before
    assert before.extended.keys() == {"user.note", "system.posix_acl_access"}


def test_what_cannot_be_kept_is_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    with contextlib.suppress(OSError):
        os.setxattr(path, "user.x", b"1")
    real = Attributes.of

    def of(file: Path | int) -> Attributes:
        own = real(file)
        return replace(own, uid=own.uid + 4711) if file == path else replace(own, extended={})

    monkeypatch.setattr(Attributes, "of", of)
    code, _, err = run("recipe", "set", "r.yaml", "a", "2")
    assert code == 1
    assert "Not saved: the file would change besides its text: owner " in err
    assert "attribute user.x lost" in err or not os.listxattr(path)
    assert path.read_text() == "a: 1\n"
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "n\n")
    assert run("recipe", "set", "r.yaml", "a", "2")[0] == 1
    monkeypatch.setattr(sys.stdin, "readline", lambda: "y\n")
    assert run("recipe", "set", "r.yaml", "a", "2")[0] == 0
    assert path.read_text() == "a: 2\n"
    assert run("recipe", "set", "r.yaml", "a", "3", "--accept-changes")[0] == 0
    assert path.read_text() == "a: 3\n"
    with pytest.raises(AttributesError) as raised:
        save(path, b"a: 4\n", b"a: 3\n")
    assert raised.value.exit_code == Exit.FAILED


@pytest.mark.parametrize("name", ["x" * 255, "é" * 125 + ".yaml", "中" * 80], ids=["x", "é", "中"])
def test_the_longest_names_are_saved(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("a: 1\n")
    document = Document.open(path)
    document.set("a", 2)
    document.save()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert path.read_text() == "a: 2\n"


def test_a_held_lock_says_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    with RecipeLock(path) as held:
        assert json.loads(held.file.read_bytes())["pid"] == os.getpid()
        with (
            pytest.raises(LockedError, match=rf"is being edited by .* \(process {os.getpid()} on "),
            RecipeLock(path, wait_s=0.05),
        ):
            raise AssertionError
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]
    with RecipeLock(path, wait_s=0):
        pass


@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_or_device_is_never_replaced_by_a_file(tmp_path: Path, linked: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = pipe
    if linked:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    with pytest.raises(TransportError, match="not a regular file"):
        LocalTransport().write_atomic(str(path), b"x", 0o600)
    assert pipe.is_fifo()
    assert path.is_symlink() == linked
    assert sorted(item.name for item in tmp_path.iterdir()) == (["link", "pipe"] if linked else ["pipe"])


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    code = f"import os, signal\nfrom pathlib import Path\nfrom recipes.locks import RecipeLock\nRecipeLock(Path({str(path)!r})).__enter__()\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert RecipeLock(path).file.exists()
    with RecipeLock(path, wait_s=0):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]


@pytest.mark.parametrize("kernel_locks", [True, False])
def test_a_holder_on_another_machine_is_waited_for_and_then_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kernel_locks: bool
) -> None:
    def no_lock(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    if not kernel_locks:
        monkeypatch.setattr(fcntl, "flock", no_lock)
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    lock = RecipeLock(path, wait_s=5, stale_s=0.2)
    lock.file.write_text('{"user": "alice", "host": "another", "pid": 1, "started": 2}')
    with pytest.raises(LockedError, match=r"edited by alice \(process 1 on another\)"):
        RecipeLock(path, wait_s=0.05, stale_s=60).__enter__()
    started = time.monotonic()
    with lock:
        assert time.monotonic() - started >= 0.2
        with pytest.raises(LockedError):
            RecipeLock(path, wait_s=0.05).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]


def test_without_kernel_locks_a_holder_on_this_machine_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    lock = RecipeLock(path, wait_s=2)
    gone = Holder.this()._replace(started=1)
    lock.file.write_text(json.dumps(gone._asdict()))
    with lock:
        assert json.loads(lock.file.read_bytes())["started"] != 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 2000, b'{"pid": {}}', b"\xff"],
    ids=["empty", "cut", "deep", "other", "bytes"],
)
def test_a_damaged_lock_file_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    RecipeLock(path).file.write_bytes(content)
    with RecipeLock(path, wait_s=0):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]


def test_where_no_lock_can_be_made_saving_says_what_is_wrong(tmp_path: Path) -> None:
    with RecipeLock(tmp_path / "none" / "r.yaml") as lock:
        assert lock.file.parent.name == "none"
    os.mkfifo(RecipeLock(tmp_path / "r.yaml").file)
    with RecipeLock(tmp_path / "r.yaml", wait_s=0):
        pass
