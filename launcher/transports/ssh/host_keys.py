"""Keys of hosts: only those in known_hosts are accepted, and none is ever added."""

from __future__ import annotations

import base64
import hashlib
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import TransportError
from launcher.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    import paramiko

    from launcher.transports.ssh.ssh_config import SshHost


KnownKeys = dict[str, list["paramiko.PKey"]]
"""Keys of a host by their type."""


class HostKeyError(TransportError):
    """A host's key is not the one of known_hosts."""


def known_keys(host: SshHost) -> KnownKeys:
    """Return the host's keys by type, hashed names too; lines that cannot be read are skipped."""
    import paramiko
    from paramiko.hostkeys import InvalidHostKey

    damaged = (paramiko.SSHException, InvalidHostKey, ValueError, IndexError, TypeError, struct.error)
    keys: KnownKeys = {}
    for name in host.known_hosts_files:
        for line in _lines(Path(name)):
            try:
                entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
            except damaged:
                continue
            if entry is None or not _matches(entry.hostnames, host.host_key_name):
                continue
            keys.setdefault(entry.key.get_name(), []).append(entry.key)
    return keys


def check_host_key(host: SshHost, key: paramiko.PKey, known: KnownKeys) -> None:
    """Accept the key that a host shows, or say why not.

    Raises:
        HostKeyError: it is unknown or another one than in known_hosts.
    """
    same_type = known.get(key.get_name(), [])
    if key in same_type:
        return
    shown = f"{key.get_name()} {fingerprint(key)}"
    files = ", ".join(name for name in host.known_hosts_files if Path(name).is_file())
    name = clean(host.hostname)
    if known:
        expected = "; ".join(fingerprint(item) for items in known.values() for item in items)
        raise HostKeyError(
            f"{host.alias}: the host key of {name} has changed: it is {shown} (known_hosts has {expected})",
            where=files,
            fix=(
                "Somebody may be listening in. Ask the site whether its key was replaced and compare the"
                f" fingerprint; then `ssh-keygen -R '{host.host_key_name}'` and `ssh {host.alias}` once."
            ),
        )
    raise HostKeyError(
        f"{host.alias}: the host key of {name} is unknown: {shown}",
        where=files or "no known_hosts file",
        fix=(
            "Compare the fingerprint with the one that the site publishes, then run"
            f" `ssh {host.alias}` once and accept it there."
        ),
    )


def fingerprint(key: paramiko.PKey) -> str:
    """Return a key's fingerprint as `ssh-keygen -l` prints it."""
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _lines(path: Path) -> list[str]:
    """Return the lines that name keys of hosts; authorities and revoked keys are not used."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip() and line[0] not in "#@"]


def _matches(names: Sequence[str], name: str) -> bool:
    """Return whether a line's names hold one; patterns with `*` and `?`, and `!` for exceptions."""
    import fnmatch
    import hmac

    import paramiko

    matched = False
    for pattern in names:
        if pattern.startswith("|1|"):
            hashed = paramiko.HostKeys.hash_host(name, pattern)
            matched = matched or hmac.compare_digest(hashed, pattern)
        elif pattern.startswith("!"):
            if fnmatch.fnmatchcase(name.lower(), pattern[1:].lower()):
                return False
        else:
            literal = pattern.replace("[", "[[]") if pattern.startswith("[") else pattern
            matched = matched or fnmatch.fnmatchcase(name.lower(), literal.lower())
    return matched
