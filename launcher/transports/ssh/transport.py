"""The transport of a host over SSH."""

from __future__ import annotations

import posixpath
import re
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from launcher.errors import TransportError, UnclearError
from launcher.text import clean
from launcher.transports.access_lists import far_writers_script
from launcher.transports.base import (
    Completed,
    FileStat,
    NewFile,
    Ownership,
    ProcessId,
    ReadRange,
)
from launcher.transports.replies import CommandTimes, access_error, is_private_group, output_text
from launcher.transports.ssh import host_streams
from launcher.transports.ssh.authentication import Prompter, no_answer
from launcher.transports.ssh.connection import ConnectionState, SshConnection
from launcher.transports.ssh.file_access import FileAccess
from launcher.transports.ssh.host_access import HostAccess
from launcher.transports.ssh.host_files import HostFiles
from launcher.transports.ssh.locked_change import LockedChange
from launcher.transports.ssh.look_ahead import LookAhead
from launcher.transports.ssh.remote_shell import PROCESS_IDENTITY, run_remote, run_script
from launcher.transports.ssh.shell_files import ShellFiles
from launcher.transports.ssh.silent_paths import no_answer as no_file_answer
from launcher.transports.ssh.ssh_config import SshHost
from recipes.cache_root import cache_root
from recipes.remote_path import RemotePath, remote_path_type

if TYPE_CHECKING:
    import paramiko

