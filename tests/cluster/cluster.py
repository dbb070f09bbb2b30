"""A real Slurm cluster on this machine: Debian's Slurm with slurmdbd, MariaDB and munge, and fake GPUs.

Nothing is mocked but the hardware: GPUs are device files without a driver. Needs root and cgroup version 1.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.machines import ClusterError, Machine, call, remove_groups, wait_until
from tests.cluster.settings import ASSOCIATIONS, GPUS, Settings, files

PACKAGES = (
    "slurm-wlm", "slurm-wlm-basic-plugins", "slurmdbd", "slurm-client", "mariadb-server", "munge",
    "iproute2", "procps",
)  # fmt: skip
DAEMONS = ("munged", "mariadbd", "slurmdbd", "slurmctld")


def obstacle() -> str | None:
    """Return why there can be no test cluster here; None where nothing speaks against it."""
    if os.geteuid() != 0:
        return "needs root"
    if not Path("/sys/fs/cgroup/freezer").is_dir():
        return "needs cgroup version 1 with freezer and memory"
    if shutil.which("apt-get") is None and shutil.which("slurmctld") is None:
        return "needs Debian's slurm-wlm, slurmdbd, mariadb-server and munge"
    return None


@dataclass(frozen=True)
class Cluster:
    """The test cluster. Its state is on disk, so any process can use it."""

    settings: Settings = field(default_factory=Settings)

    @property
    def login(self) -> Machine:
        """The login node."""
        return Machine(self.settings, self.settings.login)

    @property
    def nodes(self) -> tuple[Machine, ...]:
        """The compute nodes."""
        return tuple(Machine(self.settings, name) for name in self.settings.nodes)

    def node(self, name: str) -> Machine:
        """Return a compute node."""
        return next(machine for machine in self.nodes if machine.name == name)

    def up(self) -> None:
        """Bring everything up that is not; fine to call at any time, also after everything was killed."""
        with self._lock():
            _install()
            changed = self._write_files()
            self._make_network()
            fresh = self.login.pid is None
            if fresh:
                for stale in (self.settings.state / "run" / "daemons").glob("*"):
                    stale.unlink()
            self.login.boot()
            if changed and not fresh:
                self.stop("slurmctld")
                for node in self.nodes:
                    self.stop_slurmd(node)
            for daemon in DAEMONS:
                self._start(daemon)
            for node in self.nodes:
                self.boot(node)
            self._settle(fresh=fresh)

    def down(self, *, purge: bool = False) -> None:
        """Stop everything; `purge` also forgets the accounting and the user's files."""
        with self._lock():
            if self.login.pid is not None:
                for daemon in reversed(DAEMONS):
                    self.stop(daemon)
            for machine in (*self.nodes, self.login):
                machine.power_off()
                if Path("/run/netns", machine.netns).exists():
                    call("ip", "netns", "del", machine.netns)
            remove_groups(self.settings)
            if purge and (self.settings.state / "run").is_dir():
                shutil.rmtree(self.settings.state)

    def boot(self, node: Machine) -> None:
        """Start a node and its slurmd."""
        node.boot()
        if not self._alive(node, self.settings.state / "run" / f"slurmd-{node.name}.pid"):
            node.run("slurmd")

    def stop_slurmd(self, node: Machine) -> None:
        """Stop a node's slurmd; its jobs go on."""
        if node.pid is not None:
            self._end(node, self.settings.state / "run" / f"slurmd-{node.name}.pid")

    def stop(self, daemon: str) -> None:
        """Stop a daemon of the login node."""
        self._end(self.login, self._pid_file(daemon))

    def start(self, daemon: str) -> None:
        """Start a daemon of the login node again."""
        self._start(daemon)

    def running(self, daemon: str) -> bool:
        """Return whether a daemon of the login node runs."""
        return self._alive(self.login, self._pid_file(daemon))

    def signal(self, daemon: str, name: str) -> None:
        """Signal a daemon; STOP makes it hang (its port still takes connections) until CONT."""
        self.login.run("kill", f"-{name}", self._pid_file(daemon).read_text().strip())

    def user_command(
        self, *argv: str, directory: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """Return the command that runs `argv` as the user on the login node."""
        settings = self.settings
        variables = {
            "HOME": str(settings.home), "USER": settings.user, "LOGNAME": settings.user, "SHELL": "/bin/bash",
            "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "TERM": "xterm-256color", **(environment or {}),
        }  # fmt: skip
        assignments = [f"{name}={value}" for name, value in variables.items()]
        return self.login.inside(
            "-i", *assignments, *argv, user=settings.user, directory=directory or settings.home
        )

    def as_user(self, *argv: str, check: bool = True, timeout_s: float = 60) -> str:
        """Run a command as the user on the login node."""
        return call(*self.user_command(*argv), check=check, timeout_s=timeout_s)

    def cancel_all(self) -> None:
        """Cancel all jobs and wait until the nodes are free."""
        self.login.run("scancel", "--user", self.settings.user)
        wait_until(lambda: not self.login.run("squeue", "-h"), 40, "jobs did not end")

    # ------------------------------------------------------------ parts

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with Path(f"{self.settings.state}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _write_files(self) -> bool:
        """Make directories, device files and configuration; returns whether the configuration changed."""
        state = self.settings.state
        owners = {
            "munge": "munge",
            "mysql": "mysql",
            "spool": "slurm",
            "log": "slurm",
            "run/daemons": "slurm",
        }
        for name in (
            "etc/slurm",
            "run",
            "machines",
            "dev",
            *owners,
            str(self.settings.home.relative_to(state)),
        ):
            (state / name).mkdir(parents=True, exist_ok=True)
            (state / name).chmod(0o755)
        for name, owner in owners.items():
            shutil.chown(state / name, owner, owner)
        os.chown(self.settings.home, self.settings.uid, self.settings.uid)
        for number in range(GPUS):
            device = state / "dev" / f"nvidia{number}"
            if not device.exists():
                os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(195, number))
                device.chmod(0o666)
        changed = False
        for name, text in files(self.settings).items():
            path = state / "etc" / name
            if not path.exists() or path.read_text() != text:
                path.write_text(text)  # in place: it is bind-mounted
                changed = True
            if name.endswith("slurmdbd.conf"):
                path.chmod(0o600)
                shutil.chown(path, "slurm", "slurm")
        return changed

    def _make_network(self) -> None:
        """Connect all machines to a bridge that lies in the login node's namespace."""
        login = self.login.netns
        if not Path("/run/netns", login).exists():
            call("ip", "netns", "add", login)
            call("ip", "-n", login, "link", "add", "bridge", "type", "bridge")
            call(
                "ip",
                "-n",
                login,
                "addr",
                "add",
                f"{self.settings.address(self.login.name)}/24",
                "dev",
                "bridge",
            )
            call("ip", "-n", login, "link", "set", "bridge", "up")
        for node in self.nodes:
            if Path("/run/netns", node.netns).exists():
                continue
            call("ip", "netns", "add", node.netns)
            call(
                "ip",
                "-n",
                login,
                "link",
                "add",
                node.name,
                "type",
                "veth",
                "peer",
                "name",
                "ib0",
                "netns",
                node.netns,
            )
            call("ip", "-n", login, "link", "set", node.name, "master", "bridge", "up")
            call(
                "ip", "-n", node.netns, "addr", "add", f"{self.settings.address(node.name)}/24", "dev", "ib0"
            )
            call("ip", "-n", node.netns, "link", "set", "ib0", "up")

    def _pid_file(self, daemon: str) -> Path:
        return self.settings.state / "run" / "daemons" / f"{daemon}.pid"

    def _alive(self, machine: Machine, pid_file: Path) -> bool:
        try:
            machine.run("kill", "-0", pid_file.read_text().strip())
        except (OSError, ClusterError):
            return False
        return True

    def _end(self, machine: Machine, pid_file: Path) -> None:
        if self._alive(machine, pid_file):
            machine.run("kill", "-CONT", pid_file.read_text().strip())
            machine.run("kill", "-TERM", pid_file.read_text().strip())
            wait_until(lambda: not self._alive(machine, pid_file), 30, f"{pid_file.stem} did not stop")

    def _start(self, daemon: str) -> None:
        if self._alive(self.login, self._pid_file(daemon)):
            return
        self._pid_file(daemon).unlink(missing_ok=True)
        getattr(self, f"_start_{daemon}")()

    def _start_munged(self) -> None:
        folder = self.settings.state / "munge"
        key = folder / "munge.key"
        if not key.exists():
            key.write_bytes(os.urandom(128))
            key.chmod(0o400)
            shutil.chown(key, "munge", "munge")
        pid_file = folder / "munged.pid"
        for stale in (pid_file, *folder.glob("munge.socket*")):
            stale.unlink(missing_ok=True)
        self.login.run(
            "setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups", "munged", "--force",
            f"--key-file={key}", f"--pid-file={pid_file}", f"--log-file={folder}/munged.log",
            f"--seed-file={folder}/munged.seed", "--socket=/run/munge/munge.socket.2",
        )  # fmt: skip
        self._pid_file("munged").write_text(pid_file.read_text())

    def _start_mariadbd(self) -> None:
        folder = self.settings.state / "mysql"
        if not (folder / "data" / "mysql").is_dir():
            call("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={folder}/data",
                 "--auth-root-authentication-method=socket", "--skip-test-db")  # fmt: skip
        command = self.login.inside(
            "setsid", "--fork", "mariadbd", "--no-defaults", "--user=mysql", f"--datadir={folder}/data",
            f"--socket={folder}/socket", f"--pid-file={folder}/pid", "--bind-address=127.0.0.1",
            "--skip-log-bin", "--performance-schema=OFF", "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900", "--max-connections=40",
        )  # fmt: skip
        with (self.settings.state / "log" / "mariadbd.log").open("ab") as log:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True)
        wait_until(lambda: self._sql("select 1"), 30, "MariaDB did not start")
        self._pid_file("mariadbd").write_text((folder / "pid").read_text())
        for statement in (
            "create database if not exists slurm_acct_db",
            "create user if not exists slurm@'127.0.0.1' identified by 'slurm'",
            "create user if not exists slurm@localhost identified by 'slurm'",
            "grant all on slurm_acct_db.* to slurm@'127.0.0.1'",
            "grant all on slurm_acct_db.* to slurm@localhost",
        ):
            if not self._sql(statement):
                raise ClusterError(f"MariaDB refused: {statement}")

    def _sql(self, statement: str) -> bool:
        socket = self.settings.state / "mysql" / "socket"
        done = subprocess.run(
            ["mariadb", "--no-defaults", "-uroot", "-S", str(socket), "-e", statement],
            capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode == 0

    def _start_slurmdbd(self) -> None:
        self.login.run("slurmdbd")
        wait_until(lambda: self._answers("sacctmgr", "-n", "show", "cluster"), 30, "slurmdbd does not answer")
        known = self.login.run(
            "sacctmgr", "-nP", "show", "assoc", f"user={self.settings.user}", "format=account"
        )
        if not known.strip():
            names = {"cluster": self.settings.name, "user": self.settings.user}
            for arguments in ASSOCIATIONS:
                # "Nothing modified" also counts as a failure.
                self.login.run("sacctmgr", "-iQ", *(part.format(**names) for part in arguments), check=False)

    def _start_slurmctld(self) -> None:
        self.login.run("slurmctld")
        wait_until(lambda: self._answers("scontrol", "ping"), 20, "slurmctld does not answer")

    def _answers(self, *argv: str) -> bool:
        try:
            self.login.run("timeout", "5", *argv)
        except ClusterError:
            return False
        return True

    def _settle(self, *, fresh: bool) -> None:
        """Wait until all nodes work; jobs that a killed slurmctld still believes in are cancelled."""
        ghosts = self.login.run("squeue", "-h", "-o", "%A").split() if fresh else []
        if ghosts:
            self.login.run("scancel", *sorted(set(ghosts)), check=False)
        begun = time.monotonic()
        while not self._all_ready():
            if time.monotonic() - begun > 45:
                raise ClusterError(f"nodes are not ready: {self.login.run('sinfo', '-hN', '-o', '%N %T')}")
            if time.monotonic() - begun > 5:
                for name in self.settings.nodes:
                    self.login.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
            time.sleep(0.3)

    def _all_ready(self) -> bool:
        rows = {tuple(row.split()) for row in self.login.run("sinfo", "-hN", "-o", "%N %T").splitlines()}
        ready = {row[0] for row in rows if row[1] in ("idle", "allocated", "mixed", "completing")}
        return ready == set(self.settings.nodes)


def _install() -> None:
    """Install what is missing, without letting the packages start their own daemons."""
    listed = call("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES, check=False)
    missing = [name for name in PACKAGES if f"{name} installed" not in listed.splitlines()]
    if not missing:
        return
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        call("apt-get", "update", "-qq", timeout_s=120)
        call("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq",
             "--no-install-recommends", *missing, timeout_s=540)  # fmt: skip
    finally:
        if ours:
            policy.unlink()
