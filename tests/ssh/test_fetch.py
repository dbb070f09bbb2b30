"""Copies of runs from another machine."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from launcher.errors import ConnectionLostError
from launcher.runs import SECRETS, load
from launcher.storage.copying import CHUNK_BYTES, fetch_run
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.laptop import ROOT, command, laptop
from tests.ssh.relay import relayed
from tests.ssh.server import Server

pytestmark = pytest.mark.long
BIG = os.urandom(1 << 16) * ((3 * CHUNK_BYTES + 5) // (1 << 16) + 1)


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    """Return a run with a large log, a checkpoint and a key file."""
    (sample,) = (path for path in (ROOT / "screenshots" / "sample").iterdir() if path.is_dir())
    directory = tmp_path / "far-runs" / sample.name
    shutil.copytree(sample, directory)
    (directory / "logs" / "big.log").write_bytes(BIG)
    (directory / "output" / "checkpoints" / "step_2").mkdir(parents=True)
    (directory / "output" / "checkpoints" / "step_2" / "weights").write_bytes(b"w" * 1000)
    (directory / SECRETS).write_text("export HF_TOKEN=hf_secret\n")
    return directory


def test_a_run_is_copied_with_its_report_and_not_twice(
    server: Server, run_directory: Path, tmp_path: Path
) -> None:
    environment = laptop(server, tmp_path)
    argv = ("fetch", str(run_directory), "--host", "far", "--to", str(tmp_path / "here"), "--json")
    first = command(environment, *argv)
    assert first.returncode == 0, first.stderr
    printed = json.loads(first.stdout)
    copy = tmp_path / "here" / run_directory.name
    assert printed["dir"] == str(copy)
    assert (printed["left_out_bytes"], printed["read_bytes"]) == (1000, printed["bytes"])
    for path in run_directory.rglob("*"):
        other = copy / path.relative_to(run_directory)
        if path.is_file() and path.name not in ("weights", SECRETS):
            assert other.read_bytes() == path.read_bytes()
    assert not (copy / SECRETS).exists()
    assert not (copy / "output" / "checkpoints").exists()
    assert run_directory.name in (copy / "report.md").read_text()
    with (run_directory / "logs" / "big.log").open("ab") as file:
        file.write(b"more")
    again = json.loads(command(environment, *argv, "--checkpoints").stdout)
    assert again["read_bytes"] == 1004
    assert (copy / "logs" / "big.log").read_bytes() == BIG + b"more"
    assert not list(copy.rglob(".*"))


def test_a_copy_that_broke_off_goes_on(server: Server, run_directory: Path, tmp_path: Path) -> None:
    def transport(port: int) -> SshTransport:
        known = server.known_hosts(f"[127.0.0.1]:{port} {server.host_key}\n")
        return SshTransport(server.host(known, port=port), deadline_s=10.0)

    with relayed(server.port) as relay:
        one = transport(relay.port)
        run = load(one, str(run_directory))
        relay.cut_after = 2 * CHUNK_BYTES  # up to 2 MiB of it, SSH's window, are lost on their way

        def refuse(_: float) -> None:
            relay.refuse()

        with pytest.raises(ConnectionLostError):
            fetch_run(one, run, tmp_path / "here", sleep=refuse)
        one.close()
        relay.accept()
        two = transport(relay.port)
        result = fetch_run(two, run, tmp_path / "here")
        two.close()
    assert result.read <= len(BIG) - CHUNK_BYTES + 20_000
    assert (result.directory / "logs" / "big.log").read_bytes() == BIG
    assert not list(result.directory.rglob(".*"))
