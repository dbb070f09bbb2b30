"""A real sshd on the loopback, for one user, with keys and a configuration of its own."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from launcher.transports.ssh.ssh_config import SshHost

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
SFTP = "Subsystem sftp internal-sftp"


@dataclass(frozen=True)
class Server:
    """A running sshd."""

    directory: Path
    port: int

    @property
    def key(self) -> Path:
        return self.directory / "user"

    @property
    def host_key(self) -> str:
        """The public key, without a name before it."""
        return " ".join((self.directory / "host.pub").read_text().split()[:2])

    def known_hosts(self, text: str | None = None) -> Path:
        path = self.directory / f"known-{time.monotonic_ns()}"
        path.write_text(f"[127.0.0.1]:{self.port} {self.host_key}\n" if text is None else text)
        return path

    def host(
        self, known_hosts: Path | None = None, *, port: int | None = None, keys: Sequence[Path] = ()
    ) -> SshHost:
        return SshHost(
            alias="test",
            hostname="127.0.0.1",
            user=getpass.getuser(),
            port=port or self.port,
            identity_files=tuple(map(str, keys or (self.key,))),
            known_hosts_files=(str(known_hosts or self.known_hosts()),),
            identities_only=True,
            connect_timeout_s=5.0,
        )


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519") -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def running(directory: Path, *options: str, wrapper: Sequence[str] = ()) -> Iterator[Server]:
    """Run an sshd with some lines of configuration; `wrapper` is put before its command."""
    if SSHD is None:
        pytest.skip("no sshd here (Debian: openssh-server)")
    server = Server(directory, free_port())
    make_key(directory / "host")
    make_key(server.key)
    (directory / "authorized").write_text((directory / "user.pub").read_text())
    Path("/run/sshd").mkdir(exist_ok=True) if getpass.getuser() == "root" else None
    config = directory / "sshd_config"
    lines = [
        f"Port {server.port}", "ListenAddress 127.0.0.1", f"HostKey {directory / 'host'}",
        f"AuthorizedKeysFile {directory / 'authorized'}", f"PidFile {directory / 'pid'}", "StrictModes no",
        "PermitRootLogin yes", "LogLevel DEBUG1", *options,
        *(() if any(line.startswith("UsePAM") for line in options) else ("UsePAM no",)),
        *(() if any(line.startswith("KbdInteractive") for line in options) else
          ("KbdInteractiveAuthentication no", "PasswordAuthentication no")),
    ]  # fmt: skip
    config.write_text("\n".join(lines) + "\n")
    process = subprocess.Popen([*wrapper, SSHD, "-D", "-f", str(config), "-E", str(directory / "log")])
    try:
        _wait(server, process)
        yield server
    finally:
        process.terminate()
        process.wait(10)


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, (server.directory / "log").read_text()
        with socket.socket() as sock:
            if sock.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("sshd does not listen")
