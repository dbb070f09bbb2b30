"""A relay on the loopback that passes bytes on, late, and that can cut and stall."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PIECES = 256
"""Pieces on their way at most, of up to 64 KiB each."""


class Relay:
    """Listens on a port of its own and passes on to another one."""

    def __init__(self, target: int, delay_s: float = 0.0) -> None:
        self._target = target
        self._delay_s = delay_s
        self._open = threading.Event()
        self._open.set()
        self._flows = threading.Event()
        self._flows.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.connections = 0
        self.passed = 0
        """Bytes passed on, both ways."""
        self.cut_after: int | None = None
        """Bytes after which it cuts by itself, once."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._open.is_set():
                near.close()
                continue
            self.connections += 1
            far = socket.create_connection(("127.0.0.1", self._target))
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        """Pass on what comes, each piece `delay_s` after it came: a line that is long, not narrow."""
        pieces: queue.Queue[tuple[float, bytes]] = queue.Queue(_PIECES)
        threading.Thread(target=self._deliver, args=(pieces, source, sink), daemon=True).start()
        with suppress(OSError):
            while data := source.recv(1 << 16):
                pieces.put((time.monotonic() + self._delay_s, data))
        pieces.put((time.monotonic() + self._delay_s, b""))

    def _deliver(
        self, pieces: queue.Queue[tuple[float, bytes]], source: socket.socket, sink: socket.socket
    ) -> None:
        with suppress(OSError):
            while True:
                due, data = pieces.get()
                time.sleep(max(0.0, due - time.monotonic()))
                self._flows.wait()
                if not data:
                    break
                if self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after <= 0:
                        self.cut_after = None
                        self.cut()
                        break
                sink.sendall(data)
                self.passed += len(data)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        with suppress(queue.Empty):  # the reader may wait for room
            while True:
                pieces.get_nowait()

    def cut(self) -> None:
        """Break all connections."""
        sockets, self._sockets = self._sockets, []
        for sock in sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def stall(self) -> None:
        """Pass nothing on."""
        self._flows.clear()

    def flow(self) -> None:
        """Pass on again."""
        self._flows.set()

    def refuse(self) -> None:
        """Break all connections and take none."""
        self._open.clear()
        self.cut()

    def accept(self) -> None:
        """Take connections again."""
        self._open.set()

    def close(self) -> None:
        """End."""
        self._listener.close()
        self.cut()
        self._flows.set()


@contextmanager
def relayed(target: int, delay_s: float = 0.0) -> Iterator[Relay]:
    """Run a relay."""
    relay = Relay(target, delay_s)
    try:
        yield relay
    finally:
        relay.close()
