"""Streams of bytes on this machine."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Sequence

from launcher.errors import TransportError
from launcher.text import clean

_CONNECT_TIMEOUT_S = 5.0


def connected(port: int) -> socket.socket:
    """Return a connection to a port of the loopback.

    Raises:
        TransportError: nothing listens there.
    """
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_TIMEOUT_S)
    except OSError as error:
        raise TransportError(
            f"no connection to port {port} of this machine: {error.strerror or error}"
        ) from error
    sock.settimeout(None)
    return sock


def conversation(argv: Sequence[str]) -> socket.socket:
    """Return a socket that is the standard input and output of a command; the command ends with it.

    Raises:
        TransportError: it cannot be started.
    """
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(
            argv,
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise TransportError(f"'{clean(argv[0])}' cannot be run: {error.strerror}") from error
    finally:
        theirs.close()
    # Reads the end of its input once the socket is closed; here only its exit status is collected.
    threading.Thread(target=process.wait, name="stream", daemon=True).start()
    return ours
