"""Commands on the far side: what is sent to `sh`, and what comes back."""

from __future__ import annotations

import re
import secrets
import select
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.errors import ConnectionLostError, TransportError, UnclearError
from launcher.text import clean
from launcher.transports.bounded_command import MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES
from launcher.transports.ssh.connection import SshConnection

if TYPE_CHECKING:
    import paramiko

_CHUNK_BYTES = 1 << 18
_STARTED = "started"
_SHELL = "exec /bin/sh"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PROCESS_IDENTITY = (
    "identity() { s=$(cat /proc/$1/stat 2>/dev/null) || return 1; s=${s##*) }; set -- $1 $s;"
    ' [ "$2" != Z ] && shift && echo "${20}"; }\n'
)
"""A function of `sh` that prints a process's start time in clock ticks, and fails if it is gone.

Fields of /proc/PID/stat behind the command's name, which may hold anything (proc(5)): state 1, start 20.
"""
_KEPT = "PATH|PWD|OLDPWD|_|SHELLOPTS|BASHOPTS|UID|EUID|PPID"
"""Variables that stay: what finds the commands, and what a shell keeps for itself."""


@dataclass(frozen=True, slots=True)
class RawResult:
    """A command that ended on the far side."""

    code: int
    stdout: bytes
    stderr: bytes


def script_of(body: str, env: Mapping[str, str] | None, cwd: str | None, marker: str) -> str:
    """Return the script that runs some lines of `sh`.

    It goes to the standard input of `sh`, so neither variables nor arguments stand in the command line of the
    shell. `env` replaces the whole environment. The first line of output is the marker, with the process id
    that the command will have.
    """
    lines = ["{"]  # a group is carried out only when all of it has arrived
    if env is not None:
        lines.append(
            "unset -v $(env | sed -n 's/^\\([A-Za-z_][A-Za-z_0-9]*\\)=.*/\\1/p'"
            f" | grep -v -x -E '{_KEPT}') 2>/dev/null"
        )
        lines += [
            f"export {name}={shlex.quote(value)}" for name, value in env.items() if _NAME.fullmatch(name)
        ]
    if cwd is not None:
        lines.append(f"cd -- {shlex.quote(cwd)} || exit 126")
    lines.append(f"printf '%s %s\\n' {marker} $$")
    lines += [body, "}"]
    return "\n".join(lines) + "\n"


def run_remote(
    connection: SshConnection,
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float = 30,
) -> RawResult:
    """Run a command to its end.

    A connection that breaks before the script is sent costs nothing: it is made again, once. After that the
    command may have started, and is not sent a second time.

    Raises:
        TransportError: it does not end in time (it is then terminated), or cannot be run.
        UnclearError: the connection broke while it ran.
        ConnectionLostError: the host cannot be reached; nothing was sent.
    """
    if any("\0" in text for text in argv):
        raise TransportError(f"'{clean(argv[0])}' cannot be run: an argument holds a null byte")
    body = f"exec {shlex.join(argv)} </dev/null"
    done = run_script(connection, body, argv[0], env=env, cwd=cwd, timeout_s=timeout_s)
    if done.stdout.count(b"\n") + done.stderr.count(b"\n") > MAX_OUTPUT_LINES:
        raise TransportError(
            f"'{clean(argv[0])}' printed more than {MAX_OUTPUT_LINES:,} lines on {connection.host.alias}"
        )
    return done


def run_script(
    connection: SshConnection,
    body: str,
    name: str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float = 30,
    limit: int = MAX_OUTPUT_BYTES,
) -> RawResult:
    """Run lines of `sh` to their end; `name` is what errors call them, `limit` the most bytes they may print.

    Raises:
        TransportError: they do not end in time (they are then terminated), or cannot be run.
        UnclearError: the connection broke while they ran.
        ConnectionLostError: the host cannot be reached; nothing was sent.
    """
    deadline = time.monotonic() + timeout_s
    marker = f"{_STARTED}-{secrets.token_hex(8)}"
    script = script_of(body, env, cwd, marker).encode("utf-8", errors="surrogateescape")
    try:
        return _sent(connection, name, script, marker, deadline, limit)
    except _NotSentError:
        return _sent(connection, name, script, marker, deadline, limit)


class _NotSentError(ConnectionLostError):
    """The connection broke before the whole script was sent: the shell carries out none of it."""


def _sent(
    connection: SshConnection, name: str, script: bytes, marker: str, deadline: float, limit: int
) -> RawResult:
    """Send a script to a shell, and follow it to its end."""
    timeout_s = max(deadline - time.monotonic(), 0.1)
    channel = connection.take_spare() or _opened(connection, _SHELL, timeout_s)
    connection.prepare_spare(lambda: _opened(connection, _SHELL, timeout_s))
    try:
        return _followed(connection, channel, name, script, marker, deadline, limit)
    finally:
        channel.close()


