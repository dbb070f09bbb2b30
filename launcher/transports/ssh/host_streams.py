"""Streams over the one connection to a host."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from launcher.errors import TransportError
from launcher.text import clean

if TYPE_CHECKING:
    import paramiko

    from launcher.transports.ssh.connection import SshConnection

_OPEN_TIMEOUT_S = 15.0


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


def conversation(connection: SshConnection, argv: Sequence[str]) -> paramiko.Channel:
    """Return the standard input and output of a command on the host.

    Raises:
        TransportError: it cannot be started.
    """

    def begin(transport: paramiko.Transport) -> paramiko.Channel:
        channel = transport.open_session(timeout=_OPEN_TIMEOUT_S)
        channel.settimeout(_OPEN_TIMEOUT_S)
        channel.exec_command(shlex.join(argv))
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
