"""Streams of bytes to a machine's own ports and to commands there, for connections that are passed on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class Stream(Protocol):
    """A socket or something like it."""

    def recv(self, size: int, /) -> bytes:
        """Return what has come, at most `size` bytes; nothing at the end."""
        ...

    def sendall(self, data: bytes, /) -> object:
        """Send all of it."""
        ...

    def settimeout(self, seconds: float | None, /) -> object:
        """Limit how long each call waits."""
        ...

    def close(self) -> object:
        """Close both directions."""
        ...


@runtime_checkable
class StreamOpener(Protocol):
    """A transport that opens streams."""

    def connect(self, port: int) -> Stream:
        """Return a connection to a port of the machine's own loopback.

        Raises:
            TransportError: nothing listens there, or the machine is not reached.
        """
        ...

    def converse(self, argv: Sequence[str]) -> Stream:
        """Return the standard input and output of a command on the machine; it ends when it is closed.

        Raises:
            TransportError: it cannot be started.
        """
        ...
