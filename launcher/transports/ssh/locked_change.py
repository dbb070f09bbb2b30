"""Changes of a file on the far side under the lock of `recipes.locks`: two commands, each done whole or not.

The lock file is made with its content by `ln`, which is atomic on shared file systems, too. Its holder is
"elsewhere" for programs on that machine: they respect it until it has not been released for `STALE_S`. The
second command writes only while the lock is still this change's: who was taken for gone changes nothing.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from shlex import quote

from launcher.errors import ConnectionLostError, InputError, TransportError, UnclearError
from launcher.text import clean
from launcher.transports.replies import output_text
from launcher.transports.ssh.connection import SshConnection
from launcher.transports.ssh.remote_shell import PLAIN_ENVIRONMENT, PROCESS_IDENTITY, RawResult, run_script
from launcher.transports.ssh.shell_files import writing_lines
from recipes.locks import LOCK_SUFFIX, STALE_S, WAIT_S, Holder, LockedError

Change = Callable[[bytes | None], bytes]
_POLL_S = 0.2
_UNCLEAR_TRIES = 6
"""Times a change is begun anew after the connection broke: by then the backoff has waited for 38 s."""
_LOST = b"lost"


@dataclass
class LockedChange:
    """One change of one file: it waits for other holders, and is made anew when the connection broke."""

    connection: SshConnection
    path: str
    deadline_s: float
    keep_attributes: bool = False
    """Whether a file keeps its owner, mode and access list, and a link stays one."""
    wait_s: float = WAIT_S
    stale_s: float = STALE_S
    sleep: Callable[[float], None] = time.sleep
    _mine: bytes = field(default_factory=lambda: _holder_here())
    _watched: bytes | None = None
    _since: float = 0.0

    def make(self, change: Change) -> None:
        """Read the file, change its content and write it.

        `change` gets None where there is no file. It is called again where it is not clear whether the
        first time counts, so it must give the same for what it has already changed.

        Raises:
            LockedError: another program holds the lock.
            InputError: the file is a directory.
            TransportError: it cannot be read or written, or the host does not answer.
            Exception: as `change` does; nothing is changed then.
        """
        for attempt in range(1, _UNCLEAR_TRIES + 1):
            try:
                self._make_once(change)
            except ConnectionLostError as error:
                if attempt == _UNCLEAR_TRIES:
                    raise
                # One that was never made will not be made by waiting; one that broke will.
                if not isinstance(error, UnclearError) and self.connection.generation == 0:
                    raise
                self.sleep(self.connection.state().next_attempt_s + 0.05)
            else:
                return

    def _make_once(self, change: Change) -> None:
        deadline = time.monotonic() + self.wait_s
        while True:
            content = self._taken(deadline)
            try:
                new = change(content)
            except BaseException:
                self._sh(_release(self.path, self._mine))
                raise
            try:
                done = self._sh(_commit(self.path, self._mine, new, keep=self.keep_attributes))
            except ConnectionLostError:
                raise
            except TransportError:
                self._sh(_release(self.path, self._mine))
                raise
            if done.stdout.strip() != _LOST:
                return

    def _taken(self, deadline: float) -> bytes | None:
        """Take the lock; return the file's content, None where there is none."""
        stale = b""
        while True:
            done = self._sh(_take(self.path, self._mine, stale))
            state, _, rest = done.stdout.partition(b"\n")
            if state == b"new":
                return None
            if state == b"taken":
                return rest
            if state == b"directory":
                raise InputError(f"{self.path} is a directory (expected a file)", where=self.path)
            node, _, content = rest.partition(b"\n")
            stale = content if self._is_stale(state, node, content) else b""
            if stale:
                continue
            if time.monotonic() > deadline:
                who = Holder.read(content) or "another process"
                raise LockedError(
                    f"{clean(self.path)} is being changed by {who}, for more than {self.wait_s:g} s",
                    where=self.path,
                    fix="Try again in a minute.",
                )
            self.sleep(_POLL_S)

    def _is_stale(self, state: bytes, node: bytes, content: bytes) -> bool:
        """Return whether the holder that a lock file names is gone; an empty file may be new."""
        if content != self._watched:
            self._watched, self._since = content, time.monotonic()
        name, _, started = node.decode("utf-8", errors="replace").rpartition(" ")
        holder = Holder.read(content)
        if state == b"busy":  # a process there holds the kernel's lock
            return False
        if holder is not None and holder.host == name:
            return started != str(holder.started)
        return time.monotonic() - self._since >= self.stale_s and bool(content)

    def _sh(self, body: str) -> RawResult:
        done = run_script(self.connection, body, "sh", env=PLAIN_ENVIRONMENT, timeout_s=self.deadline_s)
        if done.code != 0:
            reason = output_text(done.stderr).strip().rpartition("\n")[2].rpartition(": ")[2]
            raise TransportError(f"cannot write {clean(self.path)}: {reason or f'exit {done.code}'}")
        return done


