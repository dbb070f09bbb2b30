"""A line that breaks, stalls and comes back: nothing twice, nothing half, nobody waits without end."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import paramiko
import pytest

from launcher.errors import ConnectionLostError, TransportError, UnclearError
from launcher.monitor.watch import watch_directory
from launcher.transports.ssh.transport import SshTransport
from tests.driver_text import DriverText
from tests.ssh.relay import relayed
from tests.ssh.server import Server

pytestmark = pytest.mark.long


def over(server: Server, port: int, deadline_s: float = 20.0) -> SshTransport:
    known = server.known_hosts(f"[127.0.0.1]:{port} {server.host_key}\n")
    return SshTransport(server.host(known, port=port), deadline_s=deadline_s)


def patient(transport: SshTransport, path: Path) -> bytes:
    """Read a file, as often as it takes."""
    for _ in range(100):
        try:
            return transport.read(str(path))
        except ConnectionLostError:
            time.sleep(0.1)
    raise AssertionError("it never comes back")


def test_a_connection_that_broke_is_made_again_by_the_next_use(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with relayed(server.port) as relay:
        transport = over(server, relay.port)
        assert transport.run(["echo", "1"]).stdout == "1\n"
        for number in range(3):
            relay.cut()
            assert patient(transport, path) == b"text"
            relay.cut()
            time.sleep(0.2)  # the break is noticed: nothing was sent, so the command goes out again by itself
            assert transport.run(["echo", str(number)]).stdout == f"{number}\n"
        assert relay.connections == 7
        transport.close()


def test_each_part_of_a_file_is_asked_for_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that come faster than requests are sent do not end the transfer early: it would start anew."""
    data = os.urandom(1 << 20)
    (tmp_path / "file").write_bytes(data)
    send = paramiko.SFTPClient._async_request  # type: ignore[attr-defined]

    def late(*arguments: object) -> object:
        time.sleep(0.005)
        return send(*arguments)

    with relayed(server.port) as relay:
        transport = over(server, relay.port)
        transport.read(str(tmp_path / "file"), 0, 1)
        before = relay.passed
        monkeypatch.setattr(paramiko.SFTPClient, "_async_request", late)
        assert transport.read(str(tmp_path / "file")) == data
        assert relay.passed - before < 1.1 * len(data)
        transport.close()


@pytest.mark.parametrize("seed", range(20))
def test_a_command_that_a_break_meets_runs_once_or_not_at_all(
    server: Server, tmp_path: Path, seed: int
) -> None:
    """Cut after a random number of bytes: it is never sent twice, and success is only told when it was."""
    log = tmp_path / "ran"
    with relayed(server.port) as relay:
        transport = over(server, relay.port)
        transport.run(["true"])
        relay.cut_after = random.Random(seed).randrange(1, 2500)
        try:
            outcome = transport.run(["sh", "-c", f"echo ran >>'{log}'; sleep 0.05; echo done"]).stdout
        except ConnectionLostError as error:
            outcome = type(error).__name__
        time.sleep(0.3)
        ran = log.read_text().count("ran") if log.exists() else 0
        assert ran <= 1
        if outcome == "done\n":
            assert ran == 1
        elif outcome == "ConnectionLostError":
            assert ran == 0
        else:
            assert outcome == UnclearError.__name__
        transport.close()


@pytest.mark.parametrize("seed", range(20))
def test_a_file_that_a_break_meets_is_old_or_new(server: Server, tmp_path: Path, seed: int) -> None:
    """Small ones go by `sh`, large ones by SFTP; nothing unfinished is left once the line is back."""
    path = tmp_path / "run.json"
    small = seed % 2 == 0
    old, new = b"o" * 1000, bytes(range(256)) * (100 if small else 2000)
    path.write_bytes(old)
    with relayed(server.port) as relay:
        transport = over(server, relay.port)
        transport.stat("/")
        relay.cut_after = random.Random(seed).randrange(1, 90_000 if small else 520_000)
        try:
            transport.write_atomic(str(path), new)
            written = True
        except TransportError:
            written = False
        assert path.read_bytes() in ((new,) if written else (old, new))
        for _ in range(100):
            try:
                transport.write_atomic(str(path), new)
                break
            except ConnectionLostError:
                time.sleep(0.1)
        assert path.read_bytes() == new
        assert os.listdir(tmp_path) == ["run.json"]
        transport.close()


