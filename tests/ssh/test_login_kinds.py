"""Ways in as servers have them: shells that print, other shells, many keys, hosts on the way, rounds."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import ConnectionLostError, TransportError, UnclearError
from launcher.transports.ssh.authentication import LoginError, LoginPrompt
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.second_factor import OPTIONS, code, wrapper
from tests.ssh.server import SFTP, Server, free_port, make_key, running

pytestmark = pytest.mark.long
GREETING = "echo 'Welcome to the login node'; printf 'no end of line '\n"


def whole(transport: SshTransport, directory: Path) -> None:
    """Use all kinds of calls once: what a shell prints is in none of the answers."""
    path = directory / "a 'file'"
    large = bytes(range(256)) * 512
    try:
        assert transport.run(["echo", "$HOME;'x'"]).stdout == "$HOME;'x'\n"
        assert transport.environment()["HOME"] == str(directory)
        assert "Welcome" not in "".join(transport.environment())
        for data in (b"small", large):  # the large one goes by SFTP, where there is one
            transport.write_atomic(str(path), data)
            assert (path.read_bytes(), transport.read(str(path))) == (data, data)
        assert [entry.name for entry in transport.listdir(str(directory)) if entry.name == path.name]
        with transport.looking_at((str(directory),), 2, "*"):
            assert transport.stat(str(path)) is not None
        stream = transport.converse(["cat"])
        stream.sendall(b"to and fro")
        assert stream.recv(100) == b"to and fro"
        stream.close()
    finally:
        transport.close()


@contextmanager
def with_shell(directory: Path, shell: str, *options: str, without: str = "") -> Iterator[Server]:
    """Run a server that takes a program for everybody's login shell; `without` hides another program."""
    if os.geteuid() != 0:
        pytest.skip("a list of users of its own is mounted by root only")
    lines = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
    users = [":".join([*line[:6], shell]) for line in lines if len(line) == 7]
    passwd = directory / "passwd"
    passwd.write_text("\n".join(users) + "\n")
    hide = f"mount --bind {directory / 'host.pub'} {without} && " if without else ""
    mounts = ["unshare", "-m", "sh", "-c", f'mount --bind {passwd} /etc/passwd && {hide}exec "$@"', "sh"]
    with running(directory, f"SetEnv HOME={directory}", *options, wrapper=mounts) as server:
        yield server


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "tcsh", "fish", "busybox"])
@pytest.mark.parametrize("sftp", [SFTP, "Subsystem sftp /usr/lib/openssh/sftp-server", ""])
def test_login_shells_that_print(tmp_path: Path, shell: str, sftp: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    if shell == "busybox":
        Path(tmp_path / "sh").symlink_to(program)
        program = str(tmp_path / "sh")
    for name in (".bashrc", ".bash_profile", ".profile", ".zshenv", ".zprofile", ".tcshrc", ".cshrc"):
        (tmp_path / name).write_text(GREETING)
    (tmp_path / ".config" / "fish").mkdir(parents=True)
    (tmp_path / ".config" / "fish" / "config.fish").write_text(GREETING)
    banner = tmp_path / "banner"
    banner.write_text("Authorised users only.\n" * 40)
    with with_shell(tmp_path, program, sftp, f"Banner {banner}", "PrintMotd yes") as server:
        whole(SshTransport(server.host()), tmp_path)


def test_a_login_shell_that_takes_long_costs_no_connection(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("sleep 3\n")
    with with_shell(tmp_path, "/bin/bash", SFTP) as server:
        transport = SshTransport(server.host())
        with pytest.raises(UnclearError, match="no answer for 1 s to 'true'"):
            transport.run(["true"], timeout_s=1.0)
        assert transport.run(["echo", "on"], timeout_s=60).stdout == "on\n"
        assert transport.connection.generation == 1
        transport.close()


def test_a_machine_without_bash(tmp_path: Path) -> None:
    with with_shell(tmp_path, "/bin/sh", SFTP, without="/bin/bash") as server:
        transport = SshTransport(server.host())
        assert transport.run(["bash", "-c", "true"]).code in (126, 127)
        whole(transport, tmp_path)


def test_a_server_that_runs_one_command_only_is_told(tmp_path: Path) -> None:
    told = "this account copies files only"
    with running(tmp_path, SFTP, f"ForceCommand echo {told}") as server:
        transport = SshTransport(server.host())
        with pytest.raises(TransportError, match=f"cannot be run on test: {told}"):
            transport.run(["true"])
        transport.close()


def test_a_command_that_a_signal_ends_is_not_called_done(tmp_path: Path, server: Server) -> None:
    transport = SshTransport(server.host())
    with pytest.raises(TransportError, match="ended by a signal"):
        transport.run(["sh", "-c", "kill -9 $$"])
    assert transport.run(["echo", "on"]).stdout == "on\n"
    assert transport.connection.generation == 1
    transport.close()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run an agent with eight keys; returns their directory."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    keys = tmp_path / "keys"
    keys.mkdir()
    for _ in range(200):
        if path.exists():
            break
        threading.Event().wait(0.05)
    for number in range(8):
        make_key(keys / f"key-{number}")
        subprocess.run(["ssh-add", "-q", str(keys / f"key-{number}")], check=True, capture_output=True)
    yield keys
    process.terminate()
    process.wait(10)


def authorize(server: Server, keys: Sequence[Path], options: str = "") -> None:
    """Let a server accept some keys alone."""
    lines = [f"{options}{key.with_name(f'{key.name}.pub').read_text()}" for key in keys]
    (server.directory / "authorized").write_text("".join(lines))


def test_an_agent_with_many_keys(server: Server, agent: Path) -> None:
    every = replace(server.host(keys=[agent / "none"]), identities_only=False)
    authorize(server, [agent / "key-7"])
    with pytest.raises(LoginError, match=r"too many authentication failures") as refused:
        SshTransport(every).run(["true"])
    assert "IdentitiesOnly yes" in refused.value.fix
    assert "after 6 keys" in refused.value.what or "after 7 keys" in refused.value.what
    # Named in the configuration, it comes first, also where the agent alone has it.
    (agent / "key-7").unlink()
    named = replace(server.host(keys=[agent / "key-7"]), identities_only=False)
    assert SshTransport(named).run(["echo", "in"]).stdout == "in\n"
    # A file that the agent does not hold comes before its other keys.
    authorize(server, [server.key])
    own = replace(server.host(), identities_only=False)
    assert SshTransport(own).run(["echo", "in"]).stdout == "in\n"
    only = replace(server.host(keys=[agent / "key-0"]), identities_only=True)
    with pytest.raises(LoginError, match=r"1 keys were tried \(the agent's"):
        SshTransport(only).run(["true"])


def test_a_key_that_counts_from_elsewhere_only_says_so(server: Server) -> None:
    authorize(server, [server.key], 'from="192.0.2.7" ')
    try:
        with pytest.raises(LoginError) as refused:
            SshTransport(server.host()).run(["true"])
    finally:
        authorize(server, [server.key])
    assert "it accepts publickey" in refused.value.what
    assert 'from="' in refused.value.fix
    assert "VPN" in refused.value.fix


def test_two_keys_that_are_both_wanted(tmp_path: Path) -> None:
    with running(tmp_path, "AuthenticationMethods publickey,publickey") as server:
        make_key(tmp_path / "second")
        authorize(server, [server.key, tmp_path / "second"])
        host = server.host(keys=[server.key, tmp_path / "second"])
        assert SshTransport(host).run(["echo", "in"]).stdout == "in\n"


def test_a_round_without_questions_is_answered_with_nothing(tmp_path: Path) -> None:
    put_before = wrapper(tmp_path, getpass.getuser(), message="Maintenance on Tuesday")
    prompts: list[LoginPrompt] = []

    def answer(prompt: LoginPrompt) -> str:
        prompts.append(prompt)
        return code()

    with running(tmp_path, SFTP, *OPTIONS, wrapper=put_before) as server:
        assert SshTransport(server.host(), answer).run(["echo", "in"]).stdout == "in\n"
    assert [prompt.text.partition(" ")[0] for prompt in prompts] == ["One-time"]


def test_addresses_of_a_name_are_tried_in_turn(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is down, one takes the connection and closes it, the third is the server."""
    closing = socket.create_server(("127.0.0.1", 0))

    def close_at_once() -> None:
        while True:
            try:
                closing.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=close_at_once, daemon=True).start()
    ports = (free_port(), closing.getsockname()[1], server.port)
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    transport = SshTransport(server.host())
    assert transport.run(["echo", "in"]).stdout == "in\n"
    transport.close()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer[:2])
    with pytest.raises(ConnectionLostError, match="test: the connection was closed"):
        SshTransport(server.host()).run(["true"])
    closing.close()


def test_hosts_on_the_way(server: Server, bare_server: Server, tmp_path: Path) -> None:
    (tmp_path / "third").mkdir()
    with running(tmp_path / "third", SFTP) as last:
        host = replace(last.host(), jumps=(server.host(), bare_server.host()))
        transport = SshTransport(host)
        (tmp_path / "file").write_text("x")
        assert transport.read(str(tmp_path / "file")) == b"x"
        assert transport.run(["echo", "in"]).stdout == "in\n"
        transport.close()
        stranger = replace(server.host(bare_server.known_hosts("")), alias="gate")
        with pytest.raises(TransportError, match=r"gate: the host key of 127\.0\.0\.1 is unknown"):
            SshTransport(replace(last.host(), jumps=(stranger,))).run(["true"])
    (tmp_path / "closed").mkdir()
    with running(tmp_path / "closed", "AllowTcpForwarding no") as closed:
        transport = SshTransport(replace(server.host(), jumps=(closed.host(),)))
        with pytest.raises(ConnectionLostError, match=r"test: .*prohibited"):
            transport.run(["true"])


def test_a_line_that_stalls_after_the_login_is_an_error_in_time(server: Server, tmp_path: Path) -> None:
    """Each step of opening a channel or SFTP has its limit: none waits for a consent without end."""
    from tests.ssh.relay import relayed

    for use in ("run", "write", "converse"):
        with relayed(server.port) as relay:
            known = server.known_hosts(f"[127.0.0.1]:{relay.port} {server.host_key}\n")
            transport = SshTransport(server.host(known, port=relay.port), deadline_s=1.0)
            transport.connection.transport()
            calls: dict[str, Any] = {
                "run": lambda: transport.run(["true"], timeout_s=1.0),  # noqa: B023
                "write": lambda: transport.write_atomic(str(tmp_path / "x"), b"x" * 200_000),  # noqa: B023
                "converse": lambda: transport.converse(["cat"]),  # noqa: B023
            }
            relay.stall()
            with pytest.raises(ConnectionLostError):
                calls[use]()
            relay.flow()
            assert not (tmp_path / "x").exists()
            transport.close()
