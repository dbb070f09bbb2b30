"""A narrow line: a network namespace of the test's own whose loopback passes 1 Mbit/s (tc tbf).

A line on which bytes come is no silent one, however long they take.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from launcher.monitor.watch import watch_directory
from launcher.transports.ssh.transport import SshTransport
from tests.driver_text import DriverText
from tests.ssh.server import SFTP, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_CLONE_NEWNET = 0x40000000
BYTES = 400_000
"""Take 3.2 s at 1 Mbit/s: longer than the deadline of the transports here."""
DEADLINE_S = 2.0


@pytest.fixture
def namespace() -> Iterator[str]:
    """Make a network namespace whose loopback is narrow."""
    if os.geteuid() != 0 or shutil.which("tc") is None:
        pytest.skip("a network of its own is made by root with iproute2 only")
    name = f"narrow-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for argv in (
            ("ip", "-n", name, "link", "set", "lo", "mtu", "1500", "up"),
            ("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "16kb",
             "latency", "500ms"),
        ):  # fmt: skip
            subprocess.run(argv, check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def inside(namespace: str, action: Callable[[], None]) -> None:
    """Run something on a thread whose sockets are made in a network namespace."""

    def enter() -> None:
        descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
        assert ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) == 0
        os.close(descriptor)
        action()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(enter).result()


@pytest.mark.parametrize("subsystem", [SFTP, ""])
def test_everything_comes_over_a_narrow_line(namespace: str, tmp_path: Path, subsystem: str) -> None:
    def use() -> None:
        server_directory = tmp_path / "sshd"
        server_directory.mkdir()
        wrapper = ["ip", "netns", "exec", namespace]
        with running(server_directory, *filter(None, [subsystem]), wrapper=wrapper) as server:
            transport = SshTransport(server.host(), deadline_s=DEADLINE_S)
            data, path = os.urandom(BYTES), tmp_path / "file"
            begun = time.monotonic()
            transport.write_atomic(str(path), data if subsystem else b"x" * BYTES)
            assert time.monotonic() - begun > DEADLINE_S
            path.write_bytes(data)
            assert transport.read(str(path)) == data
            text = "a line of output\n" * (BYTES // 17)
            path.write_text(text)
            assert transport.run(["cat", str(path)], timeout_s=60).stdout == text
            assert [entry.size for entry in transport.listdir(str(tmp_path)) if not entry.is_dir] == [
                len(text)
            ]
            transport.close()

    inside(namespace, use)


def test_logs_are_caught_up_with(namespace: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "ray-driver.log").write_text(DriverText([0.5] * 5, end="").text())
    for number in range(30):
        (logs / f"ray-worker-{number}.log").write_bytes(os.urandom(12_000).hex().encode())

    def use() -> None:
        server_directory = tmp_path / "sshd"
        server_directory.mkdir()
        with running(server_directory, wrapper=["ip", "netns", "exec", namespace]) as server:
            transport = SshTransport(server.host(), deadline_s=DEADLINE_S)
            watch = watch_directory(transport, str(logs))
            watch.catch_up()
            assert (watch.problem, watch.state.step, len(watch.known_logs)) == ("", 5, 31)
            transport.close()

    inside(namespace, use)
