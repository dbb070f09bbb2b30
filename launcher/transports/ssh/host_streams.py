"""Streams over the one connection to a host."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from launcher.errors import TransportError
from launcher.text import clean
from launcher.transports.ssh.channels import open_channel

if TYPE_CHECKING:
    import paramiko

    from launcher.transports.ssh.connection import SshConnection

_OPEN_TIMEOUT_S = 15.0
_GREETING_BYTES = 1 << 20
"""Most that a login shell may print."""


def connected(connection: SshConnection, port: int) -> paramiko.Channel:
    """Return a connection to a port of the host's loopback.

    Raises:
        TransportError: nothing listens there, the server forbids it, or the host is not reached.
    """
    return _channel(
        connection,
        lambda transport: transport.open_channel(
            "direct-tcpip", ("127.0.0.1", port), ("127.0.0.1", 0), timeout=_OPEN_TIMEOUT_S
        ),
        f"no connection to port {port} there",
    )


def terminal(connection: SshConnection, command: str, columns: int, rows: int) -> paramiko.Channel:
    """Return a terminal of the host on which a command of bash runs, in the environment of the login shell.

    It reads nothing from there, and ends with the terminal.

    Raises:
        TransportError: it cannot be started.
    """
    as_bash = f"exec /bin/bash -c {shlex.quote(command)} </dev/null"

    def begin(transport: paramiko.Transport) -> paramiko.Channel:
        channel = transport.open_session(timeout=_OPEN_TIMEOUT_S)
        channel.settimeout(_OPEN_TIMEOUT_S)
        channel.get_pty(width=columns, height=rows)
        channel.exec_command(f'exec "$SHELL" -lc {shlex.quote(as_bash)}')
        return channel

    return _channel(connection, begin, "no terminal there")


def conversation(connection: SshConnection, argv: Sequence[str], path: str) -> paramiko.Channel:
    """Return the standard input and output of a command on the host, which is looked for in a PATH.

    Raises:
        TransportError: it cannot be started.
    """
    mark = f"begin-{secrets.token_hex(8)}\n".encode()

    def begin(transport: paramiko.Transport) -> paramiko.Channel:
        channel = open_channel(transport, "exec", "exec /bin/sh", _OPEN_TIMEOUT_S)
        script = f"export PATH={shlex.quote(path)}; echo {mark.decode().strip()}; exec {shlex.join(argv)}\n"
        channel.sendall(script.encode("utf-8", errors="surrogateescape"))
        # What a login shell prints does not belong to the stream, nor what `sh` would read ahead.
        before = bytearray()
        while not before.endswith(mark):
            byte = channel.recv(1)
            if not byte or len(before) > _GREETING_BYTES:
                channel.close()
                raise TransportError(f"{connection.host.alias}: '{clean(argv[0])}' cannot be run")
            before += byte
        return channel

    return _channel(connection, begin, f"'{clean(argv[0])}' cannot be run")


def _channel(
    connection: SshConnection, begin: Callable[[paramiko.Transport], paramiko.Channel], failure: str
) -> paramiko.Channel:
    import paramiko

    transport = connection.transport()
    try:
        channel = begin(transport)
    except paramiko.ChannelException as error:
        raise TransportError(f"{connection.host.alias}: {failure} ({clean(error.text)})") from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise connection.broken("the connection broke", transport) from error
    channel.settimeout(None)
    connection.received()
    return channel
