"""Parts that all transports share: what commands and files answer, as the program has it."""

from __future__ import annotations

import errno
import time
from collections import deque
from collections.abc import Iterable

from launcher.errors import TransportError
from launcher.text import clean, clean_lines

WHOLE_FILE_BYTES = 64 * 1024 * 1024
"""Limit of a file that is read at once: logs are read in parts, everything else has a few MiB."""


class CommandTimes:
    """Times at which the last commands began."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=1000)

    def begin(self) -> None:
        """Count a command that begins now."""
        self._times.append(time.monotonic())

    def within(self, seconds: float) -> int:
        """Return the number of commands begun within the last seconds."""
        begin = time.monotonic() - seconds
        return sum(moment >= begin for moment in list(self._times))


def output_text(data: bytes) -> str:
    """Return a command's output, decoded and cleaned of control sequences."""
    return clean_lines(data.decode("utf-8", errors="replace"))


def access_error(error: OSError, failure: str, path: str) -> TransportError:
    """Return a refusal of the file system as the error that says what failed, and where."""
    return TransportError(f"{failure} {clean(path)}: {error.strerror or error}")


def too_large_error(path: str) -> OSError:
    """Return the refusal to read a file at once."""
    return OSError(errno.EFBIG, f"larger than {WHOLE_FILE_BYTES >> 20} MiB", path)


def is_private_group(group: str, user: str, members: Iterable[str]) -> bool:
    """Return whether a group is that of its user alone."""
    return group == user and set(members) <= {user}
