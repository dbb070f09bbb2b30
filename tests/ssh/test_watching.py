"""Runs of another machine: listed and watched with nothing installed there."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from launcher.monitor.watch import Watch, watch_directory
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.transport import SshTransport
from tests.driver_text import DriverText
from tests.ssh.laptop import command, laptop
from tests.ssh.relay import relayed
from tests.ssh.server import Server

pytestmark = pytest.mark.long


@pytest.fixture
def far_home(server: Server, tmp_path: Path, cases: Path) -> dict[str, str]:
    """Return the environment of a laptop whose `far` is the server, where one run is kept."""
    runs = tmp_path / "far-runs"
    shutil.copytree(cases / "logs" / "rehearsal", runs / "logs-only" / "7-logs")
    return laptop(server, tmp_path)


def test_logs_of_another_machine_say_the_same_as_here(
    far_home: dict[str, str], tmp_path: Path, cases: Path
) -> None:
    directory = str(tmp_path / "far-runs" / "logs-only")
    far = command(far_home, "watch", "--host", "far", "--once", "--json", directory)
    here = command(far_home, "watch", "--once", "--json", directory)
    assert (far.returncode, here.returncode) == (0, 0), far.stderr + here.stderr
    seen, expected = json.loads(far.stdout), json.loads(here.stdout)
    assert seen.pop("run") == f"far:{expected.pop('run')}"
    assert seen == expected
    assert seen["state"] == "completed"


def test_a_list_of_runs_that_is_empty_names_the_far_directory(far_home: dict[str, str]) -> None:
    done = command(far_home, "runs", "--host", "far")
    assert done.returncode == 0, done.stderr
    assert "distill-tui/runs" in done.stderr


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("runs", "--host", "far", "--disk-use"), "not over SSH"),
        (("runs", "--host=-oProxyCommand=id"), "invalid host"),
        (("watch", "--host", "far", "--once", "/no/such/directory"), "no such directory on far"),
        (("watch", "--host", "far", "--once"), "--host takes one run"),
        (("watch", "--host", "far", "--once", "no-such-run"), "no run 'no-such-run'"),
    ],
)
def test_what_does_not_work_says_what_does(
    far_home: dict[str, str], argv: tuple[str, ...], message: str
) -> None:
    done = command(far_home, *argv)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_no_line_is_lost_while_the_connection_is_cut_again_and_again(server: Server, tmp_path: Path) -> None:
    """Follow a growing log through a relay that cuts; in the end the state is that of the whole file."""
    logs = tmp_path / "logs"
    logs.mkdir()
    driver = logs / "ray-driver.log"
    steps = 60
    lines = DriverText([1 / step for step in range(1, steps + 1)], end="").text().splitlines(keepends=True)
    size = len(lines) // 60 + 1
    pieces = ["".join(lines[begin : begin + size]) for begin in range(0, len(lines), size)]
    with relayed(server.port) as relay:
        known = server.known_hosts(f"[127.0.0.1]:{relay.port} {server.host_key}\n")
        transport = SshTransport(server.host(known, port=relay.port), deadline_s=5.0)
        watch = watch_directory(transport, str(logs))
        cuts = 0
        for number, piece in enumerate(pieces):
            with driver.open("a") as file:
                file.write(piece)
            _poll(watch)
            if number % 3 == 0:
                relay.cut()
                cuts += 1
        for _ in range(100):
            _poll(watch)
            if not watch.problem and watch.state.step == steps:
                break
            time.sleep(0.2)
        transport.close()
    local = watch_directory(LocalTransport(), str(logs))
    local.catch_up()
    assert cuts >= 19
    assert watch.state.step == local.state.step == steps
    assert watch.state.metrics == local.state.metrics


def _poll(watch: Watch) -> None:
    for _ in watch.poll():
        pass