def _opened(connection: SshConnection, command: str, timeout_s: float) -> paramiko.Channel:
    """Return a channel on which a command runs that waits for its input."""
    import paramiko

    for attempt in (1, 2):
        transport = connection.transport()
        try:
            channel = transport.open_session(timeout=timeout_s)
            channel.settimeout(timeout_s)
            channel.exec_command(command)
        except (paramiko.SSHException, EOFError, OSError) as error:
            if isinstance(error, paramiko.ChannelException):
                raise TransportError(
                    f"{connection.host.alias}: the server refuses another session ({clean(error.text)})"
                ) from error
            lost = connection.broken("the connection broke", transport)
            if attempt == 2:
                raise lost from error
        else:
            connection.received()
            return channel
    raise AssertionError("unreachable")


def _followed(
    connection: SshConnection,
    channel: paramiko.Channel,
    name: str,
    script: bytes,
    marker: str,
    deadline: float,
    limit: int,
) -> RawResult:
    import paramiko

    out, err = bytearray(), bytearray()
    try:
        _send(connection, channel, script, deadline)
        channel.shutdown_write()
        while not _ended(channel):
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                _end(connection, bytes(out), marker)
                raise TransportError(f"'{clean(name)}' did not end in time on {connection.host.alias}")
            select.select([channel], [], [], min(remaining_s, 1.0))
            if _drain(channel, out, err, limit):
                connection.received()
            if len(out) + len(err) > limit:
                _end(connection, bytes(out[:_CHUNK_BYTES]), marker)
                raise TransportError(
                    f"'{clean(name)}' printed more than {limit >> 20} MiB on {connection.host.alias}"
                )
        channel.status_event.wait(max(deadline - time.monotonic(), 0.1))
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise _unclear(connection, channel, name) from error
    _drain(channel, out, err, limit)
    code = channel.exit_status if channel.exit_status_ready() else -1
    first, newline, rest = bytes(out).partition(b"\n")
    if not newline or not first.startswith(marker.encode()):
        reason = clean(bytes(err or out).decode("utf-8", errors="replace").strip().rpartition("\n")[2])
        if code == -1:
            raise _unclear(connection, channel, name)
        raise TransportError(
            f"'{clean(name)}' cannot be run on {connection.host.alias}: {reason or f'exit {code}'}"
        )
    if code == -1:
        raise _unclear(connection, channel, name)
    return RawResult(code, rest, bytes(err))


def _send(connection: SshConnection, channel: paramiko.Channel, script: bytes, deadline: float) -> None:
    import paramiko

    channel.settimeout(max(deadline - time.monotonic(), 0.1))
    try:
        channel.sendall(script)
    except TimeoutError:
        raise
    except (OSError, EOFError, paramiko.SSHException) as error:
        connection.broken("the connection broke", channel.get_transport())
        raise _NotSentError(f"{connection.host.alias}: the connection broke") from error


def _ended(channel: paramiko.Channel) -> bool:
    """Return whether nothing more will come."""
    over = channel.eof_received or channel.closed
    return bool(over) and not channel.recv_ready() and not channel.recv_stderr_ready()


def _drain(channel: paramiko.Channel, out: bytearray, err: bytearray, limit: int) -> bool:
    """Take what has come, up to a little more than a limit; return whether there was anything."""
    before = len(out) + len(err)
    while channel.recv_ready() and len(out) <= limit:
        out += channel.recv(_CHUNK_BYTES)
    while channel.recv_stderr_ready() and len(err) <= limit:
        err += channel.recv_stderr(_CHUNK_BYTES)
    return len(out) + len(err) > before


def _unclear(connection: SshConnection, channel: paramiko.Channel, name: str) -> UnclearError:
    connection.broken("the connection broke", channel.get_transport())
    return UnclearError(
        f"{connection.host.alias}: the connection broke while '{clean(name)}' ran;"
        " it may have been carried out"
    )


def _end(connection: SshConnection, out: bytes, marker: str) -> None:
    """Terminate a command that took too long, by the process id that came with the marker."""
    first, newline, _ = out.partition(b"\n")
    pid = first.removeprefix(marker.encode()).strip()
    if not newline or not pid.isdigit():
        connection.broken("no answer in time")
        return
    try:
        channel = _opened(connection, f"kill -TERM {int(pid)}", timeout_s=5.0)
    except TransportError:
        return  # the connection is gone, and with it whoever waits for the command
    channel.close()
