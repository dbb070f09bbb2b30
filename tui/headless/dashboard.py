"""`dashboard`: a local port that leads to the Ray dashboard of a run."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from launcher.errors import InputError
from tui.headless.output import SCHEMA, print_json, say, show
from tui.headless.stores import run_store

if TYPE_CHECKING:
    import argparse

_MAX_PORT = 65535


def run(options: argparse.Namespace) -> int:
    """Pass a local port on to a run's Ray dashboard until the command is ended.

    Raises:
        InputError: the run has no dashboard, or the port is invalid or in use.
        TransportError: the dashboard does not answer.
    """
    from launcher.monitor.tunnel import open_dashboard

    if options.port is not None and options.port > _MAX_PORT:
        raise InputError(f"invalid --port: '{options.port}' (expected 1 to {_MAX_PORT})")
    store = run_store(options.host)
    target = store.find(options.run)
    ended = threading.Event()
    tunnel = open_dashboard(store.transport, target, options.port or 0)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.signal(number, lambda *_: ended.set())) for number in signals]
    try:
        if options.json:
            print_json(SCHEMA | {"run": target.spec.id, "node": tunnel.node, "url": tunnel.url}, line=True)
        else:
            show(tunnel.url, flush=True)
            say(
                f"Ray dashboard of {target.spec.id} on {tunnel.node}; the address works once, in one browser."
                " Ctrl+C closes it."
            )
        ended.wait()
    finally:
        tunnel.close()
        for number, handler in before:
            signal.signal(number, handler)
    return 0
