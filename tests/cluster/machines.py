"""The machines of the test cluster: each has namespaces of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.settings import Settings

CONTROLLERS = ("memory", "freezer", "cpuset", "devices", "cpuacct", "cpu", "pids")
CHECKOUT = Path(__file__).resolve().parent.parent.parent
_PREFIX = "dtc-"


class ClusterError(Exception):
    """The test cluster cannot be brought into the state that was asked for."""


def call(*argv: str | Path, check: bool = True, timeout_s: float = 60) -> str:
    """Run a command; returns what it printed, raises ClusterError when it fails."""
    done = subprocess.run(
        [str(part) for part in argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    if check and done.returncode:
        raise ClusterError(f"{' '.join(map(str, argv))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def wait_until(holds: Callable[[], bool], within_s: float, what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > end:
            raise ClusterError(f"{what} within {within_s:.0f} s")
        time.sleep(0.1)


@dataclass(frozen=True)
class Machine:
    """One machine."""

    settings: Settings
    name: str

    @property
    def netns(self) -> str:
        """Name of its network namespace."""
        return f"{_PREFIX}{self.name}"

    @property
    def is_login(self) -> bool:
        """Whether it is the login node."""
        return self.name == self.settings.login

    @property
    def pid(self) -> int | None:
        """Its process 1 as the host numbers it; None when the machine is off."""
        try:
            pid, started = map(int, (self.settings.state / "run" / f"{self.name}.pid").read_text().split())
        except (OSError, ValueError):
            return None
        # A process that is being killed loses its namespaces before it is gone.
        alive = _started(pid) == started and Path(f"/proc/{pid}/ns/cgroup").exists()
        return pid if alive else None

    @staticmethod
    def _visible() -> set[str]:
        return {str(CHECKOUT), sys.base_prefix, sys.prefix}

    def shows_checkout(self) -> bool:
        """Return whether users of the running machine reach this checkout and its Python."""
        return all(Path(f"/proc/{self.pid}/root{path}").exists() for path in self._visible())

    def boot(self) -> None:
        """Start the machine; nothing happens when it runs."""
        if self.pid is not None:
            return
        run = self.settings.state / "run"
        for stale in (
            run / f"{self.name}.ready",
            run / f"{self.name}.outer",
            run / f"slurmd-{self.name}.pid",
        ):
            stale.unlink(missing_ok=True)
        visible = self._visible()
        enter = (
            'echo $$ >"$0"; for group in $GROUPS_TO_JOIN; do echo $$ >"$group/cgroup.procs"; done; exec "$@"'
        )
        with (self.settings.state / "log" / f"machine-{self.name}.log").open("ab") as log:
            subprocess.run(
                ["setsid", "--fork", "sh", "-c", enter, str(run / f"{self.name}.outer"),
                 "nsenter", f"--net=/run/netns/{self.netns}",
                 "unshare", "--cgroup", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "bash", str(Path(__file__).with_name("machine.sh")), str(self.settings.state), self.name,
                 "login" if self.is_login else "node", *sorted(visible)],
                env={"PATH": os.environ["PATH"], "GROUPS_TO_JOIN": " ".join(self._make_groups())},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
            )  # fmt: skip
        wait_until((run / f"{self.name}.ready").exists, 15, f"{self.name} did not start (see {log.name})")
        outer = (run / f"{self.name}.outer").read_text().strip()
        (inner,) = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        (run / f"{self.name}.pid").write_text(f"{inner} {_started(int(inner))}\n")

    def power_off(self) -> None:
        """End everything on the machine at once, as a power cut does."""
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.pid is None, 10, f"{self.name} did not end")
        (self.settings.state / "run" / f"slurmd-{self.name}.pid").unlink(missing_ok=True)

    def inside(self, *argv: str, user: str | None = None, directory: str | Path = "/") -> list[str]:
        """Return the command that runs `argv` on the machine."""
        pid = self.pid
        if pid is None:
            raise ClusterError(f"{self.name} is off")
        command = ["nsenter", "-t", str(pid), "-m", "-u", "-n", "-p", "-C", "--"]
        if user is not None:
            uid = str(self.settings.uid)
            command += ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"]
        return [*command, "env", f"--chdir={directory}", *argv]

    def run(self, *argv: str, check: bool = True, timeout_s: float = 60) -> str:
        """Run a command on the machine as root."""
        return call(*self.inside(*argv), check=check, timeout_s=timeout_s)

    def processes(self, user: str) -> list[str]:
        """Return the command lines of a user's processes on the machine."""
        listed = self.run("ps", "-u", str(self.settings.uid if user == self.settings.user else user),
                          "-o", "pid=,args=", check=False)  # fmt: skip
        return [line.strip() for line in listed.splitlines()]

    def plug(self, *, in_: bool) -> None:
        """Put the network cable in, or take it out."""
        call("ip", "-n", f"{_PREFIX}{self.settings.login}", "link", "set", self.name, "up" if in_ else "down")

    def _make_groups(self) -> Sequence[str]:
        """Make the machine's own cgroups (version 1) below this process's; the login node needs none."""
        if self.is_login:
            return ()
        made = []
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                group = Path(f"/sys/fs/cgroup/{controller}{path}") / f"{_PREFIX}{self.name}"
                if controller not in CONTROLLERS or not group.parent.is_dir():
                    continue
                group.mkdir(exist_ok=True)
                if controller == "cpuset":
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        (group / name).write_text((group.parent / name).read_text())
                made.append(str(group))
        noted = self.settings.state / "run" / "cgroups"
        with noted.open("a") as file:
            file.writelines(f"{group}\n" for group in made)
        return made


def remove_groups(settings: Settings) -> None:
    """Remove the cgroups of machines that are off."""
    noted = settings.state / "run" / "cgroups"
    if not noted.exists():
        return
    for group in sorted(set(noted.read_text().split())):
        for _ in range(20):
            for directory, _, _ in os.walk(group, topdown=False):
                with suppress(OSError):
                    os.rmdir(directory)
            if not Path(group).exists():
                break
            time.sleep(0.1)
    noted.unlink()


def _started(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])
