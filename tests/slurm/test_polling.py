"""How often Slurm is asked for the list of runs, counted where its commands are started."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from launcher.job_records import record_job
from launcher.overview.lister import RunLister
from launcher.transports.local import LocalTransport
from tests.slurm.records import job, run_of
from tui.run_list import LIST_S

RUNS = 20


@dataclass
class Commands:
    """Slurm's commands on PATH: each call is noted."""

    folder: Path

    def put(self, name: str, script: str) -> None:
        file = self.folder / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.folder}/calls\n{script}\n')
        file.chmod(0o755)

    def count(self) -> Counter[str]:
        """Return the calls since the last count."""
        calls = self.folder / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return Counter(line.split()[0] for line in lines)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("USER", "u")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Commands(folder)


@dataclass
class Home:
    """The list of runs as the home screen keeps it, with a clock of its own."""

    root: Path
    looked: bool = True
    now: float = 0.0

    def __post_init__(self) -> None:
        transport = LocalTransport()
        for number in range(RUNS):
            run = run_of(self.root, transport, (), f"r{number}")
            record_job(transport, run, job(str(number + 1), f"dt-{number}"))
        self.lister = RunLister(transport, str(self.root), lambda: self.now, lambda: self.looked)

    def minutes(self, count: int, tick_s: float = LIST_S) -> Mapping[str, str]:
        """Let time pass: look as often as the screen does; returns the states."""
        for _ in range(round(count * 60 / tick_s)):
            self.now += tick_s
            self._age(tick_s)
            self.lister.relist()
            while self.lister.poll_next():
                pass
        return {row.id: row.state.value for row in self.lister.rows() if row.state is not None}

    def _age(self, seconds: float) -> None:
        """Make what was asked of Slurm older, instead of waiting."""
        for kept in (self.root.parent / "cache" / "distill-tui" / "slurm-queue").glob("*.json"):
            value = json.loads(kept.read_text())
            for name in ("asked", "tried", "sacct_asked"):
                value[name] = max(value[name] - seconds, 0.0)
            value["missed"] = {name: moment - seconds for name, moment in value["missed"].items()}
            kept.write_text(json.dumps(value))


def listing(left: int) -> str:
    """Return a squeue that no longer knows the first `left` jobs."""
    rows = "\n".join(f"{n}|RUNNING|1|1|4000000000|n1|None|dt" for n in range(left + 1, RUNS + 1))
    return f"cat <<'END'\n{rows}\nEND"


@pytest.mark.long
def test_twenty_runs_on_the_home_screen(tmp_path: Path, commands: Commands) -> None:
    """Two questions a minute in front, one each two minutes behind; fewer while none is answered."""
    commands.put("squeue", listing(left=0))
    commands.put("sacct", "exit 0")
    home = Home(tmp_path / "runs")
    states = home.minutes(2)
    assert set(states.values()) == {"starting"}  # they run, and have written no log yet
    assert commands.count() == {"squeue": 4}
    home.looked = False
    home.minutes(4, tick_s=15)
    assert commands.count() == {"squeue": 2}
    home.looked = True
    commands.put("squeue", "echo 'squeue: error: Unable to contact slurm controller' >&2; exit 1")
    states = home.minutes(8, tick_s=15)
    assert set(states.values()) == {"starting"}  # no answer is not the end
    assert commands.count()["squeue"] <= 5


@pytest.mark.slow
def test_jobs_that_left_the_queue_cost_one_question_a_minute(tmp_path: Path, commands: Commands) -> None:
    commands.put("squeue", listing(left=10))
    commands.put("sacct", "exit 0")  # accounting lags
    home = Home(tmp_path / "runs")
    states = home.minutes(2)
    assert sorted(states.values()) == ["starting"] * 10 + ["unknown"] * 10
    assert commands.count() == {"squeue": 4, "sacct": 2}  # three a minute
    ended = "\n".join(f"{n}|TIMEOUT|1|1|9|n1|0:0|sbatch" for n in range(1, 11))
    commands.put("sacct", f"cat <<'END'\n{ended}\nEND")
    states = home.minutes(2, tick_s=15)
    assert sorted(states.values()) == ["failed"] * 10 + ["starting"] * 10
    commands.count()
    home.minutes(2, tick_s=15)
    assert commands.count() == {"squeue": 4}
