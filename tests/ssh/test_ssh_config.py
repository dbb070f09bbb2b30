"""Hosts of the user's ssh configuration, by the ssh client and without one."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.transports.ssh.ssh_config import SshHost, host_names, resolve_host

CONFIG = """
Host gate
    HostName gate.example.org
    User carla
    Port 2200
Host juwels jwb*
    HostName juwels-booster.example.org
    User carla1
    IdentityFile ~/.ssh/id_site
    IdentityFile /keys/second
    CertificateFile ~/.ssh/id_site-cert.pub
    ProxyJump gate,bob@second:2022
    UserKnownHostsFile ~/.ssh/known_site /etc/known_more
    HostKeyAlias juwels
    ServerAliveInterval 7
    ConnectTimeout 3
    IdentitiesOnly yes
Host odd
    ProxyCommand nc %h %p
Host *
    User nobody
"""


@pytest.fixture(params=["ssh -G", "paramiko"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Return an environment with and one without an ssh client."""
    if request.param == "ssh -G":
        ssh = shutil.which("ssh")
        if ssh is None:
            pytest.skip("no ssh client here")
        return {"HOME": str(tmp_path), "PATH": str(Path(ssh).parent), "USER": "me"}
    return {"HOME": str(tmp_path), "PATH": str(tmp_path), "USER": "me"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


def test_everything_of_a_host(
    environment: dict[str, str], config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir  # ssh takes it from the user database, whatever HOME is
    monkeypatch.setenv("HOME", home)  # paramiko does not
    host = resolve_host("juwels", environment, config=config)
    assert (host.alias, host.hostname, host.user, host.port) == (
        "juwels", "juwels-booster.example.org", "carla1", 22,
    )  # fmt: skip
    assert host.identity_files == (f"{home}/.ssh/id_site", "/keys/second")
    assert host.certificate_files == (f"{home}/.ssh/id_site-cert.pub",)
    assert host.known_hosts_files[:2] == (f"{home}/.ssh/known_site", "/etc/known_more")
    assert (host.host_key_alias, host.host_key_name, host.identities_only) == ("juwels", "juwels", True)
    assert (host.keepalive_s, host.connect_timeout_s) == (7, 3.0)
    assert [(jump.user, jump.hostname, jump.port) for jump in host.jumps] == [
        ("carla", "gate.example.org", 2200),
        ("bob", "second", 2022),
    ]


def test_names_that_the_file_does_not_list(environment: dict[str, str], config: Path) -> None:
    host = resolve_host("carla@somewhere.example.org", environment, config=config)
    assert (host.hostname, host.user, host.jumps) == ("somewhere.example.org", "carla", ())
    assert resolve_host("jwb0001", environment, config=config).hostname == "juwels-booster.example.org"
    assert resolve_host("other", environment, config=config).user == "nobody"


@pytest.mark.parametrize("alias", ["", "-oProxyCommand=id", "a b", "a;id", "$(id)", "a\nb", "\x1b[m", "a/b"])
def test_what_is_no_name(environment: dict[str, str], config: Path, alias: str) -> None:
    with pytest.raises(InputError, match="invalid host"):
        resolve_host(alias, environment, config=config)


def test_a_proxy_command_is_refused_with_what_to_do(environment: dict[str, str], config: Path) -> None:
    with pytest.raises(InputError, match="ProxyCommand is not supported"):
        resolve_host("odd", environment, config=config)


def test_a_damaged_file(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host a\n  Port twenty\n")
    with pytest.raises(InputError, match="host a: "):
        resolve_host("a", environment, config=path)


def test_hosts_that_jump_in_a_circle(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(InputError, match="ProxyJump"):
        resolve_host("a", environment, config=path)


def test_names_to_complete(config: Path, tmp_path: Path) -> None:
    assert host_names(config) == ("gate", "juwels", "odd")
    assert host_names(tmp_path / "none") == ()


def test_the_name_of_a_key_has_the_port() -> None:
    assert SshHost("a", "h", "u").host_key_name == "h"
    assert SshHost("a", "h", "u", port=2200).host_key_name == "[h]:2200"


GRAMMAR = """\
Include conf.d/*.conf
Host=jw*   # a comment is part of no name
    HostName = %h.example.org
    User carla
    Port 2222
    IdentityFile "~/.ssh/id of %r"
    IdentityFile ${KEYS}/%n_%h_%p_%%
    CertificateFile ~/.ssh/%r-cert.pub
    UserKnownHostsFile ~/.ssh/known_%h
    ProxyJump %r@gate:2022,ssh://bob@second:23
Match originalhost odd user root
    Port 77
Match host plain
    IdentitiesOnly yes
Host *
    User nobody
    IdentityFile ~/.ssh/last
"""


@pytest.fixture
def grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file with tokens, quotes, blocks of Match, and files that it includes."""
    monkeypatch.setenv("HOME", pwd.getpwuid(os.getuid()).pw_dir)
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "1.conf").write_text(
        "Host first\n HostName one.example.org\n Include conf.d/deep\nHost f*\n User inner\n"
    )
    (tmp_path / "conf.d" / "2.conf").write_text("Host second-file\n HostName two.example.org\n")
    (tmp_path / "conf.d" / "deep").write_text("Port 4000\n")
    path = tmp_path / "config"
    # ssh takes relative names from ~/.ssh, whatever file was named.
    path.write_text(GRAMMAR.replace("conf.d/*", f"{tmp_path}/conf.d/*"))
    included = tmp_path / "conf.d" / "1.conf"
    included.write_text(included.read_text().replace("conf.d/deep", f"{tmp_path}/conf.d/deep"))
    return path


def test_tokens_variables_and_quotes(environment: dict[str, str], grammar: Path) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir
    host = resolve_host("jw7", environment | {"KEYS": "/keys"}, config=grammar)
    assert (host.hostname, host.user, host.port) == ("jw7.example.org", "carla", 2222)
    assert host.identity_files == (
        f"{home}/.ssh/id of carla", "/keys/jw7_jw7.example.org_2222_%", f"{home}/.ssh/last",
    )  # fmt: skip
    assert host.certificate_files == (f"{home}/.ssh/carla-cert.pub",)
    assert host.known_hosts_files[0] == f"{home}/.ssh/known_jw7.example.org"
    assert [(jump.user, jump.hostname, jump.port) for jump in host.jumps] == [
        ("carla", "gate", 2022),
        ("bob", "second", 23),
    ]


def test_included_files_and_blocks(environment: dict[str, str], grammar: Path) -> None:
    first = resolve_host("first", environment, config=grammar)
    assert (first.hostname, first.user, first.port) == ("one.example.org", "inner", 4000)
    assert resolve_host("second-file", environment, config=grammar).hostname == "two.example.org"
    assert not resolve_host("jw1", environment, config=grammar).identities_only
    assert resolve_host("plain", environment, config=grammar).identities_only
    assert host_names(grammar) == ("first", "second-file")


def test_match_exec_needs_an_ssh_client(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text('Match host a exec "test -d /"\n Port 99\n')
    if "HOME" in environment and environment["PATH"] != str(tmp_path):
        assert resolve_host("a", environment, config=path).port == 99
    else:
        with pytest.raises(InputError, match="`Match exec` needs an ssh client"):
            resolve_host("a", environment, config=path)


def test_a_file_that_includes_itself(environment: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(f"Host a\n HostName b\n Include {path}\n")
    assert host_names(path) == ("a",)