def test_a_line_that_stalls_is_an_error_within_the_deadline_and_comes_back(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with relayed(server.port) as relay:
        transport = over(server, relay.port, deadline_s=1.5)
        assert transport.read(str(path)) == b"text"
        relay.stall()
        before = time.monotonic()
        with pytest.raises(ConnectionLostError, match=r"no answer for 2 s"):
            transport.read(str(path))
        assert time.monotonic() - before < 20
        state = transport.state()
        assert not state.connected
        assert state.last_data is not None
        relay.flow()
        assert patient(transport, path) == b"text"
        transport.close()


def test_a_server_that_is_gone_is_tried_less_and_less_and_comes_back(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("text")
    with relayed(server.port) as relay:
        transport = over(server, relay.port)
        assert transport.read(str(path)) == b"text"
        relay.refuse()
        end = time.monotonic() + 4
        asked = 0
        while time.monotonic() < end:
            with pytest.raises(ConnectionLostError):
                transport.read(str(path))
            asked += 1
            time.sleep(0.02)
        state = transport.state()
        assert (state.connected, state.next_attempt_s > 0) == (False, True)
        connected = relay.connections
        relay.accept()
        for _ in range(200):
            try:
                assert transport.read(str(path)) == b"text"
                break
            except ConnectionLostError:
                time.sleep(0.1)
        assert relay.connections == connected + 1
        assert asked > 10  # each of them was answered at once
        transport.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_server_that_is_gone_for_two_minutes_comes_back_by_itself(server: Server, tmp_path: Path) -> None:
    """A run is followed all the time: calm meanwhile, nothing lost, and few attempts to connect."""
    logs = tmp_path / "logs"
    logs.mkdir()
    lines = DriverText([1 / step for step in range(1, 21)], end="").text().splitlines(keepends=True)
    half = len(lines) // 2
    driver = logs / "ray-driver.log"
    driver.write_text("".join(lines[:half]))
    with relayed(server.port) as relay:
        transport = over(server, relay.port)
        watch = watch_directory(transport, str(logs))
        watch.poll()
        before = watch.state.step
        relay.refuse()
        gone = time.monotonic()
        tries = relay.refused
        while time.monotonic() - gone < 120:
            asked = time.monotonic()
            watch.poll()
            assert time.monotonic() - asked < 15
            assert watch.problem or asked - gone < 5  # what was listed last is kept for 2 s
            assert watch.state.step == before
            time.sleep(1)
        assert 5 <= relay.refused - tries <= 10
        with driver.open("a") as file:
            file.writelines(lines[half:])
        relay.accept()
        back = time.monotonic()
        while watch.state.step < 20:
            assert time.monotonic() - back < 60
            watch.poll()
            time.sleep(0.5)
        assert not watch.problem
        assert relay.connections == 2
        transport.close()


def test_everything_goes_over_one_connection_with_few_round_trips(server: Server, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"log-{number}").write_bytes(os.urandom(2000))
    with relayed(server.port, delay_s=0.05) as relay:  # 100 ms there and back
        transport = over(server, relay.port)
        transport.listdir(str(tmp_path))  # connected and logged in
        before = time.monotonic()
        assert len(transport.listdir(str(tmp_path))) == 30
        listing_s = time.monotonic() - before
        before = time.monotonic()
        transport.read(str(tmp_path / "log-1"), 1000)
        reading_s = time.monotonic() - before
        assert relay.connections == 1
        # Five round trips at most (open, size, read, end, close), with room for a busy machine.
        assert listing_s < 3.0
        assert reading_s < 3.0
        transport.close()


@pytest.mark.parametrize("error", [EOFError(), paramiko.SSHException("over"), OSError("Socket is closed")])
def test_a_connection_that_ends_while_a_script_is_sent(
    server: Server, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Nothing of it is carried out, so it is sent again."""
    transport = SshTransport(server.host())
    assert transport.run(["true"]).code == 0
    send, errors = paramiko.Channel.sendall, [error]

    def broken_once(channel: paramiko.Channel, data: bytes) -> None:
        if errors:
            raise errors.pop()
        send(channel, data)

    monkeypatch.setattr(paramiko.Channel, "sendall", broken_once)
    assert transport.run(["echo", "once"]).stdout == "once\n"
    assert transport.connection.generation == 2
    transport.close()
