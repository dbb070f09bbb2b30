"""One connection to a host, shared by all commands and file accesses, and made anew when it breaks."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from launcher.errors import ConnectionLostError, TransportError
from launcher.text import clean
from launcher.transports.ssh.authentication import LoginError, Prompter, log_in
from launcher.transports.ssh.host_keys import HostKeyError, KnownKeys, check_host_key, known_keys
from launcher.transports.ssh.silent_paths import SilentPaths
from launcher.transports.ssh.ssh_config import similar_host

if TYPE_CHECKING:
    import paramiko

    from launcher.transports.ssh.ssh_config import SshHost

_BACKOFF_S = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
"""Seconds between attempts to connect again; the last one repeats."""
_BANNER_TIMEOUT_S = 20.0
_LOGIN_TIMEOUT_S = 110.0
"""With the time that the user takes to answer; a server gives 120 s (LoginGraceTime)."""
_SILENT_KEEPALIVES = 3
_WINDOW_BYTES = 8 << 20
"""Bytes in flight: 2 MiB, paramiko's default, allow 20 MB/s at a round trip of 100 ms; 8 MiB 80 MB/s."""


@dataclass(frozen=True, slots=True)
class ConnectionState:
    """How the connection is."""

    connected: bool
    last_data: float | None = None
    """When the last answer came, in seconds since the epoch; None before the first."""
    next_attempt_s: float = 0.0
    """Seconds until it is tried again."""
    problem: str = ""
    refusal: TransportError | None = None
    """Why the host was not logged in to; it is not tried again before `try_again`."""


