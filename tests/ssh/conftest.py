"""Servers, one of each kind for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.transports.base import Transport
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.server import SFTP, Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server with SFTP."""
    with running(tmp_path_factory.mktemp("sshd"), SFTP) as server:
        yield server


@pytest.fixture(scope="module")
def bare_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server without SFTP."""
    with running(tmp_path_factory.mktemp("bare-sshd")) as server:
        yield server


@pytest.fixture(params=["local", "ssh", "ssh without sftp"])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """Return each kind of transport to this machine."""
    if request.param == "local":
        yield LocalTransport()
        return
    name = "server" if request.param == "ssh" else "bare_server"
    server: Server = request.getfixturevalue(name)
    remote = SshTransport(server.host())
    yield remote
    remote.close()


@pytest.fixture
def odd_path(tmp_path: Path) -> Path:
    """Return a directory whose name holds what shells take for something else."""
    path = tmp_path / "a b$HOME`id`'\"\\*?[x];&|<>(){}!#~ü"
    path.mkdir()
    return path