Result = TypeVar("Result")
FILE_DEADLINE_S = 20.0
_UNCLEAR_TRIES = 4
"""Times that the same files are sent where the connection breaks."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[^\0\n]*")


class SshTransport:
    """Commands and files of a host over one SSH connection."""

    def __init__(
        self,
        host: SshHost,
        prompter: Prompter = no_answer,
        *,
        deadline_s: float = FILE_DEADLINE_S,
        connection: SshConnection | None = None,
    ) -> None:
        self.connection = connection or SshConnection(host, prompter)
        self._deadline_s = deadline_s
        self._files = FileAccess(self.connection, deadline_s)
        self._ahead = LookAhead(self.connection)
        self._commands = CommandTimes()
        self._node = ""
        self._environment: Mapping[str, str] | None = None
        self._host_files: HostFiles | None = None
        self._path_type: type[RemotePath] | None = None

    def beside(self) -> SshTransport:
        """Return another transport over the same connection, with looks and listings of its own.

        For another thread or screen: what one has listed is not what the other counts on.
        """
        other = SshTransport(self.connection.host, deadline_s=self._deadline_s, connection=self.connection)
        other._files, other._commands = self._files, self._commands
        other._ahead = LookAhead(self.connection, self._ahead.contents)
        other._node, other._environment = self._node, self._environment
        return other

    @property
    def host(self) -> str:
        """Name of the machine, as it calls itself; the configured name before the first connection."""
        if not self._node:
            self._node = self.run(["uname", "-n"], timeout_s=self._deadline_s).stdout.strip()
        return self._node or self.connection.host.alias

    def state(self) -> ConnectionState:
        """Return how the connection is, without asking the host."""
        return self.connection.state()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        """Run a command to its end. `env` replaces the whole environment but PATH, where it has none.

        Raises:
            TransportError: it cannot be run, does not end in time, or the connection broke.
        """
        self._commands.begin()
        done = run_remote(self.connection, argv, env=env, cwd=cwd, timeout_s=timeout_s)
        return Completed(done.code, output_text(done.stdout), output_text(done.stderr))

    def connect(self, port: int) -> paramiko.Channel:
        """Return a connection to a port of the host's loopback.

        Raises:
            TransportError: nothing listens there, the server forbids it, or the host is not reached.
        """
        return host_streams.connected(self.connection, port)

    def converse(self, argv: Sequence[str]) -> paramiko.Channel:
        """Return the standard input and output of a command on the host; it ends when that is closed.

        Raises:
            TransportError: it cannot be started.
        """
        path = self.environment().get("PATH", "/usr/local/bin:/usr/bin:/bin")
        return host_streams.conversation(self.connection, argv, path)

    def terminal(self, command: str, columns: int, rows: int) -> paramiko.Channel:
        """Return a terminal of the host on which a command of bash runs, as in the user's login shell.

        Raises:
            TransportError: it cannot be started.
        """
        return host_streams.terminal(self.connection, command, columns, rows)

    def commands_within(self, seconds: float) -> int:
        """Return the number of commands begun within the last seconds."""
        return self._commands.within(seconds)

    def environment(self) -> Mapping[str, str]:
        """Return the variables that the user's login shell sets on the host; asked for once.

        Raises:
            TransportError: they cannot be read.
        """
        if self._environment is None:
            self._environment = self._login_environment()
        return self._environment

    def _login_environment(self) -> dict[str, str]:
        mark = secrets.token_hex(8)
        # csh and tcsh take -l only alone; they read the user's files for -c, too.
        body = (
            f'uname -n; set -- -c "echo {mark}; exec env -0"\n'
            'case "${SHELL:=/bin/sh}" in *csh) ;; *) set -- -l "$@" ;; esac\n'
            'exec "$SHELL" "$@" </dev/null'
        )
        done = run_script(self.connection, body, "env", timeout_s=self._deadline_s)
        # What a profile prints comes before the mark.
        printed, _, text = done.stdout.decode("utf-8", errors="surrogateescape").partition(f"{mark}\n")
        self._node = self._node or clean(printed.partition("\n")[0])
        pairs = (item.partition("=") for item in text.split("\0"))
        variables = {name: value for name, equals, value in pairs if equals}
        if done.code or not variables.get("HOME"):
            raise TransportError(
                f"{self.host}: the login shell does not tell its variables"
                f" (exit {done.code}: {clean(output_text(done.stderr).strip())[:200]})"
            )
        return variables

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries with their sizes, sorted by name.

        Raises:
            TransportError: it cannot be listed.
        """
        entries = self._ahead.entries(path)
        if entries is not None:
            return entries
        return self._access(lambda files: files.listdir(path), "cannot list", path)

    def stat(self, path: str) -> FileStat | None:
        """Return the entry of `path`; None if there is none.

        Raises:
            TransportError: it cannot be read.
        """
        answer = self._ahead.stat(path)
        if not isinstance(answer, bool):
            if answer is not None and answer.is_silent:
                raise access_error(no_file_answer(path), "cannot stat", path)
            return answer
        try:
            return self.with_files(lambda files: files.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise access_error(error, "cannot stat", path) from error

    def ownership(self, path: str) -> Ownership | None:
        """Return who owns `path` and can write it; None if there is none.

        Raises:
            TransportError: it cannot be read.
        """
        body = (
            f"stat -L -c '%u %U %G %a' -- {quote(path)} || exit 1\nid -u\n"
            f'echo "$(getent group "$(stat -L -c %G -- {quote(path)})" | cut -d: -f4)"\n'
            f"{far_writers_script(path)}; exit 0"
        )
        done = run_script(self.connection, body, "stat", env={"LC_ALL": "C"}, timeout_s=self._deadline_s)
        if done.code != 0:
            message = output_text(done.stderr).strip()
            if "No such file" in message or "Not a directory" in message:
                return None
            raise TransportError(f"cannot stat {clean(path)}: {message.rpartition(':')[2].strip()}")
        first, own, members, listed = [*output_text(done.stdout).split("\n"), "", ""][:4]
        with _readable(self.connection.host.alias):
            uid, user, group, mode = first.split(" ")
            writers = _writable_by(user, group, int(mode, 8), members) or " ".join(listed.split(":")[:2])
            return Ownership(user, uid == own.strip(), writers)

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1.

        Raises:
            TransportError: the file cannot be read.
        """
        data = self._ahead.bytes_of(path, offset, size)
        if data is not None:
            return data
        data = self._access(lambda files: files.read(path, offset, size), "cannot read", path)
        self._ahead.note(path, offset, data)
        return data

    def looking_at(
        self, directories: Sequence[str], depth: int, pattern: str
    ) -> AbstractContextManager[None]:
        """Look at directories, and those below whose names match, in one request."""
        return self._ahead.trees(directories, depth, pattern) if directories else nullcontext()

    def looking_at_files(
        self, directories: Sequence[str], names: Sequence[str]
    ) -> AbstractContextManager[None]:
        """Look at the files of some names in the directories below others, and read them: two requests."""
        return self._ahead.files_below(directories, names)

    def read_ahead(self, ranges: Sequence[ReadRange]) -> None:
        """Read parts of files in one request; without effect outside of a look.

        Raises:
            TransportError: the host does not answer.
        """
        self._ahead.read(ranges)

    def write_atomic(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file completely or not at all; missing directories are made.

        Raises:
            TransportError: the file cannot be written.
        """
        self._ahead.forget()
        self._access(lambda files: files.write_atomic(path, data, mode), "cannot write", path)

    def write_files(self, files: Sequence[NewFile]) -> None:
        """Write files in their order in one request, each completely or not at all.

        The same is sent again where it is not clear whether it was carried out.

        Raises:
            TransportError: one cannot be written; those before it are there.
        """
        self._ahead.forget()
        shell = ShellFiles(self.connection, self._deadline_s)
        for attempt in range(1, _UNCLEAR_TRIES + 1):
            try:
                shell.write_all(files)
            except UnclearError:
                if attempt == _UNCLEAR_TRIES:
                    raise
                time.sleep(self.state().next_attempt_s + 0.05)
            except OSError as error:
                raise access_error(error, "cannot write", posixpath.dirname(files[0].path)) from error
            else:
                return

    def path(self, text: str) -> RemotePath:
        """Return a path on the host, for code that takes paths."""
        if self._path_type is None:
            self._path_type = remote_path_type(self.host_files())
        return self._path_type(text)

    def host_files(self) -> HostFiles:
        """Return the files of the host as recipes read them."""
        if self._host_files is None:
            self._host_files = HostFiles(self, cache_root())
        return self._host_files

    def real_path(self, path: str) -> str:
        """Return a path without symbolic links.

        Raises:
            TransportError: the host does not answer.
        """
        done = self.run(["realpath", "-m", "-z", "--", path], timeout_s=self._deadline_s)
        return done.stdout.rstrip("\0\n") or path

    def change(
        self, path: str, change: Callable[[bytes | None], bytes], *, keep_attributes: bool = False
    ) -> None:
        """Read a file, change its content and write it, under the lock that programs there respect, too.

        `keep_attributes`: a file that is there keeps its owner, mode and access list, and a link stays one.

        Raises:
            LockedError: another program holds the lock.
            InputError: it is a directory.
            TransportError: it cannot be read or written, or the host does not answer.
        """
        self._ahead.forget()
        LockedChange(self.connection, path, self._deadline_s, keep_attributes).make(change)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; an existing one is fine.

        Raises:
            TransportError: it cannot be made.
        """
        self._ahead.forget()
        self._access(lambda files: files.make_directory(path), "cannot make", path)

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            TransportError: it cannot be removed.
        """
        self._ahead.forget()
        self._access(lambda files: files.remove(path), "cannot remove", path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its contents.

        Raises:
            TransportError: it cannot be removed.
        """
        self._ahead.forget()
        done = self.run(["rm", "-r", "--", path], timeout_s=max(self._deadline_s, 120.0))
        if done.code != 0:
            reason = done.stderr.strip().partition("\n")[0].rpartition(":")[2].strip()
            raise TransportError(f"cannot remove {clean(path)}: {reason}")

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, output: str) -> ProcessId:
        """Start a process that outlives the connection, in its own session; its output is appended to a file.

        Raises:
            TransportError: it cannot be started.
        """
        target = quote(output)
        # The process is the inner shell until it becomes the command: its number is known before that.
        body = (
            f"{PROCESS_IDENTITY}[ ! -L {target} ] || {{ echo 'the output is a link' >&2; exit 1; }}\n"
            f'setsid -f sh -c \'echo $$; exec >>"$0" 2>&1; trap - INT QUIT; exec "$@"\' {target}'
            f" {' '.join(map(quote, argv))} </dev/null 2>/dev/null | {{ read pid && identity $pid | "
            "{ read started; echo $pid $started; }; cat /proc/sys/kernel/random/boot_id; uname -n; }"
        )
        done = run_script(self.connection, body, argv[0], env=env, cwd=cwd, timeout_s=self._deadline_s)
        lines = output_text(done.stdout).split("\n")
        numbers = lines[0].split() if lines else []
        if done.code != 0 or len(numbers) != 2 or len(lines) < 3:
            reason = output_text(done.stderr).strip() or "no process"
            raise TransportError(f"'{clean(argv[0])}' cannot be started: {reason}")
        with _readable(self.connection.host.alias):
            return ProcessId(lines[2].strip(), lines[1].strip(), int(numbers[0]), int(numbers[1]))

    def alive(self, process: ProcessId) -> bool | None:
        """Return whether the process still runs; None where this machine cannot know."""
        if process.host != self.host:
            return None
        return self._identified(process, ":")

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal to the process; return False if it is gone.

        Raises:
            TransportError: it belongs to another user.
        """
        if process.host != self.host:
            return False
        signal.Signals(number)  # a number that is one
        return self._identified(process, f"kill -{int(number)} $pid")

    def was_started_with(self, process: ProcessId, assignment: str) -> bool:
        """Return whether the user's process was started with `NAME=value` in its environment."""
        if process.host != self.host or not _ASSIGNMENT.fullmatch(assignment):
            return False
        return self._identified(
            process,
            f"[ -O /proc/$pid ] && tr '\\0' '\\n' </proc/$pid/environ | grep -q -x -F -- {quote(assignment)}",
        )

    def find_process(self, assignment: str) -> ProcessId | None:
        """Return the user's oldest process that was started with `NAME=value` in its environment."""
        if not _ASSIGNMENT.fullmatch(assignment):
            return None
        body = (
            f"{PROCESS_IDENTITY}cat /proc/sys/kernel/random/boot_id\nuname -n\n"
            f"for d in /proc/[0-9]*; do [ -O $d ] && tr '\\0' '\\n' <$d/environ 2>/dev/null"
            f" | grep -q -x -F -- {quote(assignment)} && pid=${{d#/proc/}} && started=$(identity $pid)"
            " && echo $started $pid; done | sort -n | head -n 1"
        )
        done = run_script(self.connection, body, "sh", timeout_s=self._deadline_s)
        lines = output_text(done.stdout).split("\n")
        if len(lines) < 3 or not lines[2].strip():
            return None
        with _readable(self.connection.host.alias):
            started, pid = map(int, lines[2].split())
        return ProcessId(lines[1].strip(), lines[0].strip(), pid, started)

    def _identified(self, process: ProcessId, action: str) -> bool:
        """Run an action on a process, if it is still the same one; return whether it was and that worked."""
        body = (
            f"{PROCESS_IDENTITY}pid={int(process.pid)}\n"
            f'[ "$(cat /proc/sys/kernel/random/boot_id)" = {quote(process.boot)} ]'
            f' && [ "$(identity $pid)" = {int(process.started)} ] || exit 3\n{action}\n'
        )
        done = run_script(self.connection, body, "sh", env={"LC_ALL": "C"}, timeout_s=self._deadline_s)
        if done.code not in (0, 3) and b"not permitted" in done.stderr:
            raise TransportError(f"process {process.pid} belongs to another user")
        return done.code == 0

    def _access(self, action: Callable[[HostAccess], Result], failure: str, path: str) -> Result:
        try:
            return self.with_files(action)
        except OSError as error:
            raise access_error(error, failure, path) from error

    def with_files(self, action: Callable[[HostAccess], Result]) -> Result:
        """Return what an action does with the files.

        Raises:
            OSError: the refusal.
            TransportError: no connection, no answer in time, or one of another form.
        """
        with _readable(self.connection.host.alias):
            return action(self._files)


@contextmanager
def _readable(host: str) -> Iterator[None]:
    """Explain an answer of another form than that of the commands that were sent."""
    try:
        yield
    except ValueError as error:
        raise TransportError(f"{host}: an answer cannot be read: {clean(str(error))[:200]}") from error


def _writable_by(user: str, group: str, mode: int, members: str) -> str:
    """Return who besides the owner can write; a group of the owner alone is not counted."""
    if mode & 0o002:
        return "everybody"
    if not mode & 0o020:
        return ""
    names = filter(None, members.strip().split(","))
    return "" if is_private_group(group, user, names) else f"group {group}"
