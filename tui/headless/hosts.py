"""Other machines on the command line: the connection, and the questions of its login at the terminal."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError
from recipes.remote_path import RemotePath
from tui.headless.output import say

if TYPE_CHECKING:
    from launcher.transports.ssh.authentication import LoginPrompt
    from launcher.transports.ssh.transport import SshTransport

_ON_HOST = re.compile(r"(?P<host>(?:[\w.+-]+@)?\w[\w.-]*):(?P<path>[^:].*)", re.ASCII)
"""`HOST:PATH`, as scp has it."""


@cache
def transport_to(name: str) -> SshTransport:
    """Return the transport to a host; it connects at its first use, once for all that a command does there.

    Raises:
        InputError: the name or its configuration is invalid.
    """
    from launcher.transports.ssh.ssh_config import resolve_host
    from launcher.transports.ssh.transport import SshTransport

    return SshTransport(resolve_host(name, os.environ), answer)


def path_of(file: str, host: str | None = None) -> Path:
    """Return the path of a file here, or on a host: the given one, else that of `HOST:PATH`.

    A file here that has such a name is meant before a host.

    Raises:
        InputError: the host's name or its configuration is invalid.
    """
    if host is not None:
        return transport_to(host).path(file)
    on_host = split_host(file)
    return Path(file) if on_host is None else transport_to(on_host[0]).path(on_host[1])


def split_host(file: str) -> tuple[str, str] | None:
    """Return host and path of `HOST:PATH`; None for a file here, also one that has such a name."""
    match = _ON_HOST.fullmatch(file)
    if match is None or os.path.lexists(file):
        return None
    return match["host"], match["path"]


def host_of(path: Path) -> str | None:
    """Return the host that a path is on, as the user named it; None for this machine."""
    return path.remote.machine if isinstance(path, RemotePath) else None


def answer(prompt: LoginPrompt) -> str:
    """Ask a question of the login at the terminal; what is typed is shown only where the server allows it.

    Raises:
        LoginError: there is no terminal, or the user gave up.
    """
    from launcher.transports.ssh.authentication import LoginError, no_answer

    if not sys.stdin.isatty():
        return no_answer(prompt)
    if prompt.instructions:
        say(prompt.instructions)
    try:
        if prompt.echo:
            say(f"{prompt.host}: {prompt.text}")
            return sys.stdin.readline().rstrip("\n")
        from getpass import getpass

        return getpass(f"{prompt.host}: {prompt.text}", stream=sys.stderr)
    except (EOFError, KeyboardInterrupt):
        raise LoginError(f"{prompt.host}: no answer; not connected") from None


def refuse_host(host: str | None, what: str) -> None:
    """Refuse --host with something that works on this machine only.

    Raises:
        InputError: a host is named.
    """
    if host is not None:
        raise InputError(
            f"{what}: not over SSH", fix=f"Run it there: `ssh {host}`, then `distill-tui` without --host."
        )
