"""A local port that is passed on to a web page elsewhere, for one browser.

Everybody on this machine can connect to a port of its loopback. So the address that is given out holds a word
that counts once: the browser that shows it gets a cookie, and what comes without it is refused.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import Callable, Mapping

from launcher.errors import InputError, TransportError
from launcher.text import clean
from launcher.transports.streams import Stream

_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
_MAX_CONNECTIONS = 64
_REQUEST_TIMEOUT_S = 300.0
"""Seconds that a connection may be open before its first request: browsers open some in advance."""
_GATE_COOKIE = "distill-tui-tunnel"
_LOOPBACK = "127.0.0.1"


class PortForward:
    """A port of the loopback whose connections go to streams.

    `cookies` are handed to the browser with the first request.
    """

    def __init__(
        self, open_stream: Callable[[], Stream], port: int = 0, cookies: Mapping[str, str] | None = None
    ) -> None:
        """Open the port; 0 is any free one.

        Raises:
            InputError: the port is in use or not permitted.
        """
        self._open_stream = open_stream
        self._word: str | None = (word := secrets.token_urlsafe(24))
        self._gate = secrets.token_urlsafe(24)
        self._cookies = {**(cookies or {}), _GATE_COOKIE: self._gate}
        self._lock = threading.Lock()
        self._open: set[Stream] = set()
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._closed = False
        self._server = _listening(port)
        self.port = int(self._server.getsockname()[1])
        self.url = self._address(word)
        threading.Thread(target=self._accept, name="forward", daemon=True).start()

    def _address(self, word: str) -> str:
        return f"http://{_LOOPBACK}:{self.port}/?open={word}"

    def renew(self) -> str:
        """Return another address, which counts once; the one before counts no longer."""
        word = secrets.token_urlsafe(24)
        with self._lock:
            self._word = word
        return self._address(word)

    def close(self) -> None:
        """Close the port and every connection."""
        with self._lock:
            self._closed = True
            streams, self._open = self._open, set()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._server.close()
        for stream in streams:
            _end(stream)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return  # closed
            if not self._slots.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), name="forward", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        far: Stream | None = None
        try:
            if not self._keep(client):
                return
            client.settimeout(_REQUEST_TIMEOUT_S)
            first = _request_head(client)
            answer = self._own_answer(first)
            if answer is not None:
                client.sendall(answer)
                return
            try:
                far = self._open_stream()
            except TransportError as error:
                client.sendall(_page("502 Bad Gateway", clean(str(error))))
                return
            if self._keep(far):
                client.settimeout(None)
                _exchange(client, far, first)
        except OSError:
            return  # the browser went away
        finally:
            with self._lock:
                self._open -= {client} if far is None else {client, far}
            _end(client)
            if far is not None:
                _end(far)
            self._slots.release()

    def _keep(self, stream: Stream) -> bool:
        """Note a stream to close with the port; False where that is closed already."""
        with self._lock:
            if not self._closed:
                self._open.add(stream)
            return not self._closed

    def _own_answer(self, head: bytes) -> bytes | None:
        """Return the answer to a request that is not passed on; None for one with the cookie."""
        line, _, headers = head.partition(b"\r\n")
        if not line:
            return b""
        target = [*line.split(b" "), b""][1].decode("latin-1")
        has_cookie = any(secrets.compare_digest(value, self._gate.encode()) for value in _gates(headers))
        word = target.removeprefix("/?open=") if target.startswith("/?open=") else None
        if word is None:
            return None if has_cookie else _page("403 Forbidden", "Open the address that was printed.")
        with self._lock:
            fits = self._word is not None and secrets.compare_digest(word.encode(), self._word.encode())
            if fits:
                self._word = None
        if fits:
            given = "".join(
                f"Set-Cookie: {name}={value}; Path=/; HttpOnly; SameSite=Strict\r\n"
                for name, value in self._cookies.items()
            )
            return _redirect(given)
        if has_cookie:
            return _redirect("")
        return _page("403 Forbidden", "This address was opened before; ask for a new one.")


def _listening(port: int) -> socket.socket:
    server = socket.socket()
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((_LOOPBACK, port))
        server.listen(_MAX_CONNECTIONS)
    except OSError as error:
        server.close()
        raise InputError(
            f"port {port} cannot be opened here: {error.strerror}",
            fix="Choose another port, or leave it out.",
        ) from error
    return server


def _request_head(client: socket.socket) -> bytes:
    """Return what came up to the end of the first request's headers."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _HEAD_BYTES:
        chunk = client.recv(_CHUNK_BYTES)
        if not chunk:
            return b""
        head += chunk
    return head


def _gates(headers: bytes) -> list[bytes]:
    """Return the values of the forward's own cookie in the headers of a request."""
    cookies = [
        value
        for line in headers.partition(b"\r\n\r\n")[0].split(b"\r\n")
        for name, _, value in (line.partition(b":"),)
        if name.strip().lower() == b"cookie"
    ]
    pairs = [pair.strip().partition(b"=") for value in cookies for pair in value.split(b";")]
    return [value for name, _, value in pairs if name == _GATE_COOKIE.encode()]


def _redirect(headers: str) -> bytes:
    return (
        f"HTTP/1.1 302 Found\r\nLocation: /\r\n{headers}Cache-Control: no-store\r\n"
        "Content-Length: 0\r\nConnection: close\r\n\r\n"
    ).encode()


def _page(status: str, text: str) -> bytes:
    body = (text + "\n").encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _exchange(client: Stream, far: Stream, first: bytes) -> None:
    """Pass bytes on in both directions until one side ends."""
    back = threading.Thread(target=_pump, args=(far, client), name="forward", daemon=True)
    far.sendall(first)
    back.start()
    _pump(client, far)
    back.join()


def _pump(source: Stream, target: Stream) -> None:
    try:
        while chunk := source.recv(_CHUNK_BYTES):
            target.sendall(chunk)
    except (OSError, EOFError):
        return  # one side went away: the other is closed below
    finally:
        _end(target)
        _end(source)


def _end(stream: Stream) -> None:
    with contextlib.suppress(OSError, EOFError):
        if isinstance(stream, socket.socket):
            stream.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for it
    with contextlib.suppress(OSError, EOFError):
        stream.close()
