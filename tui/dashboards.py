"""Ray dashboards that the app has opened ports to; all are closed with it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.monitor.tunnel import Tunnel
    from launcher.runs import Run
    from tui.work_machine import WorkMachine


class Dashboards:
    """Tunnels to dashboards, one for each job of a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tunnels: dict[tuple[str, str, str], Tunnel] = {}
        self._closed = False

    def open(self, machine: WorkMachine, run: Run) -> tuple[str, str]:
        """Return an address that counts once, and the node; takes up to half a minute, on a thread.

        Raises:
            InputError: the run has no dashboard.
            TransportError: it does not answer.
        """
        from launcher.monitor.tunnel import open_dashboard

        key = (machine.name, run.directory, run.job.id if run.job is not None else "")
        with self._lock:
            tunnel = self._tunnels.get(key)
        if tunnel is not None:
            return tunnel.renew(), tunnel.node
        tunnel = open_dashboard(machine.transport(), run)
        with self._lock:
            other = self._tunnels.setdefault(key, tunnel)
            is_late = self._closed or other is not tunnel
        if is_late:
            tunnel.close()
        return other.renew(), other.node

    def close_port(self, machine: str, directory: str) -> None:
        """Close the ports to the dashboards of a run."""
        with self._lock:
            keys = [key for key in self._tunnels if key[:2] == (machine, directory)]
            tunnels = [self._tunnels.pop(key) for key in keys]
        for tunnel in tunnels:
            tunnel.close()

    def close(self) -> None:
        """Close all ports, also those that are still being opened."""
        with self._lock:
            self._closed = True
            tunnels = list(self._tunnels.values())
            self._tunnels.clear()
        for tunnel in tunnels:
            tunnel.close()
