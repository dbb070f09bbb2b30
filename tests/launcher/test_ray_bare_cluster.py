"""`ray_bare.sub` with a real Ray on this host: a whole run, and what is left after every kind of end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from launcher.scripts import script_path

# Ray starts in 10 s on two idle cores, and after a time-out and a second try on busy ones.
pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]
SCRIPT = script_path("ray_bare.sub")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}"

# What a driver finds. Prints one line of JSON, leaves a process behind that hides in a session of its own.
DRIVER = """
import json, os, resource, subprocess, sys
import ray
ray.init(address="auto", log_to_driver=False)
@ray.remote
def hide():
    return subprocess.Popen(["setsid", "sleep", "300"]).pid
hidden = ray.get(hide.remote())
venv = os.environ["RAY_BARE_VENV"]
stranger = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH")}
refused = subprocess.run([venv + "/bin/ray", "status"], env=stranger, capture_output=True, text=True)
print(json.dumps({
    "resources": ray.cluster_resources(),
    "environment": dict(os.environ),
    "directory": os.getcwd(),
    "python": sys.executable,
    "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "listening": [line.split()[1:4] for line in open("/proc/net/tcp")],
    "refused": [refused.returncode, refused.stderr],
    "token mode": oct(os.stat(os.environ["RAY_AUTH_TOKEN_PATH"]).st_mode),
}))
sys.exit(7)
"""


@dataclass
class Launch:
    """A started launcher."""

    process: subprocess.Popen[bytes]
    job: str
    directory: Path

    @property
    def logs(self) -> Path:
        return self.directory / "logs" / f"{self.job}-logs"

    def text(self, name: str = "launcher.log") -> str:
        path = self.logs / name
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for(self, words: str, log: str = "launcher.log", timeout: float = 150) -> None:
        end = time.monotonic() + timeout
        while words not in self.text(log):
            assert time.monotonic() < end, f"no {words!r} in:\n{self.text()}\n{self.text('ray-head.log')}"
            assert self.process.poll() is None, self.text()
            time.sleep(0.05)

    def left(self) -> list[str]:
        """Return the command lines of living processes whose environment or arguments name the job."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                command = (path / "cmdline").read_bytes()
                seen = (path / "environ").read_bytes() + command
                alive = (path / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
            except OSError:
                continue
            if alive and self.job.encode() in seen:
                found.append(command.replace(b"\0", b" ").decode()[:200])
        return found

    def assert_nothing_left(self, within: float = 0) -> None:
        end = time.monotonic() + within
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.1)
        assert left == []
        while list(Path("/tmp").glob(f"rb-*{self.job}*")) and time.monotonic() < end + within:
            time.sleep(0.1)
        assert list(Path("/tmp").glob(f"rb-*{self.job}*")) == []
        assert not (self.logs / ".ray-token").exists()


