"""Changes of a file under its lock: the same here and over SSH, each excluding the other."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.transports.base import Transport
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.locked_change import LockedChange, _commit
from launcher.transports.ssh.transport import SshTransport
from recipes.locks import LOCK_SUFFIX, Holder, LockedError, RecipeLock
from tests.ssh.relay import relayed
from tests.ssh.server import Server

pytestmark = pytest.mark.long


def plus_one(content: bytes | None) -> bytes:
    return str(int(content or b"0") + 1).encode()


def lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}{LOCK_SUFFIX}")


def test_a_change_reads_and_writes(transport: Transport, odd_path: Path) -> None:
    path = odd_path / "jobs.json"
    for count in (1, 2):
        transport.change(str(path), plus_one)
        assert path.read_bytes() == str(count).encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(odd_path) == ["jobs.json"]


def test_a_change_that_raises_changes_nothing(transport: Transport, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_bytes(b"7")

    def refuse(content: bytes | None) -> bytes:
        raise ValueError(content)

    with pytest.raises(ValueError, match="7"):
        transport.change(str(path), refuse)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"7", ["jobs.json"])


def test_a_directory_is_no_file_to_change(transport: Transport, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        transport.change(str(tmp_path), plus_one)


def test_programs_here_and_over_ssh_lose_no_change(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    remotes = [SshTransport(server.host()) for _ in range(2)]
    each = 5

    def work(transport: Transport) -> None:
        for _ in range(each):
            transport.change(str(path), plus_one)

    threads = [threading.Thread(target=work, args=(item,)) for item in (*remotes, LocalTransport())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for remote in remotes:
        remote.close()
    assert path.read_bytes() == str(3 * each).encode()
    assert os.listdir(tmp_path) == ["jobs.json"]


def test_a_program_there_is_waited_for(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    remote = SshTransport(server.host())
    with RecipeLock(path):
        change = LockedChange(remote.connection, str(path), 20.0, wait_s=0.5)
        with pytest.raises(LockedError, match=f"process {os.getpid()} on"):
            change.make(plus_one)
        assert not path.exists()
    remote.change(str(path), plus_one)
    remote.close()
    assert path.read_bytes() == b"1"


def test_a_program_there_waits_for_this_one(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    remote = SshTransport(server.host())

    def during(content: bytes | None) -> bytes:
        with pytest.raises(LockedError, match="over SSH"), RecipeLock(path, wait_s=0.3):
            pass
        return plus_one(content)

    remote.change(str(path), during)
    remote.close()
    assert path.read_bytes() == b"1"


def test_a_killed_holder_there_is_gone_at_once(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    script = (
        "import sys, time; from pathlib import Path; from recipes.locks import RecipeLock\n"
        f"lock = RecipeLock(Path({str(path)!r})); lock.__enter__(); print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert lock_file(path).exists()
    remote = SshTransport(server.host())
    LockedChange(remote.connection, str(path), 20.0, wait_s=5.0).make(plus_one)
    remote.close()
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"1", ["jobs.json"])


def test_a_holder_of_another_machine_is_gone_after_a_time(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    other = Holder("somebody", "another-machine", 7, 7)
    lock_file(path).write_text(json.dumps(other._asdict()))
    remote = SshTransport(server.host())
    change = LockedChange(remote.connection, str(path), 20.0, wait_s=0.3, stale_s=60.0)
    with pytest.raises(LockedError, match="somebody"):
        change.make(plus_one)
    begun = time.monotonic()
    LockedChange(remote.connection, str(path), 20.0, wait_s=10.0, stale_s=0.5).make(plus_one)
    assert time.monotonic() - begun >= 0.5
    remote.close()
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"1", ["jobs.json"])


def test_who_was_taken_for_gone_changes_nothing(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    remote = SshTransport(server.host())
    calls: list[bytes | None] = []

    def slow(content: bytes | None) -> bytes:
        calls.append(content)
        if len(calls) == 1:  # another program finds it gone, and changes the file
            lock_file(path).unlink()
            LocalTransport().change(str(path), lambda _: b"40")
        return plus_one(content)

    remote.change(str(path), slow)
    remote.close()
    assert calls == [None, b"40"]
    assert path.read_bytes() == b"41"


@pytest.mark.parametrize("seed", range(4))
def test_a_cut_leaves_the_old_or_the_new_and_no_lock(server: Server, tmp_path: Path, seed: int) -> None:
    path = tmp_path / "jobs.json"
    path.write_bytes(b"0")
    with relayed(server.port) as relay:
        known = server.known_hosts(f"[127.0.0.1]:{relay.port} {server.host_key}\n")
        remote = SshTransport(server.host(known, port=relay.port), deadline_s=5.0)
        assert remote.run(["true"]).code == 0
        relay.cut_after = 200 + seed * 1500
        seen: set[bytes | None] = set()

        def to_one(content: bytes | None) -> bytes:
            seen.add(content)
            return b"1"

        remote.change(str(path), to_one)
        remote.close()
    assert seen <= {b"0", b"1"}
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"1", ["jobs.json"])


@pytest.mark.parametrize(("mode", "refusal"), [(0o444, "it is read-only"), (0o644, "")])
def test_a_file_that_may_not_be_written_is_not_replaced(mode: int, refusal: str) -> None:
    """By the script alone, as a user who is not root."""
    user = 65534 if os.getuid() == 0 else os.getuid()
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "r.yaml")
        file.write_text("a: 1")
        file.chmod(mode)
        lock_file(file).write_bytes(b"mine")
        for path in (Path(name), file, lock_file(file)):
            os.chown(path, user, -1)
        script = _commit(str(file), b"mine", b"a: 2", keep=True)
        done = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, user=user, cwd="/", check=False
        )
        assert (done.returncode, done.stderr.strip()) == (1 if refusal else 0, refusal)
        assert file.read_text() == ("a: 1" if refusal else "a: 2")
        assert stat.S_IMODE(file.stat().st_mode) == mode
