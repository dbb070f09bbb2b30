"""The environment of a laptop, from which a test's server is the host `far`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from launcher.transports.ssh.sftp_files import SftpFiles
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.server import Server

ROOT = Path(__file__).parent.parent.parent


def laptop(server: Server, directory: Path, *, port: int | None = None, user: str = "") -> dict[str, str]:
    """Return the variables of a laptop with a home of its own.

    `port` is that of a relay to the server; `user` logs in there, by default the one who runs the tests.
    """
    port = port or server.port
    known = server.known_hosts(f"[127.0.0.1]:{port} {server.host_key}\n")
    config = directory / "config"
    config.write_text(
        f"Host far\n HostName 127.0.0.1\n Port {port}\n User {user or server.host().user}\n"
        f" IdentityFile {server.key}\n IdentitiesOnly yes\n UserKnownHostsFile {known}\n"
    )
    # The ssh client reads the file of the user database's home; a client that names another one stands in.
    bin_directory = directory / "bin"
    bin_directory.mkdir(exist_ok=True)
    ssh = bin_directory / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
    ssh.chmod(0o755)
    return {
        "HOME": str(directory / "laptop"), "PATH": f"{bin_directory}:{os.environ['PATH']}", "USER": "me",
        "DISTILL_TUI_RUNS": str(directory / "laptop-runs"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip


def command(
    environment: dict[str, str], *argv: str, wrapper: Sequence[str] = (), timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program on the laptop; `wrapper` is put before it."""
    return subprocess.run(
        [*wrapper, sys.executable, str(ROOT / "distill_tui.py"), *argv], cwd="/",
        env=environment, capture_output=True, text=True, check=False, timeout=timeout_s,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def requests_of(far: SshTransport, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets a word for each request from now on."""
    calls: list[str] = []
    take, sftp = far.connection.take_spare, SftpFiles._do

    def shell(timeout_s: float) -> Any:
        calls.append("shell")
        return take(timeout_s)

    def files(self: SftpFiles, action: Any) -> Any:
        calls.append("sftp")
        return sftp(self, action)

    monkeypatch.setattr(far.connection, "take_spare", shell)
    monkeypatch.setattr(SftpFiles, "_do", files)
    return calls