_KEEP = """\
if [ -e "$target" ]; then
  [ -w "$target" ] || { echo 'it is read-only' >&2; fail; }
  cp --attributes-only --preserve=mode,ownership,xattr -- "$target" "$new" || fail
  [ "$(stat -c '%u %g %a' -- "$new")" = "$(stat -c '%u %g %a' -- "$target")" ] ||
    { echo 'its owner, group or mode would change' >&2; fail; }
fi"""
"""Gives the new file what the old one has; refuses where that cannot be, as saving on one machine does."""


def _holder_here() -> bytes:
    """Return the content of a lock file: this process, of a machine that nobody there can look at."""
    holder = Holder(getpass.getuser(), f"{platform.node()} over SSH", os.getpid(), 0)
    return json.dumps(holder._asdict() | {"change": secrets.token_hex(8)}).encode()


def _lock_lines(path: str, mine: bytes) -> list[str]:
    return [
        f"target=$(realpath -m -- {quote(path)}) || exit 1",
        f'lock="${{target%/*}}/.${{target##*/}}{LOCK_SUFFIX}" mine={quote(mine.decode())}',
        'is_mine() { [ "$(head -c 1000 -- "$lock" 2>/dev/null)" = "$mine" ]; }',
    ]


def _take(path: str, mine: bytes, stale: bytes) -> str:
    """Return the script that takes the lock, after it has removed one of a holder that is gone."""
    return "\n".join([
        PROCESS_IDENTITY,
        *_lock_lines(path, mine),
        f"stale={quote(stale.decode('utf-8', errors='surrogateescape'))}",
        '[ -d "$target" ] && { echo directory; exit 0; }',
        'new="$lock.$$"',
        '( umask 022; printf %s "$mine" >"$new" ) || exit 1',
        "try() { ln -T -- \"$new\" \"$lock\" 2>/dev/null || is_mine; }",
        # The kernel's lock, where there is one, keeps programs of that machine from taking it meanwhile.
        "free() { command -v flock >/dev/null || return 0; ( flock -n 9 || [ $? -gt 1 ] ) 9<\"$lock\"; }",
        "drop() { command -v flock >/dev/null && { flock -n 9 || [ $? -gt 1 ] || return 1; };"
        ' [ "$(head -c 1000 -- "$lock")" = "$stale" ] && rm -f -- "$lock"; }',
        '[ -z "$stale" ] || drop 9<"$lock" 2>/dev/null',
        "state=free",
        'try || { state=held; free 2>/dev/null || state=busy; }',
        'rm -f -- "$new"',
        'if [ $state = free ]; then',
        '  [ -e "$target" ] || { echo new; exit 0; }',
        '  echo taken; exec cat -- "$target"',
        "fi",
        'pid=$(sed -n \'s/.*"pid": *\\([0-9][0-9]*\\).*/\\1/p\' <"$lock" 2>/dev/null)',
        'echo $state; echo "$(uname -n) $(identity "${pid:-none}")"',
        'head -c 1000 -- "$lock" 2>/dev/null; exit 0',
    ])  # fmt: skip


def _commit(path: str, mine: bytes, data: bytes, *, keep: bool) -> str:
    """Return the script that writes the file and releases the lock, if that is still this change's."""
    check = 'is_mine || { rm -f -- "$new"; echo lost; exit 0; }'
    if keep:
        check = f"{_KEEP}\n{check}"
    return "\n".join([
        *_lock_lines(path, mine),
        "is_mine || { echo lost; exit 0; }",
        *writing_lines(path, data, 0o644, check, "$target" if keep else ""),
        'is_mine && rm -f -- "$lock"',
        "exit 0",
    ])  # fmt: skip


def _release(path: str, mine: bytes) -> str:
    """Return the script that releases the lock, and changes nothing else."""
    return "\n".join([*_lock_lines(path, mine), 'is_mine && rm -f -- "$lock"', "exit 0"])