Starter = Callable[..., Launch]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Return a starter of launchers; they are ended with the test."""
    launches: list[Launch] = []

    def start(command: str, **changes: str) -> Launch:
        ours = ("SLURM", "RAY", "NEMO", "NRL_", "CUDA_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        job = f"t{os.getpid()}-{random.randrange(16**6):06x}"
        settings = {
            "RAY_BARE_JOB_ID": job,
            "RAY_BARE_VENV": sys.prefix,
            "BASE_LOG_DIR": str(tmp_path / "logs"),
            "NEMO_RL_ROOT": str(tmp_path),
            "COMMAND": command,
            "RAY_BARE_DASHBOARD": "0",
        }
        with (tmp_path / f"{job}.out").open("wb") as out:
            process = subprocess.Popen(
                ["bash", str(SCRIPT)],
                env=kept | settings | changes,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        launches.append(Launch(process, job, tmp_path))
        return launches[-1]

    yield start
    for launch in launches:
        if launch.process.poll() is None:
            launch.process.terminate()
            launch.process.wait(timeout=30)


@pytest.mark.long
def test_a_whole_run(start: Starter, tmp_path: Path) -> None:
    (tmp_path / "driver.py").write_text(DRIVER)
    launch = start("python driver.py", RAY_BARE_DASHBOARD="1", LOADEDMODULES="GCC/13:cuDNN/9.5-CUDA-12")
    assert launch.process.wait(timeout=200) == 7, launch.text()
    launch.assert_nothing_left()
    _story_is_told(launch)
    _driver_found_what_it_needs(launch)
    _clock_tells_the_time(launch)


def _story_is_told(launch: Launch) -> None:
    text = launch.text()
    out = (launch.directory / f"{launch.job}.out").read_text()
    assert out == text
    expected = [
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+[01]s\] ray_bare\.sub started \(job={launch.job} nodes=1 node=\S+\)",
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+\d+s\] log dir ready \({launch.logs}\)",
        rf"\[WARNING\]\[{STAMP}\] a cuDNN module is loaded: .*",
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+\d+s\] launching Ray head \+ workers",
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+\d+s\] Ray head GCS up \([0-9.]+:\d+\)",
        rf"\[INFO\]\[{STAMP}\] Number of actors online: 1/1",
        r"All workers connected!",
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+\d+s\] launching driver \(COMMAND\)",
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+\d+s\] driver exited \(exit_code=7\)",
        rf"\[NRL_PHASE\]\[{STAMP}\]\[\+\d+s\] ray_bare\.sub exiting \(exit_code=7\)",
    ]
    told = [line for line in text.splitlines() if "Number of actors online: 0/1" not in line]
    assert len(told) == len(expected), text
    for line, pattern in zip(told, expected, strict=True):
        assert re.fullmatch(pattern, line), line
    for log in launch.logs.iterdir():
        assert "find_victims" not in log.read_text(), f"the script's own text in {log}"


def _driver_found_what_it_needs(launch: Launch) -> None:
    line = next(line for line in launch.text("ray-driver.log").splitlines() if line.startswith('{"res'))
    found = json.loads(line)
    resources, variables = found["resources"], found["environment"]
    assert resources["worker_units"] == resources["slurm_managed_ray_cluster"] == 1
    assert resources["CPU"] >= 4
    assert not [name for name in resources if name.startswith("nrl_tag")]
    assert variables["RAY_ADDRESS"] in launch.text()
    assert variables["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] == "0"
    assert variables["PYTHONUNBUFFERED"] == "1"
    assert found["directory"] == str(launch.directory)
    assert found["python"].startswith(sys.prefix)
    soft, hard = found["files"]
    assert soft == min(65535, hard) or hard == -1
    code, message = found["refused"]
    assert code != 0
    assert "token" in message
    assert found["token mode"] == "0o100600"
    port = int(variables["RAY_ADDRESS"].rpartition(":")[2])
    listening = [local for local, _, state in found["listening"][1:] if state == "0A"]
    assert f"0100007F:{port + 1:04X}" in listening, "the dashboard listens on loopback"
    assert not [local for local in listening if local == f"00000000:{port + 1:04X}"]


def _clock_tells_the_time(launch: Launch) -> None:
    sizes: dict[str, int] = {}
    times: list[int] = []
    for line in launch.text("log-clock.tsv").splitlines():
        seconds, name, size = line.split("\t")
        assert int(size) > sizes.get(name, -1), "only changes are noted"
        sizes[name] = int(size)
        times.append(int(seconds))
    assert times == sorted(times)
    names = ("launcher.log", "ray-head.log", "ray-driver.log")
    assert sizes == {name: (launch.logs / name).stat().st_size for name in names}


@pytest.mark.slow  # the demo is cancelled in tests/e2e
def test_cancelled_while_the_driver_runs(start: Starter) -> None:
    ending = "trap 'sleep 0.5; echo saved; exit 1' TERM"
    launch = start(f"{ending}; echo training; setsid sleep 300 & while :; do sleep 0.1; done")
    launch.wait_for("training", "ray-driver.log")
    begun = time.monotonic()
    launch.process.terminate()
    assert launch.process.wait(timeout=30) == 143
    assert time.monotonic() - begun < 20
    launch.assert_nothing_left()
    assert "saved" in launch.text("ray-driver.log")
    told = launch.text().splitlines()
    assert "received SIGTERM" in told[-3]
    assert "driver exited (exit_code=143)" in told[-2]
    assert "ray_bare.sub exiting (exit_code=143)" in told[-1]


@pytest.mark.slow
def test_killed_while_the_driver_runs(start: Starter) -> None:
    launch = start("echo training; setsid sleep 300 & sleep 300")
    launch.wait_for("training", "ray-driver.log")
    launch.process.kill()
    launch.process.wait(timeout=5)
    launch.assert_nothing_left(within=20)
    assert "ray_bare.sub was killed" in launch.text()


def test_ended_in_the_midst_of_the_start(start: Starter) -> None:
    _end_after(start, signal.SIGTERM, random.uniform(0, 4))


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
def test_ended_at_any_moment_of_the_start(start: Starter, stop: signal.Signals) -> None:
    for moment in range(16):
        _end_after(start, stop, random.uniform(0, 0.4) if moment < 6 else random.uniform(0.4, 10))


def _end_after(start: Starter, stop: signal.Signals, seconds: float) -> None:
    launch = start("sleep 300")
    time.sleep(seconds)
    launch.process.send_signal(stop)
    code = _wait_asking_again(launch.process, stop)
    assert code in {128 + stop, -stop}, f"{code} after {seconds:.3f} s\n{launch.text()}"
    launch.assert_nothing_left(within=20 if stop == signal.SIGKILL else 0)


def _wait_asking_again(process: subprocess.Popen[bytes], stop: signal.Signals) -> int:
    """Return the exit code of a launcher that is asked to stop as `cancel` asks: again while it lives.

    bash loses a trapped signal now and then: SIGINT while it waits for a child; any while it starts `$(…)` or
    `<(…)` (bash 5.2.15 doing nothing else: 22 of 3,000), which the launcher does in its first half second.
    """
    for _ in range(6):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=5)
        process.send_signal(stop)
    return process.wait(timeout=5)


@pytest.mark.slow
def test_head_that_cannot_start(start: Starter) -> None:
    launch = start("true", RAY_BARE_OBJECT_STORE_MEMORY="1000")
    assert launch.process.wait(timeout=120) == 3
    launch.assert_nothing_left()
    told = launch.text().splitlines()
    assert "before the cluster was ready" in told[-2]
    assert str(launch.logs / "ray-head.log") in told[-2]
    assert told[-3].startswith("  | ")
    assert "ray_bare.sub exiting (exit_code=3)" in told[-1]


@pytest.mark.slow
def test_readiness_has_its_time(start: Starter) -> None:
    launch = start("true", RAY_BARE_WORKERS_TIMEOUT="2")
    assert launch.process.wait(timeout=120) == 3
    launch.assert_nothing_left()
    assert "only 0 of 1 worker units joined within 2 s" in launch.text().splitlines()[-2]
    assert "RAY_BARE_WORKERS_TIMEOUT" in launch.text().splitlines()[-2]


@pytest.mark.slow
def test_lost_head_ends_the_run(start: Starter) -> None:
    launch = start("echo training; sleep 300")
    launch.wait_for("training", "ray-driver.log")
    pattern = f"gcs_server.*rb-{os.getuid()}-{launch.job}"
    subprocess.run(["pkill", "-KILL", "-f", pattern], check=True)
    assert launch.process.wait(timeout=120) == 3
    launch.assert_nothing_left()
    assert "while the driver ran" in launch.text()


@pytest.mark.slow
def test_a_time_out_of_ray_itself_is_tried_again(start: Starter, tmp_path: Path) -> None:
    home = tmp_path / "venv" / "bin"
    home.mkdir(parents=True)
    (home / "python").write_text(f'#!/bin/sh\nexec {sys.prefix}/bin/python "$@"\n')
    # Ray's own 30 s cannot be shortened: the first start fails as such a time-out does.
    (home / "ray").write_text(
        f"#!/bin/sh\n[ $1 != start ] || [ -e {tmp_path}/tried ] || {{ touch {tmp_path}/tried; "
        "echo 'Exception: The current node timed out during startup.'; exit 1; }\n"
        f'exec {sys.prefix}/bin/ray "$@"\n'
    )
    for name in ("python", "ray"):
        (home / name).chmod(0o755)
    launch = start("exit 5", RAY_BARE_VENV=str(tmp_path / "venv"))
    assert launch.process.wait(timeout=200) == 5, launch.text()
    launch.assert_nothing_left()
    assert "did not register in time (try 1 of 3)" in launch.text()
    assert launch.text().count("launching Ray head + workers") == 2
