"""A host as the user's ssh configuration has it: address, user, keys, hosts to jump over."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.errors import InputError
from launcher.text import clean, did_you_mean
from launcher.transports.ssh.config_text import expanded, lines_of, split_line

_ALIAS = re.compile(r"(?:[A-Za-z0-9_.+-]+@)?[A-Za-z0-9_][A-Za-z0-9_.:%-]*")
_DEEPEST_JUMP = 8
_SSH_TIMEOUT_S = 10.0
KEEPALIVE_S = 15
"""Seconds between keepalives where the configuration has none (ServerAliveInterval)."""
CONNECT_TIMEOUT_S = 10.0
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_DEFAULT_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")
_WITH_TOKENS = frozenset({"identityfile", "certificatefile", "userknownhostsfile", "proxyjump"})
Options = Mapping[str, Sequence[str]]
"""Values of an option by its lower-case name, as `ssh -G` prints them."""


@dataclass(frozen=True, slots=True)
class SshHost:
    """Another machine, and how it is reached."""

    alias: str
    """Name as the user gives it."""
    hostname: str
    user: str
    port: int = 22
    identity_files: tuple[str, ...] = ()
    certificate_files: tuple[str, ...] = ()
    known_hosts_files: tuple[str, ...] = ()
    host_key_alias: str = ""
    jumps: tuple[SshHost, ...] = ()
    """Hosts that the connection goes through, the first one first."""
    identities_only: bool = False
    """Whether only keys of `identity_files` are taken from the agent."""
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    keepalive_s: int = KEEPALIVE_S

    @property
    def host_key_name(self) -> str:
        """Name that the host's key has in known_hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""
        name = self.host_key_alias or self.hostname
        return name if self.port == 22 or self.host_key_alias else f"[{name}]:{self.port}"


def resolve_host(alias: str, environment: Mapping[str, str], *, config: Path | None = None) -> SshHost:
    """Return a host from its name: by `ssh -G` where there is an ssh client, else from `~/.ssh/config`.

    `alias` may be `user@host`; `config` replaces the user's file.

    Raises:
        InputError: the name cannot be one, the configuration cannot be read, or needs what is not supported.
    """
    return _resolve(alias, environment, config, depth=0)


def host_names(config: Path) -> tuple[str, ...]:
    """Return the names of hosts that a configuration file lists, without patterns; none if unreadable."""
    names = [name for line in lines_of(config) for name in _named_in(line)]
    return tuple(dict.fromkeys(name for name in names if _ALIAS.fullmatch(name)))


def _named_in(line: str) -> list[str]:
    """Return the words of a Host line."""
    keyword, words = split_line(line)
    return words if keyword == "host" else []


def similar_host(alias: str, environment: Mapping[str, str]) -> str:
    """Return a question for the configured host whose name is similar; empty where none is, or it is one."""
    names = host_names(Path(environment.get("HOME") or Path.home(), ".ssh", "config"))
    return did_you_mean(alias, names) if names and alias not in names else ""


def _resolve(alias: str, environment: Mapping[str, str], config: Path | None, depth: int) -> SshHost:
    if not _ALIAS.fullmatch(alias):
        raise InputError(f"invalid host: '{clean(alias)}' (expected a name of ~/.ssh/config, or USER@HOST)")
    if depth > _DEEPEST_JUMP:
        raise InputError(f"host {alias}: ProxyJump goes over more than {_DEEPEST_JUMP} hosts")
    user, _, name = alias.rpartition("@")
    options = _options(name, environment, config)
    command = _first(options, "proxycommand")
    if command not in ("", "none"):
        raise InputError(
            f"host {alias}: ProxyCommand is not supported",
            where=str(config or "~/.ssh/config"),
            fix="Use ProxyJump HOST, which does the same for hosts that speak SSH.",
        )
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # as ssh expands `~` (ssh_config(5), TOKENS)
    port = _number(alias, options, "port", 22)
    if not 0 < port < 1 << 16:
        raise InputError(f"host {alias}: invalid port: {port} (expected 1 to 65535)")
    local_user = environment.get("USER") or getpass.getuser()
    remote_user = user or _first(options, "user") or local_user
    hostname = _first(options, "hostname") or name
    # What `ssh -G` prints as it stands in the file.
    tokens = {
        "h": hostname, "n": name, "p": str(port), "r": remote_user, "u": local_user, "d": str(home),
        "k": _first(options, "hostkeyalias") or name, "i": str(os.getuid()),
        "l": socket.gethostname(), "L": socket.gethostname().partition(".")[0],
    }  # fmt: skip
    options = {
        key: [expanded(value, tokens, environment) for value in values] if key in _WITH_TOKENS else values
        for key, values in options.items()
    }
    jump = _first(options, "proxyjump")
    jumps = [] if jump in ("", "none") else [part.strip() for part in jump.split(",")]
    return SshHost(
        alias=name,
        hostname=hostname,
        user=remote_user,
        port=port,
        identity_files=_files(options, "identityfile", _DEFAULT_KEYS, home),
        certificate_files=_files(options, "certificatefile", (), home),
        known_hosts_files=_files(
            {key: [word for value in values for word in value.split()] for key, values in options.items()
             if key in ("userknownhostsfile", "globalknownhostsfile")},
            "userknownhostsfile", _DEFAULT_KNOWN_HOSTS, home, more="globalknownhostsfile",
        ),
        host_key_alias=_first(options, "hostkeyalias"),
        jumps=tuple(_jump(part, environment, config, depth) for part in jumps),
        identities_only=_first(options, "identitiesonly").lower() in ("yes", "true"),
        connect_timeout_s=float(_number(alias, options, "connecttimeout", int(CONNECT_TIMEOUT_S))),
        keepalive_s=_number(alias, options, "serveraliveinterval", 0) or KEEPALIVE_S,
    )  # fmt: skip


