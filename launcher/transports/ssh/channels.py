"""Channels of a connection, opened in one round trip: what runs on them is asked for without a wait.

A server that refuses closes the channel, which whoever reads from it finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import paramiko


def open_channel(
    transport: paramiko.Transport,
    kind: Literal["exec", "subsystem"],
    value: str,
    timeout_s: float,
    *,
    window_bytes: int | None = None,
) -> paramiko.Channel:
    """Return a channel on which a command or a subsystem begins.

    paramiko's own calls wait for the server's consent, without a limit (paramiko/channel.py:_wait_for_event).

    Raises:
        paramiko.ChannelException: the server allows no further session.
        paramiko.SSHException: no answer in time, or the connection broke.
        EOFError, OSError: the connection broke.
    """
    import paramiko
    from paramiko.common import cMSG_CHANNEL_REQUEST

    channel = transport.open_session(window_size=window_bytes, timeout=timeout_s)
    channel.settimeout(timeout_s)
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string(kind)
    message.add_boolean(True)
    message.add_string(value)
    transport._send_user_message(message)  # type: ignore[attr-defined]
    return channel
