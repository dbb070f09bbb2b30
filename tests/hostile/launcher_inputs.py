"""Generators of directories in which others have planted what the launcher of a job meets: links, keys, logs."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from launcher.scripts import script_path

USER, OTHER = 65534, 12345
"""Numbers of the user whose job it is, and of somebody else on the machine."""
PLANTED = "planted-key-0000"
_SCRIPT = """
source {script}
JOB_ID=local-7
make_log_dir
TMP=/nosuch/t VENV=/nosuch/v GRACE=5 BLOCK=10000 AUTH=1 HEAD_IP=127.0.0.1 COMMAND=true
export_settings
echo ready
"""


@dataclass(frozen=True)
class PlantedDirectory:
    """A directory of logs as others left it."""

    base_mode: int
    base_owner: int
    log_dir: str
    """Kind of the job's own directory before it starts: none, own, foreign, link, dangling, file."""
    log_dir_mode: int
    log: str
    """Kind of launcher.log in it: none, file, foreign, link, dangling."""
    key: str
    """Kind of the file of the cluster's key: none, foreign, link, directory, dangling."""
    umask: int

    def prepare(self, directory: Path) -> Path:
        """Make it; returns the file of the user that must not change."""
        directory.mkdir()
        directory.chmod(0o755)
        victim = directory / "victim"
        victim.write_text("kept")
        os.chown(victim, USER, USER)
        elsewhere = directory / "elsewhere"
        elsewhere.mkdir()
        os.chown(elsewhere, USER, USER)
        base = directory / "base"
        base.mkdir()
        base.chmod(self.base_mode)
        logs = base / "local-7-logs"
        if self.log_dir in ("own", "foreign"):
            logs.mkdir()
            self._plant(logs, victim)
            logs.chmod(self.log_dir_mode)
            os.chown(logs, USER if self.log_dir == "own" else OTHER, OTHER)
        elif self.log_dir == "file":
            logs.touch()
        elif self.log_dir != "none":
            logs.symlink_to(elsewhere if self.log_dir == "link" else directory / "nowhere")
            self._plant(elsewhere, victim)
        os.chown(base, self.base_owner, self.base_owner)
        return victim

    def _plant(self, logs: Path, victim: Path) -> None:
        for name, kind in (("launcher.log", self.log), (".ray-token", self.key)):
            path = logs / name
            if kind in ("file", "foreign"):
                path.write_text(PLANTED)
                path.chmod(0o666)
                os.chown(path, USER if kind == "file" else OTHER, OTHER)
            elif kind == "directory":
                path.mkdir()
            elif kind != "none":
                path.symlink_to(victim if kind == "link" else victim.with_name("nowhere"))


def planted_directories(count: int, *, seed: int) -> Iterator[PlantedDirectory]:
    """Yield directories."""
    random = Random(seed)
    for _ in range(count):
        yield PlantedDirectory(
            random.choice((0o777, 0o1777, 0o755, 0o2777)),
            random.choice((USER, OTHER)),
            random.choice(("none", "none", "own", "own", "foreign", "link", "dangling", "file")),
            random.choice((0o777, 0o755, 0o700, 0o775, 0o1777)),
            random.choice(("none", "none", "file", "foreign", "link", "dangling")),
            random.choice(("none", "foreign", "link", "directory", "dangling")),
            random.choice((0o000, 0o002, 0o022, 0o077)),
        )


def wrong_with_start(planted: PlantedDirectory, directory: Path) -> Iterator[str]:
    """Let the launcher make its directory and key there; yield what is wrong afterwards."""
    victim = planted.prepare(directory)
    script = shutil.copy(script_path("ray_bare.sub"), directory)  # the user may not reach this checkout
    done = subprocess.run(
        ["bash", "-c", _SCRIPT.format(script=script)],
        env={"PATH": os.environ["PATH"], "BASE_LOG_DIR": str(directory / "base"), "RAY_BARE_SOURCE_ONLY": "1", "HOME": "/nosuch"},
        user=USER, group=USER, extra_groups=[], umask=planted.umask, cwd="/", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if victim.read_text() != "kept":
        yield f"another file was written to: {victim.read_text()!r}"
    if (directory / "nowhere").exists():
        yield "a dangling link was followed"
    logs = directory / "base" / "local-7-logs"
    if done.returncode != 0:
        if done.returncode not in (2, 3) or "[ERROR]" not in done.stdout + done.stderr:
            yield f"exit {done.returncode} without words: {done.stdout!r} {done.stderr!r}"
        return
    status = logs.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != USER or status.st_mode & 0o022:
        yield f"it starts in a directory of {status.st_uid} with mode {status.st_mode:o}"
    key = (logs / ".ray-token").lstat()
    if not stat.S_ISREG(key.st_mode) or key.st_uid != USER or stat.S_IMODE(key.st_mode) != 0o600:
        yield f"the key is a file of {key.st_uid} with mode {key.st_mode:o}"
    elif PLANTED in (logs / ".ray-token").read_text():
        yield "the key is the planted one"
    written = logs / "launcher.log"  # by a process beside the script, which has ended already
    for _ in range(200):
        if os.path.lexists(written):
            break
        time.sleep(0.05)
    log = written.lstat()
    if not stat.S_ISREG(log.st_mode) or log.st_uid != USER:
        yield f"the log is a file of {log.st_uid} with mode {log.st_mode:o}"