class SshConnection:
    """A connection to a host.

    It is made at first use. When it breaks, the next use connects again, after a pause that grows with the
    attempts that failed; until then every use fails at once. A code is asked for only if the server asks.
    A key that is not known, or a login that was refused or given up, is the answer to every further use.
    """

    def __init__(
        self,
        host: SshHost,
        prompter: Prompter,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = host
        self._prompter = prompter
        self._monotonic = monotonic
        self._lock = threading.RLock()
        self._chain: list[paramiko.Transport] = []
        """Transports to the hosts on the way and, last, to the host itself."""
        self._spare_ready = threading.Condition()
        self._spare: tuple[int, paramiko.Channel] | None = None
        self._is_preparing = False
        self._failures = 0
        self._not_before = 0.0
        self._problem = ""
        self._last_data: float | None = None
        self._refusal: TransportError | None = None
        self.generation = 0
        """Number of connections made so far."""
        self.silent_paths = SilentPaths()
        """Paths of the host that gave no answer."""

    def transport(self) -> paramiko.Transport:
        """Return a transport that is connected and logged in.

        Raises:
            HostKeyError: the host, or one on the way, shows a key that is not known.
            LoginError: it does not let the user in.
            ConnectionLostError: it cannot be reached, or it is too early to try again.
        """
        with self._lock:
            if self._is_up():
                return self._chain[-1]
            if self._refusal is not None:
                raise self._refusal
            if self._chain:
                self._lost("the connection broke")
            wait_s = self._not_before - self._monotonic()
            if wait_s > 0:
                raise ConnectionLostError(
                    f"{self.host.alias}: not connected: {self._problem}",
                    fix=f"The next attempt is in {wait_s:.0f} s.",
                )
            self._connect()
            return self._chain[-1]

    def _connect(self) -> None:
        import paramiko

        try:
            with _closed_on_error(self._chain):
                for host in (*self.host.jumps, self.host):
                    self._chain.append(self._through(host))
        except (HostKeyError, LoginError) as error:
            self._chain, self._refusal = [], error
            raise
        except (OSError, EOFError, paramiko.SSHException, ConnectionLostError) as error:
            self._lost(_reason(error))
            if isinstance(error, socket.gaierror):
                self._problem += similar_host(self.host.alias, os.environ)
            raise ConnectionLostError(f"{self.host.alias}: {self._problem}") from error
        self._failures, self._not_before, self._problem = 0, 0.0, ""
        self.generation += 1
        self.received()

    def _through(self, host: SshHost) -> paramiko.Transport:
        """Return a transport to a host, over the last one of the chain where there is one."""
        known = known_keys(host)
        transport = self._begun(host, known)
        try:
            check_host_key(host, transport.get_remote_server_key(), known)
            transport.set_keepalive(host.keepalive_s)
            log_in(transport, host, self._prompter)
        except BaseException:
            transport.close()
            raise
        return transport

    def _begun(self, host: SshHost, known: KnownKeys) -> paramiko.Transport:
        """Return a transport that has agreed on keys with a host.

        The addresses of its name are tried in turn (JUWELS has several): one may be down, or take a
        connection and close it.
        """
        if self._chain:
            sock = self._chain[-1].open_channel(
                "direct-tcpip", (host.hostname, host.port), ("127.0.0.1", 0), timeout=host.connect_timeout_s
            )
            return _started(sock, known)
        import paramiko

        problem: Exception = OSError("its name has no address")
        for address in socket.getaddrinfo(host.hostname, host.port, type=socket.SOCK_STREAM):
            try:
                return _started(_connected(host, address), known)
            except (OSError, EOFError, paramiko.SSHException) as error:
                problem = error
        raise problem

    def take_spare(self, timeout_s: float = 0.0) -> paramiko.Channel | None:
        """Return a channel whose shell waits for its script, made beforehand: it saves a round trip.

        One that is being made is waited for: it is there before another one would be.
        """
        with self._spare_ready:
            if self._is_preparing:
                self._spare_ready.wait(timeout_s)
            spare, self._spare = self._spare, None
        if spare is None or spare[0] != self.generation:
            return None
        channel = spare[1]
        return None if channel.closed or channel.eof_received or not self._is_up() else channel

    def prepare_spare(self, open_channel: Callable[[], paramiko.Channel]) -> None:
        """Make the next spare channel meanwhile, unless one is there or being made."""
        with self._spare_ready:
            if self._spare is not None or self._is_preparing or not self._is_up():
                return
            self._is_preparing = True
        threading.Thread(target=self._prepare, args=(open_channel,), name="ssh", daemon=True).start()

    def _prepare(self, open_channel: Callable[[], paramiko.Channel]) -> None:
        channel, generation = None, self.generation
        try:
            channel = open_channel()
        except TransportError:
            return  # a server that allows no more sessions: each command opens its own
        finally:
            with self._spare_ready:
                self._is_preparing = False
                self._spare = (generation, channel) if channel is not None else None
                self._spare_ready.notify_all()

    def _is_up(self) -> bool:
        chain = self._chain
        return bool(chain) and all(item.is_active() for item in chain)

    def received(self) -> None:
        """Note that the host has answered."""
        self._last_data = time.time()

    def broken(self, reason: str, transport: paramiko.Transport | None = None) -> ConnectionLostError:
        """Drop the connection, which did not answer or broke; return the error to raise.

        `transport` is the one that was used: if another has been made meanwhile, that one stays.
        """
        with self._lock:
            if transport is None or (self._chain and self._chain[-1] is transport):
                self._lost(reason)
        return ConnectionLostError(f"{self.host.alias}: {reason}")

    def _lost(self, reason: str) -> None:
        chain, self._chain = self._chain, []
        for transport in reversed(chain):
            transport.close()
        self._problem = reason
        self._not_before = self._monotonic() + _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1

    def state(self) -> ConnectionState:
        """Return how the connection is, without asking the host."""
        chain = self._chain
        connected = bool(chain) and chain[-1].is_active()
        wait_s = max(self._not_before - self._monotonic(), 0.0)
        problem = "" if connected else self._problem
        return ConnectionState(connected, self._last_data, wait_s, problem, self._refusal)

    def try_again(self) -> None:
        """Let the next use connect at once, also after a refusal."""
        self._refusal, self._not_before = None, 0.0

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            chain, self._chain = self._chain, []
            for transport in reversed(chain):
                transport.close()


@contextlib.contextmanager
def _closed_on_error(chain: list[paramiko.Transport]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for transport in reversed(chain):
            transport.close()
        chain.clear()
        raise


def _connected(host: SshHost, address: tuple[Any, ...]) -> socket.socket:
    """Return a socket to one address of a host, as `getaddrinfo` gives it.

    Raises:
        OSError: it does not answer.
    """
    family, kind, protocol, _, target = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.settimeout(host.connect_timeout_s)
        sock.connect(target)
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Of a line that is gone (sleep, another network) the kernel tells after that, not after 15 min.
            limit_ms = _SILENT_KEEPALIVES * host.keepalive_s * 1000
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)
    except OSError:
        sock.close()
        raise
    return sock


def _started(sock: socket.socket | paramiko.Channel, known: KnownKeys) -> paramiko.Transport:
    """Return a transport over a socket, after the exchange of keys."""
    import paramiko

    transport = paramiko.Transport(sock, default_window_size=_WINDOW_BYTES)
    try:
        transport.banner_timeout = _BANNER_TIMEOUT_S
        transport.auth_timeout = _LOGIN_TIMEOUT_S
        _prefer(transport, known)
        transport.start_client(timeout=_BANNER_TIMEOUT_S)
    except BaseException:
        transport.close()
        raise
    return transport


def _prefer(transport: paramiko.Transport, known: KnownKeys) -> None:
    """Ask for a key of a type that is known: a server has several, and shows one."""
    options = transport.get_security_options()
    types = list(options.key_types)
    names = {name for kind in known for name in _algorithms(kind)}
    options.key_types = [name for name in types if name in names] + [
        name for name in types if name not in names
    ]


def _algorithms(kind: str) -> tuple[str, ...]:
    return ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa") if kind == "ssh-rsa" else (kind,)


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = clean(str(error))
    # What paramiko says where the other side takes the connection and closes it at once.
    return "the connection was closed" if not text or "protocol banner" in text else text
