"""The dashboard of a run's Ray, passed on to a local port.

It listens on the loopback of the node that has Ray's head. Its port is in the head's log, the node in the
launcher's, the key to it in a file beside them that its owner alone reads (launcher/scripts/ray_bare.sub).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.errors import InputError, TransportError
from launcher.runs import Run
from launcher.text import clean
from launcher.transports.base import Transport
from launcher.transports.port_forward import PortForward
from launcher.transports.streams import Stream, StreamOpener

_COOKIE = "ray-authentication-token"
"""Ray 2.52 on (ray/_private/authentication/authentication_constants.py:13)."""
_LOG_BYTES = 1 << 20
_ADDRESS = re.compile(r"view the dashboard at[^\n]{0,40}\n[^\n]{0,120}?127\.0\.0\.1:(\d{1,5})\b")
"""In the output of `ray start`; where that is no terminal, a time and a place of its code come first."""
_NODE = re.compile(r"ray_bare\.sub started \(job=\S+ nodes=\d+ node=([A-Za-z0-9][A-Za-z0-9._-]*)\)")
_JOB_ID = re.compile(r"\d+")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")
_PROBE_TIMEOUT_S = 15.0
_RELAY = 'exec 3<>/dev/tcp/127.0.0.1/"$0" || exit 1; { cat <&3; kill $$; } & cat >&3; kill $!'
"""Program of bash that passes its input and output on to a port of its own node.

With --norc: a bash that ssh has started reads the user's file, which may print (bash(1), INVOCATION).
"""


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A local port that leads to a dashboard."""

    url: str
    """Address for one browser, which gets the dashboard's key with it; it counts once."""
    node: str
    """Name of the node that has the dashboard."""
    close: Callable[[], None]
    """Closes the port and its connections."""
    renew: Callable[[], str]
    """Returns another address that counts once."""


@dataclass(frozen=True, slots=True)
class _Dashboard:
    """Where a dashboard listens, on the loopback of its node."""

    node: str
    port: int
    token: str
    """Key to it; empty for a Ray without one."""


def open_dashboard(transport: Transport, run: Run, port: int = 0) -> Tunnel:
    """Open a port of this machine's loopback that leads to the dashboard of a run's Ray.

    It takes up to half a minute: call it on a thread. `port` 0 is any free one.

    Raises:
        InputError: the run has no dashboard (not started, ended, started without one), or the port is in use.
        TransportError: the dashboard does not answer.
    """
    if not isinstance(transport, StreamOpener):
        raise InputError("the machine of this run offers no connections")
    dashboard = _dashboard_of(transport, run)
    open_stream = _answering(_ways(transport, transport, run, dashboard), dashboard)
    cookies = {_COOKIE: dashboard.token} if dashboard.token else {}
    forward = PortForward(open_stream, port, cookies)
    return Tunnel(forward.url, dashboard.node, forward.close, forward.renew)


def _dashboard_of(transport: Transport, run: Run) -> _Dashboard:
    if run.job is None:
        raise InputError(f"run '{run.spec.id}' has no job yet")
    logs = _directory(transport, run.logs, run.job.id)
    head, launcher = (
        _text(transport, posixpath.join(logs, name)) for name in ("ray-head.log", "launcher.log")
    )
    address, node = list(_ADDRESS.finditer(head)), list(_NODE.finditer(launcher))
    if not head or not node:
        raise InputError(
            f"Ray of run '{run.spec.id}' has not started", fix="Its dashboard is there once the head is up."
        )
    if not address or not 0 < int(address[-1][1]) < 65536:
        raise InputError(
            f"run '{run.spec.id}' has no Ray dashboard",
            fix="It has one where Ray's dashboard is installed and RAY_BARE_DASHBOARD is not 0.",
        )
    token = _text(transport, posixpath.join(logs, ".ray-token")).strip()
    if token and not _TOKEN.fullmatch(token):
        raise InputError(f"the key to Ray in {clean(logs)}/.ray-token is damaged")
    return _Dashboard(node[-1][1], int(address[-1][1]), token)


def _directory(transport: Transport, logs: str, job: str) -> str:
    """Return the logs of the job's latest start; Slurm may start a job again (JOB-1-logs, JOB-2-logs)."""
    pattern = re.compile(rf"{re.escape(job)}(?:-(\d{{1,6}}))?-logs")
    starts = (pattern.fullmatch(item.name) for item in transport.listdir(logs))
    numbered = [(int(match[1] or 0), match[0]) for match in starts if match]
    return posixpath.join(logs, max(numbered, default=(0, f"{job}-logs"))[1])


def _text(transport: Transport, path: str) -> str:
    """Return the beginning of a file; nothing where it is not there."""
    if transport.stat(path) is None:
        return ""
    return transport.read(path, 0, _LOG_BYTES).decode("utf-8", errors="replace")


def _ways(
    transport: Transport, opener: StreamOpener, run: Run, dashboard: _Dashboard
) -> Iterator[Callable[[], Stream]]:
    """Return the ways to a dashboard, the cheapest first."""
    node, port = dashboard.node, str(dashboard.port)
    is_local = run.spec.cluster == "local"
    if is_local or node.partition(".")[0] == transport.host.partition(".")[0]:
        yield lambda: opener.connect(dashboard.port)
    job = run.job
    if is_local or job is None or not _JOB_ID.fullmatch(job.id):
        return
    ssh = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-W", f"127.0.0.1:{port}", "--", node)
    yield lambda: opener.converse(ssh)
    srun = ("srun", "--overlap", f"--jobid={job.id}", f"--nodelist={node}", "--nodes=1", "--ntasks=1",
            "--quiet", "bash", "--norc", "-c", _RELAY, port)  # fmt: skip
    yield lambda: opener.converse(srun)


def _answering(ways: Iterator[Callable[[], Stream]], dashboard: _Dashboard) -> Callable[[], Stream]:
    """Return the first way on which a web server answers.

    Raises:
        TransportError: it answers on none.
    """
    problem = ""
    for way in ways:
        try:
            stream = way()
            try:
                stream.settimeout(_PROBE_TIMEOUT_S)
                # Any answer will do; this path needs no key.
                stream.sendall(b"GET /api/version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if stream.recv(4096).startswith(b"HTTP/"):
                    return way
            finally:
                stream.close()
        except TransportError as error:
            problem = f": {error.what}"
        except OSError:
            continue
    raise TransportError(
        f"the Ray dashboard on {dashboard.node}, port {dashboard.port}, does not answer{problem}",
        fix="It ends with the run. Nodes are reached by ssh, or by srun beside the job.",
    )
