"""The app on a laptop in a tmux of its own, and a host with runs of its own behind a relay."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.tmux import Tmux
from tests.ssh.laptop import ROOT, laptop
from tests.ssh.relay import Relay, relayed
from tests.ssh.server import SFTP, Server, running
from tests.tui.fakeslurm import LoginNode


@dataclass
class FarApp:
    """A laptop with the app, and the host `far`."""

    server: Server
    relay: Relay
    environment: dict[str, str]
    directory: Path
    node: LoginNode
    """The host's files and commands."""
    tmux: Tmux

    @property
    def own_runs(self) -> Path:
        """Where the laptop keeps its runs."""
        return self.directory / "laptop-runs"

    def start(self, *argv: str, size: tuple[int, int] = (80, 24)) -> None:
        """Open the app in the terminal."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        program = [sys.executable, str(ROOT / "distill_tui.py"), "--no-mouse"]
        self.tmux.start(["env", "-i", *variables, "TERM=tmux-256color", *program, *argv], size)


@contextmanager
def far_app(directory: Path, *options: str, wrapper: Sequence[str] = ()) -> Iterator[FarApp]:
    """Run a server whose login shell is that of a login node with a Slurm of scripts, a relay, and a tmux."""
    node = LoginNode.at(directory / "node")
    node.runs.mkdir()
    (node.root / ".bash_profile").write_text(f'export PATH="{node.environment["PATH"]}"\n')
    variables = {name: value for name, value in node.environment.items() if name != "PATH"}
    variables["XDG_STATE_HOME"] = str(node.root / "state")
    set_env = "SetEnv " + " ".join(f"{name}={value}" for name, value in variables.items())
    sshd = directory / "sshd"
    sshd.mkdir()
    with running(sshd, SFTP, set_env, *options, wrapper=wrapper) as server, relayed(server.port) as relay:
        environment = laptop(server, directory, port=relay.port)
        environment["LANG"] = "C.UTF-8"
        for name in ("CONFIG", "STATE", "CACHE"):
            environment[f"XDG_{name}_HOME"] = str(directory / "laptop" / name.lower())
        tmux = Tmux(directory / "tmux")
        try:
            yield FarApp(server, relay, environment, directory, node, tmux)
        finally:
            if (directory / "tmux").exists():
                with suppress(AssertionError):  # it has ended with its program
                    _end(tmux)


def _end(tmux: Tmux) -> None:
    """End the terminal, and wait for its program: it must not connect to a server that is gone."""
    program = int(tmux("display-message", "-p", "#{pane_pid}"))
    tmux("kill-server")
    for _ in range(200):
        try:
            os.kill(program, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
