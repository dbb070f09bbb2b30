"""Coming in: keys of hosts, own keys with passphrases, and a second factor asked by a real PAM."""

from __future__ import annotations

import getpass
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.errors import ConnectionLostError
from launcher.transports.ssh.authentication import LoginError, LoginPrompt
from launcher.transports.ssh.host_keys import HostKeyError
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.server import SFTP, Server, make_key, running

pytestmark = pytest.mark.long
SECRET = "3132333435363738393031323334353637383930"
"""Seed of the codes, in hex (RFC 6238, appendix B)."""


def echo(transport: SshTransport) -> str:
    try:
        return transport.run(["echo", "in"]).stdout
    finally:
        transport.close()


def test_a_known_key_is_accepted_plain_and_hashed(server: Server) -> None:
    assert echo(SshTransport(server.host())) == "in\n"
    hashed = server.known_hosts()
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(hashed)], check=True, capture_output=True)
    assert "127.0.0.1" not in hashed.read_text()
    assert echo(SshTransport(server.host(hashed))) == "in\n"


def test_an_unknown_key_is_refused_and_never_added(server: Server) -> None:
    known = server.known_hosts(
        "# nothing\nother.example.org ssh-ed25519 AAAA\ndamaged line\n@revoked x y z\n"
    )
    before = known.read_bytes()
    with pytest.raises(HostKeyError) as refused:
        echo(SshTransport(server.host(known)))
    argv = ["ssh-keygen", "-l", "-f", str(server.directory / "host.pub")]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]
    assert "is unknown" in refused.value.what
    assert listed in refused.value.what
    assert "ssh test" in refused.value.fix
    assert known.read_bytes() == before


def test_a_changed_key_is_refused_with_both_fingerprints(server: Server, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    kind, key = (tmp_path / "other.pub").read_text().split()[:2]
    known = server.known_hosts(f"[127.0.0.1]:{server.port} {kind} {key}\n")
    with pytest.raises(HostKeyError, match=r"changed: it is ssh-ed25519 SHA256:.* \(known_hosts has SHA256:"):
        echo(SshTransport(server.host(known)))


def test_a_key_with_a_passphrase_is_asked_for_and_asked_again(server: Server, tmp_path: Path) -> None:
    make_key(tmp_path / "locked", "right")
    authorized = server.directory / "authorized"
    authorized.write_text(authorized.read_text() + (tmp_path / "locked.pub").read_text())
    prompts: list[LoginPrompt] = []
    answers = iter(("wrong", "right"))

    def answer(prompt: LoginPrompt) -> str:
        prompts.append(prompt)
        return next(answers)

    assert echo(SshTransport(server.host(keys=[tmp_path / "locked"]), answer)) == "in\n"
    assert [prompt.text.split(" for")[0] for prompt in prompts] == [
        "Passphrase",
        "Wrong passphrase; passphrase",
    ]
    assert not any(prompt.echo for prompt in prompts)


def test_a_key_that_is_not_accepted_explains_itself(server: Server, tmp_path: Path) -> None:
    make_key(tmp_path / "stranger")
    with pytest.raises(LoginError) as refused:
        echo(SshTransport(server.host(keys=[tmp_path / "stranger"])))
    assert f"refuses {getpass.getuser()} (1 keys were tried ({tmp_path}/stranger)" in refused.value.what
    assert 'from="' in refused.value.fix


def test_nobody_there(server: Server, tmp_path: Path) -> None:
    transport = SshTransport(server.host(port=1))
    with pytest.raises(ConnectionLostError, match="test: Connection refused"):
        transport.run(["true"])
    with pytest.raises(ConnectionLostError, match=r"not connected|Connection refused"):
        transport.run(["true"])
    state = transport.state()
    assert (state.connected, state.problem, state.last_data) == (False, "Connection refused", None)


@pytest.fixture(scope="module")
def code_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that wants the key, then a code, from a real PAM in a mount namespace of its own."""
    if os.geteuid() != 0 or not Path("/lib/x86_64-linux-gnu/security/pam_oath.so").exists():
        pytest.skip("a PAM of its own is made by root only (Debian: libpam-oath)")
    directory = tmp_path_factory.mktemp("code-sshd")
    users = directory / "users.oath"
    users.write_text(f"HOTP/T30/6 {getpass.getuser()} - {SECRET}\n")
    users.chmod(0o600)
    pam = directory / "pam"
    pam.write_text(
        f"auth required pam_oath.so usersfile={users} window=3 digits=6\naccount required pam_permit.so\n"
        "session required pam_permit.so\n"
    )
    wrapper = ["unshare", "-m", "sh", "-c", f'mount --bind {pam} /etc/pam.d/sshd && exec "$@"', "sh"]
    options = (
        SFTP, "UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication no",
        "AuthenticationMethods publickey,keyboard-interactive",
    )  # fmt: skip
    with running(directory, *options, wrapper=wrapper) as server:
        yield server


def code() -> str:
    done = subprocess.run(["oathtool", "--totp", SECRET], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_code_is_asked_for_once_and_typed_wrong_asked_again(code_server: Server) -> None:
    prompts: list[LoginPrompt] = []

    def answer(prompt: LoginPrompt) -> str:
        prompts.append(prompt)
        return "000000" if len(prompts) == 1 else code()

    transport = SshTransport(code_server.host(), answer)
    assert transport.run(["echo", "in"]).stdout == "in\n"
    assert [prompt.text.startswith("One-time password") for prompt in prompts] == [True, True]
    for number in range(5):  # everything goes over the one connection
        assert transport.run(["echo", str(number)]).stdout == f"{number}\n"
        assert transport.stat("/") is not None
    assert len(prompts) == 2
    transport.close()


def test_who_takes_long_to_type_is_let_in_and_the_command_runs(server: Server, tmp_path: Path) -> None:
    """The time of the login is none of the command's."""
    make_key(tmp_path / "slow", "right")
    authorized = server.directory / "authorized"
    authorized.write_text(authorized.read_text() + (tmp_path / "slow.pub").read_text())

    def answer(_: LoginPrompt) -> str:
        time.sleep(1.5)
        return "right"

    transport = SshTransport(server.host(keys=[tmp_path / "slow"]), answer, deadline_s=1.2)
    assert transport.run(["echo", "in"], timeout_s=1.2).stdout == "in\n"
    transport.close()


def test_without_anybody_to_ask_the_question_is_told(code_server: Server) -> None:
    with pytest.raises(LoginError, match="test asks: One-time password"):
        echo(SshTransport(code_server.host()))


def test_wrong_codes_end_with_what_to_check(code_server: Server) -> None:
    with pytest.raises(LoginError, match="answers were not accepted") as refused:
        echo(SshTransport(code_server.host(), lambda _: "000000"))
    assert "clock" in refused.value.fix
