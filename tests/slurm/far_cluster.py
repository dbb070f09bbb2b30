"""The test cluster as a host of a laptop: an sshd on its login node, and commands without any Slurm."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.user import User
from tests.ssh.laptop import command, laptop
from tests.ssh.second_factor import OPTIONS, wrapper
from tests.ssh.server import SSHD, Server, free_port, make_key


@dataclass(frozen=True)
class FarCluster:
    """A laptop in the login node's network, and the server there; nothing else of the cluster is seen."""

    server: Server
    environment: dict[str, str]
    wrapper: tuple[str, ...]

    def __call__(self, *argv: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a command of the program on the laptop."""
        return command(self.environment, *argv, wrapper=self.wrapper, timeout_s=timeout_s)


@contextmanager
def far_cluster(
    user: User,
    directory: Path,
    variables: dict[str, str],
    *,
    passphrase: str = "",
    second_factor: bool = False,
) -> Iterator[FarCluster]:
    """Run an sshd on the login node, whose shell gets some variables.

    `passphrase` is that of the user's key. With `second_factor` a code is asked for after the key, and the
    server is root's: PAM needs that.
    """
    if SSHD is None:
        pytest.skip("no sshd here (Debian: openssh-server)")
    home = user.place / "sshd"
    home.mkdir()
    server = Server(home, free_port())
    make_key(home / "host")
    make_key(server.key, passphrase)
    (home / "authorized").write_text((home / "user.pub").read_text())
    settings = " ".join(f"{name}={value}" for name, value in variables.items())
    options = OPTIONS if second_factor else ("UsePAM no", "PasswordAuthentication no")
    lines = [
        f"Port {server.port}", "ListenAddress 127.0.0.1", f"HostKey {home / 'host'}", *options,
        f"AuthorizedKeysFile {home / 'authorized'}", f"PidFile {home / 'pid'}", "StrictModes no",
        "Subsystem sftp internal-sftp", "LogLevel DEBUG1", f"SetEnv {settings}",
    ]  # fmt: skip
    (home / "config").write_text("\n".join(lines) + "\n")
    command = (SSHD, "-D", "-f", str(home / "config"), "-E", str(home / "log"))
    if second_factor:
        argv = user.cluster.login.inside(*wrapper(home, user.cluster.settings.user), *command)
    else:
        argv = user.cluster.user_command(*command)
        uid = user.cluster.settings.uid
        for path in (home, *home.iterdir()):
            os.chown(path, uid, uid)
    in_network = ("nsenter", "-t", str(user.cluster.login.pid), "-n", "--")
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    try:
        probe = ("bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{server.port}")
        end = time.monotonic() + 20
        while subprocess.run([*in_network, *probe], capture_output=True, check=False).returncode:
            assert time.monotonic() < end, (home / "log").read_text()
            time.sleep(0.1)
        environment = laptop(server, directory, user=user.cluster.settings.user)
        yield FarCluster(server, environment, in_network)
    finally:
        process.terminate()
        process.wait(10)
