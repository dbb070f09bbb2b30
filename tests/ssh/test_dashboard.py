"""The Ray dashboard of a run on a local port: here, over a real sshd, and through a command on the node."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from launcher.errors import InputError, TransportError
from launcher.monitor.tunnel import open_dashboard
from launcher.runs import Run, load
from launcher.transports.base import Transport
from launcher.transports.local import LocalTransport
from launcher.transports.port_forward import PortForward
from launcher.transports.ssh.transport import SshTransport
from tests.ssh.laptop import ROOT, laptop
from tests.ssh.server import SFTP, Server, running

TOKEN = "0123456789abcdef" * 4
COOKIE = "ray-authentication-token"
NODE = os.uname().nodename.partition(".")[0]


class Page(BaseHTTPRequestHandler):
    """A dashboard: it wants its key, and answers with what was asked."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        cookies = self.headers.get("Cookie") or ""
        allowed = self.path == "/api/version" or f"{COOKIE}={TOKEN}" in cookies
        body = (self.path * (100_000 if self.path == "/big" else 1)).encode() if allowed else b"key?"
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[int]:
    """Return the port of a dashboard."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def run_with(
    root: Path,
    port: int | None,
    *,
    node: str = NODE,
    token: str = TOKEN,
    job: str = "77",
    cluster: str = "slurm",
) -> Run:
    """Return a run whose launcher has started a dashboard at a port; None: one without."""
    directory = root / "20261129-080000-mine"
    logs = directory / "logs" / f"{job}-logs"
    logs.mkdir(parents=True)
    spec = {
        "schema": 1, "id": directory.name, "name": "mine", "kind": "rehearsal", "user": "me", "host": NODE,
        "created": "2026-11-29T08:00:00Z", "recipe": {"source": "mine.yaml"}, "cluster": cluster,
        "nodes": 1, "gpus_per_node": 0,
    }  # fmt: skip
    (directory / "run.json").write_text(json.dumps(spec))
    jobs = [{"id": job, "link": 1, "submitted": "2026-11-29T08:00:00Z"}]
    (directory / "jobs.json").write_text(json.dumps({"schema": 1, "jobs": jobs}))
    (logs / "launcher.log").write_text(f"[x] ray_bare.sub started (job={job} nodes=1 node={node})\n")
    stamp = "2026-11-29 07:53:05,439\tINFO scripts.py:1151 -- "
    shown = "" if port is None else f"{stamp}view the dashboard at \n{stamp}  127.0.0.1:{port}\n"
    (logs / "ray-head.log").write_text(f"Ray runtime started.\n{shown}")
    if token:
        (logs / ".ray-token").write_text(token)
        (logs / ".ray-token").chmod(0o600)
    return load(LocalTransport(), str(directory))


def ask(url: str, cookies: str = "", path: str = "") -> tuple[int, bytes, list[str]]:
    """Return status, body and cookies of an answer."""
    match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", url)
    assert match
    connection = http.client.HTTPConnection("127.0.0.1", int(match[1]), timeout=20)
    connection.request("GET", path or match[2], headers={"Cookie": cookies} if cookies else {})
    answer = connection.getresponse()
    given = [value.partition(";")[0] for name, value in answer.getheaders() if name == "Set-Cookie"]
    body = answer.read()
    connection.close()
    return answer.status, body, given


def browse(url: str) -> str:
    """Open an address as a browser does; return its cookies."""
    status, _, cookies = ask(url)
    assert status == 302
    return "; ".join(cookies)


def test_one_browser_gets_the_dashboard_and_its_key(transport: Transport, tmp_path: Path, page: int) -> None:
    tunnel = open_dashboard(transport, run_with(tmp_path, page))
    try:
        assert TOKEN not in tunnel.url
        assert ask(tunnel.url, path="/nodes")[0] == 403, "another user of this machine"
        cookies = browse(tunnel.url)
        assert ask(tunnel.url, cookies, "/nodes")[:2] == (200, b"/nodes")
        assert len(ask(tunnel.url, cookies, "/big")[1]) == 400_000
        assert ask(tunnel.url)[0] == 403, "the address counts once"
        assert ask(tunnel.url, cookies)[0] == 302, "but the same browser may open it again"
    finally:
        tunnel.close()
    with pytest.raises(ConnectionRefusedError):
        ask(tunnel.url, cookies, "/nodes")


def test_a_node_is_reached_by_a_command(tmp_path: Path, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # `ssh NODE` is refused here; `srun` beside the job is a stand-in that runs its command.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in (("ssh", "exit 255"), ("srun", 'while [ "$1" != bash ]; do shift; done; exec "$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    tunnel = open_dashboard(LocalTransport(), run_with(tmp_path, page, node="n01"))
    try:
        cookies = browse(tunnel.url)
        assert ask(tunnel.url, cookies, "/nodes")[1] == b"/nodes"
        assert tunnel.node == "n01"
    finally:
        tunnel.close()


def test_through_hosts_on_the_way(server: Server, bare_server: Server, tmp_path: Path, page: int) -> None:
    """The login node is behind another host: nothing but the one connection is used."""
    transport = SshTransport(replace(server.host(), jumps=(bare_server.host(),)))
    tunnel = open_dashboard(transport, run_with(tmp_path, page))
    try:
        cookies = browse(tunnel.url)
        assert ask(tunnel.url, cookies, "/nodes")[:2] == (200, b"/nodes")
        assert len(ask(tunnel.url, cookies, "/big")[1]) == 400_000
    finally:
        tunnel.close()
        transport.close()


@pytest.mark.parametrize("way", ["ssh", "srun"])
def test_a_login_node_that_forwards_nothing(tmp_path: Path, page: int, way: str) -> None:
    """Neither the login node passes connections on nor, with srun, the node lets anybody in by ssh.

    The commands are those of the login shell's PATH, whose profile prints a greeting.
    """
    relay = f"exec 3<>/dev/tcp/127.0.0.1/{page}; {{ cat <&3; kill $$; }} & cat >&3"
    bodies = {
        "ssh": f"exec bash --norc -c '{relay}'" if way == "ssh" else "echo 'Access denied' >&2; exit 255",
        "srun": 'while [ "$1" != bash ]; do shift; done; exec "$@"',
    }
    tools, sshd = tmp_path / "bin", tmp_path / "sshd"
    for directory in (tools, sshd):
        directory.mkdir()
    for name, body in bodies.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    for name in (".bashrc", ".bash_profile"):
        (tmp_path / name).write_text(f'echo hello; export PATH="{tools}:$PATH"\n')
    with running(sshd, SFTP, "AllowTcpForwarding no", f"SetEnv HOME={tmp_path}") as far:
        transport = SshTransport(far.host())
        tunnel = open_dashboard(transport, run_with(tmp_path, page, node="n01"))
        try:
            assert ask(tunnel.url, browse(tunnel.url), "/nodes")[1] == b"/nodes"
            assert tunnel.node == "n01"
        finally:
            tunnel.close()
            transport.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda root: run_with(root, None), "has no Ray dashboard"),
        (lambda root: run_with(root, 99999), "has no Ray dashboard"),
        (lambda root: run_with(root, 8265, token="a b\r\nSet-Cookie: x"), "is damaged"),
        (lambda root: run_with(root, 8265, node="-oProxyCommand=x"), "has not started"),
    ],
)
def test_what_is_no_dashboard_is_said(tmp_path: Path, change: Callable[[Path], Run], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_dashboard(LocalTransport(), change(tmp_path))


def test_a_dashboard_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="does not answer"):
        open_dashboard(LocalTransport(), run_with(tmp_path, 1, cluster="local", job="local-1"))


def test_a_port_in_use_is_said(page: int) -> None:
    with pytest.raises(InputError, match=f"port {page} cannot be opened"):
        PortForward(lambda: LocalTransport().connect(page), page)


def test_a_run_that_was_started_again_has_the_last_start(tmp_path: Path, page: int) -> None:
    run = run_with(tmp_path, 1)
    first = Path(run.logs) / "77-logs"
    again = Path(run.logs) / "77-10-logs"
    again.mkdir()
    for name in ("launcher.log", "ray-head.log", ".ray-token"):
        (again / name).write_text((first / name).read_text().replace("127.0.0.1:1", f"127.0.0.1:{page}"))
    tunnel = open_dashboard(LocalTransport(), run)
    tunnel.close()


@pytest.mark.long
def test_the_command_prints_an_address_and_no_key(server: Server, tmp_path: Path, page: int) -> None:
    run = run_with(tmp_path / "runs", page)
    environment = laptop(server, tmp_path)
    argv = [
        sys.executable,
        str(ROOT / "distill_tui.py"),
        "dashboard",
        "--host",
        "far",
        run.directory,
        "--json",
    ]
    process = subprocess.Popen(
        argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd="/",
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    url = json.loads(line)["url"]
    try:
        arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert ask(url, browse(url), "/nodes")[1] == b"/nodes"
    finally:
        process.send_signal(signal.SIGINT)
        rest, messages = process.communicate(timeout=30)
    assert process.returncode == 0, messages
    assert TOKEN not in line + rest + messages + arguments
    assert stat.S_IMODE(Path(run.logs, "77-logs", ".ray-token").stat().st_mode) == 0o600
    with pytest.raises(ConnectionRefusedError):
        ask(url)
