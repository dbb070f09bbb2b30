"""Machines that the app works on: this one, and hosts over SSH, each with one connection for all screens."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui.opening import local
from tui.work_machine import LineState, WorkMachine

if TYPE_CHECKING:
    from launcher.runs import RunStore
    from launcher.transports.base import Transport
    from launcher.transports.ssh.authentication import LoginPrompt
    from launcher.transports.ssh.transport import SshTransport


class LocalMachine:
    """The machine that the program runs on."""

    name = ""

    def transport(self) -> Transport:
        """Return a new transport to this machine."""
        return local()

    def environment(self) -> Mapping[str, str]:
        """Return this program's environment."""
        return os.environ

    def path(self, text: str) -> Path:
        """Return a path."""
        return Path(text)

    def store_at(self, root: str) -> RunStore:
        """Return the store of the runs below a directory."""
        from launcher.runs import RunStore

        return RunStore(local(), root)

    def state(self) -> LineState | None:
        """Return None: there is no connection."""
        return None


class FarMachine:
    """A host over SSH; it is connected to at its first use."""

    def __init__(self, name: str, answer: Callable[[LoginPrompt], str]) -> None:
        self._name = name
        self._answer = answer
        self._lock = threading.Lock()
        self._first: SshTransport | None = None
        self._asking = False

    @property
    def name(self) -> str:
        """Name of the host as the user gives it."""
        return self._name

    def transport(self) -> Transport:
        """Return a new transport over the one connection.

        Raises:
            InputError: the name or its configuration is invalid.
            TransportError: it cannot be reached, or does not let the user in.
        """
        first = self._resolved()
        first.environment()
        return first.beside()

    def _resolved(self) -> SshTransport:
        with self._lock:
            if self._first is None:
                from launcher.transports.ssh.ssh_config import resolve_host
                from launcher.transports.ssh.transport import SshTransport

                self._first = SshTransport(resolve_host(self._name, os.environ), self._ask)
            return self._first

    def _ask(self, prompt: LoginPrompt) -> str:
        self._asking = True
        try:
            return self._answer(prompt)
        finally:
            self._asking = False

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the login shell there."""
        return self._resolved().environment()

    def path(self, text: str) -> Path:
        """Return a path there, whose directory is looked at anew."""
        return self.transport().path(text)

    def store_at(self, root: str) -> RunStore:
        """Return the store of the runs below a directory there."""
        from launcher.runs import RunStore

        return RunStore(self.transport(), root)

    def state(self) -> LineState:
        """Return how the connection is, without waiting."""
        first = self._first
        if first is None:
            return LineState(self._name, "connecting")
        now = first.state()
        if self._asking:
            return LineState(self._name, "asking")
        if now.connected:
            return LineState(self._name, "up", now.last_data)
        if now.refusal is not None:
            return LineState(
                self._name, "refused", now.last_data, problem=now.refusal.what, refusal=now.refusal
            )
        if now.last_data is None and not now.problem:
            return LineState(self._name, "connecting")
        return LineState(self._name, "lost", now.last_data, now.next_attempt_s, now.problem)

    def try_again(self) -> None:
        """Let the next use connect at once, also after a refusal."""
        if self._first is not None:
            self._first.connection.try_again()

    def close(self) -> None:
        """Close the connection."""
        if self._first is not None:
            self._first.close()


class Machines:
    """Machines by name."""

    def __init__(self, answer: Callable[[LoginPrompt], str]) -> None:
        self._answer = answer
        self._here = LocalMachine()
        self._hosts: dict[str, FarMachine] = {}

    def at(self, name: str) -> WorkMachine:
        """Return the machine of a name; this one for an empty name."""
        if not name:
            return self._here
        return self._hosts.setdefault(name, FarMachine(name, self._answer))

    def try_again(self) -> None:
        """Let the next uses of all hosts connect at once."""
        for host in self._hosts.values():
            host.try_again()

    def close(self) -> None:
        """Close all connections."""
        for host in self._hosts.values():
            host.close()
