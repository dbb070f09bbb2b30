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

from launcher.errors import ConnectionLostError, LateError, TransportError, UnclearError
from launcher.text import clean
from launcher.transports.bounded_command import MAX_OUTPUT_BYTES, MAX_OUTPUT_LINES
from launcher.transports.ssh.channels import open_channel
from launcher.transports.ssh.connection import SshConnection

if TYPE_CHECKING:
    import paramiko

_CHUNK_BYTES = 1 << 18
_STARTED = "started"
_SHELL = "exec /bin/sh"
_SPARE_TIMEOUT_S = 20.0
_PROBE_TIMEOUT_S = 5.0
_SLOWEST_BYTES_S = 16 << 10
"""What a line passes that is slow and not silent."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PROCESS_IDENTITY = (
    "identity() { s=$(cat /proc/$1/stat 2>/dev/null) || return 1; s=${s##*) }; set -- $1 $s;"
    ' [ "$2" != Z ] && shift && echo "${20}"; }\n'
)
"""A function of `sh` that prints a process's start time in clock ticks, and fails if it is gone.

Fields of /proc/PID/stat behind the command's name, which may hold anything (proc(5)): state 1, start 20.
"""
PLAIN_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"}
"""Environment of commands whose messages are read: those of `shell_files` in the words of the C locale."""
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


@dataclass(slots=True)
class _Order:
    """A script on its way: what it is called, and until when its answer is waited for."""

    name: str
    script: bytes
    marker: str
    timeout_s: float
    limit: int
    while_it_comes: bool
    deadline: float = 0.0

    def begin(self) -> None:
        """Let the time begin, which neither logging in counts to nor sending over a slow line."""
        self.deadline = time.monotonic() + self.timeout_s + len(self.script) / _SLOWEST_BYTES_S

    @property
    def remaining_s(self) -> float:
        return max(self.deadline - time.monotonic(), 0.1)

    @property
    def is_late(self) -> bool:
        return time.monotonic() >= self.deadline

    def heard(self) -> None:
        """Note that something came."""
        if self.while_it_comes:
            self.deadline = max(self.deadline, time.monotonic() + self.timeout_s)

    def answer(self, out: bytes | bytearray) -> tuple[str, int] | None:
        """Return the process id that comes with the marker, and where the answer begins.

        A login shell may print before it, even without an end of line.
        """
        begin = out.find(self.marker.encode())
        end = out.find(b"\n", begin)
        if begin < 0 or end < 0:
            return None
        return bytes(out[begin + len(self.marker) : end]).decode("ascii", "replace").strip(), end + 1


def run_script(
    connection: SshConnection,
    body: str,
    name: str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float = 30,
    limit: int = MAX_OUTPUT_BYTES,
    while_it_comes: bool = False,
) -> RawResult:
    """Run lines of `sh` to their end; `name` is what errors call them, `limit` the most bytes they may print.

    `while_it_comes`: the time begins anew with each piece of the answer; a slow line is no silent one.

    Raises:
        TransportError: they do not end in time (they are then terminated), or cannot be run.
        UnclearError: the connection broke while they ran.
        ConnectionLostError: the host cannot be reached; nothing was sent.
    """
    marker = f"{_STARTED}-{secrets.token_hex(8)}"
    script = script_of(body, env, cwd, marker).encode("utf-8", errors="surrogateescape")
    order = _Order(name, script, marker, timeout_s, limit, while_it_comes)
    try:
        return _sent(connection, order)
    except _NotSentError:
        return _sent(connection, order)


class _NotSentError(ConnectionLostError):
    """The connection broke before the whole script was sent: the shell carries out none of it."""


def _sent(connection: SshConnection, order: _Order) -> RawResult:
    """Send a script to a shell, and follow it to its end."""
    connection.transport()
    order.begin()
    channel = connection.take_spare(order.remaining_s) or _opened(connection, _SHELL, order.remaining_s)
    connection.prepare_spare(lambda: _opened(connection, _SHELL, _SPARE_TIMEOUT_S))
    try:
        return _followed(connection, channel, order)
    finally:
        channel.close()


def _opened(connection: SshConnection, command: str, timeout_s: float) -> paramiko.Channel:
    """Return a channel on which a command runs that waits for its input."""
    import paramiko

    for attempt in (1, 2):
        transport = connection.transport()
        try:
            channel = open_channel(transport, "exec", command, timeout_s)
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


def _followed(connection: SshConnection, channel: paramiko.Channel, order: _Order) -> RawResult:
    import paramiko

    out, err = bytearray(), bytearray()
    try:
        _send(connection, channel, order)
        channel.shutdown_write()
        while not _ended(channel):
            if order.is_late:
                raise _late(connection, channel, order, out)
            select.select([channel], [], [], min(order.remaining_s, 1.0))
            if _drain(channel, out, err, order.limit):
                connection.received()
                order.heard()
            if len(out) + len(err) > order.limit:
                if (begun := order.answer(out[:_CHUNK_BYTES])) is not None:
                    _end(connection, begun[0])
                raise TransportError(
                    f"'{clean(order.name)}' printed more than {order.limit >> 20} MiB"
                    f" on {connection.host.alias}"
                )
        channel.status_event.wait(order.remaining_s)
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise _unclear(connection, channel, order.name) from error
    _drain(channel, out, err, order.limit)
    return _result(connection, channel, order, out, err)


def _result(
    connection: SshConnection, channel: paramiko.Channel, order: _Order, out: bytearray, err: bytearray
) -> RawResult:
    """Return what a script that ended has answered."""
    code = channel.exit_status if channel.exit_status_ready() else -1
    answer = order.answer(out)
    if code == -1 and not _answers(channel):
        raise _unclear(connection, channel, order.name)
    if answer is None:
        reason = clean(bytes(err or out).decode("utf-8", errors="replace").strip().rpartition("\n")[2])
        refusal = f"exit {code}" if code != -1 else "the server does not run a shell"
        raise TransportError(
            f"'{clean(order.name)}' cannot be run on {connection.host.alias}: {reason or refusal}"
        )
    if code == -1:
        raise UnclearError(
            f"'{clean(order.name)}' was ended by a signal on {connection.host.alias};"
            " it may have been carried out"
        )
    return RawResult(code, bytes(out[answer[1] :]), bytes(err))


def _answers(channel: paramiko.Channel) -> bool:
    """Return whether the connection of a channel that has closed still works; asked for, never guessed."""
    import paramiko

    try:
        channel.get_transport().open_session(timeout=_PROBE_TIMEOUT_S).close()
    except paramiko.ChannelException:  # no further session, says the server
        return True
    except (paramiko.SSHException, EOFError, OSError):
        return False
    return True


def _send(connection: SshConnection, channel: paramiko.Channel, order: _Order) -> None:
    import paramiko

    channel.settimeout(order.remaining_s)
    try:
        channel.sendall(order.script)
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


def _late(
    connection: SshConnection, channel: paramiko.Channel, order: _Order, out: bytearray
) -> TransportError:
    """Terminate a command that took too long; return the error to raise."""
    begun = order.answer(out)
    if begun is not None:
        _end(connection, begun[0])
        return LateError(f"'{clean(order.name)}' did not end in time on {connection.host.alias}")
    # A machine that is slow to start a shell is no broken line: a new login might ask for a code.
    if not _answers(channel):
        connection.broken("no answer in time", channel.get_transport())
    return UnclearError(
        f"{connection.host.alias}: no answer for {order.timeout_s:.0f} s to '{clean(order.name)}';"
        " it may have been carried out"
    )


def _end(connection: SshConnection, pid: str) -> None:
    """Terminate a command by the process id that came with the marker."""
    if not pid.isdigit():
        return
    try:
        channel = _opened(connection, f"kill -TERM {int(pid)}", timeout_s=5.0)
    except TransportError:
        return  # the connection is gone, and with it whoever waits for the command
    channel.close()