def _jump(text: str, environment: Mapping[str, str], config: Path | None, depth: int) -> SshHost:
    """Return a host of ProxyJump: `[user@]host[:port]` or `ssh://[user@]host[:port]` (ssh_config(5))."""
    text = text.removeprefix("ssh://")
    name, _, port = text.rpartition(":")
    if not name or not re.fullmatch("[0-9]{1,5}", port):
        return _resolve(text, environment, config, depth + 1)
    return replace(_resolve(name, environment, config, depth + 1), port=int(port))


def _options(name: str, environment: Mapping[str, str], config: Path | None) -> Options:
    ssh = shutil.which("ssh", path=environment.get("PATH"))
    if ssh is not None:
        return _asked(ssh, name, environment, config)
    return _parsed(name, config or Path(environment.get("HOME") or Path.home(), ".ssh", "config"))


def _asked(ssh: str, name: str, environment: Mapping[str, str], config: Path | None) -> Options:
    """Return the options as the ssh client itself reads them, Include and Match with it."""
    argv = [ssh, *(("-F", str(config)) if config is not None else ()), "-G", "--", name]
    try:
        done = subprocess.run(
            argv, env=dict(environment), capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_SSH_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"host {name}: `ssh -G {name}` failed: {error}") from error
    if done.returncode != 0:
        reason = clean(done.stderr.strip().rpartition("\n")[2])
        raise InputError(f"host {name}: the ssh configuration cannot be read: {reason}")
    options: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        options.setdefault(key.lower(), []).append(value)
    return options


def _parsed(name: str, config: Path) -> Options:
    import paramiko

    if not config.is_file():
        return {}
    lines = list(lines_of(config))
    if any(_runs_a_command(line) for line in lines):
        raise InputError(f"host {name}: `Match exec` needs an ssh client", where=str(config))
    try:
        found = paramiko.SSHConfig.from_text("\n".join(lines)).lookup(name)
    except (paramiko.ConfigParseError, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"host {name}: the ssh configuration cannot be read: {error}", where=str(config)
        ) from error
    # paramiko's types say that each value is a string; IdentityFile's are lists.
    values: dict[str, object] = dict(found)
    return {
        key: list(map(str, value)) if isinstance(value, list) else [str(value)]
        for key, value in values.items()
    }


def _runs_a_command(line: str) -> bool:
    """Return whether a condition of a line is a command; the one that paramiko runs reads the terminal."""
    keyword, words = split_line(line)
    return keyword == "match" and any(word.lower().lstrip("!") == "exec" for word in words)


def _first(options: Options, key: str) -> str:
    return next(iter(options.get(key, ())), "")


def _number(alias: str, options: Options, key: str, default: int) -> int:
    text = _first(options, key)
    if text in ("", "none"):
        return default
    if not re.fullmatch("[0-9]{1,9}", text):
        raise InputError(f"host {alias}: invalid {key}: '{clean(text)[:40]}' (expected a whole number)")
    return int(text)


def _files(
    options: Options, key: str, default: Sequence[str], home: Path, *, more: str = ""
) -> tuple[str, ...]:
    named = [*options.get(key, ()), *options.get(more, ())] or list(default)
    paths = [str(home / name[2:]) if name.startswith("~/") else name for name in named if name != "none"]
    return tuple(dict.fromkeys(path.strip('"') for path in paths))
