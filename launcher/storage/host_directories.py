"""A directory of a host, and the file system that holds it, by one command there."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.errors import TransportError
from launcher.transports.base import Transport

_TIMEOUT_S = 20.0
_LOOK = """
real=$(realpath -m -- "$1") home=$(realpath -m -- "$2") existing=$real
while [ ! -e "$existing" ]; do existing=$(dirname -- "$existing"); done
size() { df "$@" -- "$existing" 2>/dev/null | tail -n 1 | tr -d ' '; }
printf '%s\\n' "$real" "$existing"
size -B1 --output=avail
size --output=iavail
[ -d "$existing" ] && echo yes || echo no
[ -w "$existing" ] && [ -x "$existing" ] && echo yes || echo no
case $real/ in
"${home%/}"/*) [ "$(stat -c %d -- "$existing")" = "$(stat -c %d -- "$home")" ] && echo yes || echo no ;;
*) echo no ;;
esac
"""
_ANSWERS = 7


@dataclass(frozen=True, slots=True)
class HostDirectory:
    """A directory of a host, which need not exist yet."""

    real: str
    """Without links."""
    existing: str
    """Itself, or its nearest parent that exists."""
    free_bytes: int | None
    """Free for the user on the file system; None: unknown."""
    free_files: int | None
    """Files that can still be made there; None where the file system counts none."""
    is_directory: bool
    """Whether what exists is a directory."""
    is_writable: bool
    in_home: bool
    """Whether it is in the home directory, on the same file system."""


def host_directory(transport: Transport, path: str, home: str) -> HostDirectory | None:
    """Return what a host says of a directory; None where it does not tell. `home` may be empty."""
    try:
        done = transport.run(["sh", "-c", _LOOK, "sh", path, home or "/"], timeout_s=_TIMEOUT_S)
    except TransportError:
        return None
    lines = done.stdout.split("\n")
    if done.code or len(lines) != _ANSWERS + 1:  # a name with a line break
        return None
    real, existing, free, files, directory, writable, in_home = lines[:_ANSWERS]
    return HostDirectory(
        real,
        existing,
        int(free) if free.isdecimal() else None,
        int(files) if files.isdecimal() else None,
        directory == "yes",
        writable == "yes",
        bool(home) and in_home == "yes",
    )
