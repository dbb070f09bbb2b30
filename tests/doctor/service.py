"""A container service of a few answers, on a Unix socket."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def service(path: Path, networks: int) -> Iterator[None]:
    """Serve what a container service answers, on a Unix socket."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pools = [{"Base": "10.200.0.0/16", "Size": 19}]
            answers = {
                "/info": {"DefaultAddressPools": pools},
                "/networks": [{"Driver": "bridge"}] * networks,
            }
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answers[self.path]).encode() if self.path in answers else b"OK")

        def log_message(self, *arguments: object) -> None:
            del arguments

        def address_string(self) -> str:
            return ""

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(path), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()
