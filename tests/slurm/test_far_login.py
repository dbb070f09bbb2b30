"""The whole path over a real sshd that wants a key with a passphrase, then a code: each is asked for once.

From the laptop's side by commands, and by keys in a terminal of 80x24; no secret stands in a command line of
any process on either side, nor in what is written.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.far_cluster import FarCluster, far_cluster
from tests.slurm.test_over_ssh import submission
from tests.slurm.tmux import Tmux
from tests.slurm.user import RECIPE, SHORT, User
from tests.ssh.argv_watch import ArgvWatch, files_with, watching_argv
from tests.ssh.laptop import ROOT
from tests.ssh.second_factor import SECRET, code

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(900)]
PASSPHRASE, TOKEN = "canary passphrase 2971", "hf_canary_of_the_login_shell_4711"
LONG = ("distillation.max_num_steps=400", "distillation.val_period=0", "checkpointing.save_period=2")


@pytest.fixture
def argv_watch() -> Iterator[ArgvWatch]:
    """Watch the command lines of all processes during a test."""
    with watching_argv([PASSPHRASE, TOKEN, SECRET]) as watch:
        yield watch


@pytest.fixture
def far(user: User, tmp_path: Path) -> Iterator[FarCluster]:
    """Return the laptop; the user's recipe is on the login node, and a key in its shell."""
    shutil.copy(RECIPE, user.place / "mine.yaml")
    os.chown(user.place / "mine.yaml", user.cluster.settings.uid, user.cluster.settings.uid)
    variables = {
        "DISTILL_TUI_RUNS": str(user.runs), "XDG_CONFIG_HOME": str(user.place / "config"),
        "XDG_CACHE_HOME": str(user.place / "cache"), "XDG_STATE_HOME": str(user.place / "state"),
        "RAY_BARE_VENV": sys.prefix, "HF_TOKEN": TOKEN,
    }  # fmt: skip
    with far_cluster(user, tmp_path, variables, passphrase=PASSPHRASE, second_factor=True) as one:
        yield one


class Session:
    """A laptop whose commands share one connection."""

    def __init__(self, far: FarCluster) -> None:
        argv = [*far.wrapper, sys.executable, "-m", "tests.ssh.laptop_session"]
        self._process = subprocess.Popen(
            argv, cwd=ROOT, env=far.environment | {"PASSPHRASE": PASSPHRASE}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.prompts: list[str] = []

    def __call__(self, *argv: str, expected: int = 0) -> str:
        """Run a command; return what it printed, and its messages."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(argv) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        self.prompts = reply["prompts"]
        assert reply["code"] == expected, (argv, reply)
        return str(reply["out"] if expected == 0 else reply["err"])

    def json(self, *argv: str) -> Any:
        """Run a command that prints JSON."""
        return json.loads(self(*argv, "--json"))

    def close(self) -> None:
        """End it."""
        with self._process:  # closes its pipes, and waits
            pass
        assert self._process.returncode == 0


def no_secret_left(user: User, tmp_path: Path, watch: ArgvWatch) -> None:
    """Check what was written on both sides, and what processes were seen with."""
    assert watch.held == {}
    assert len(watch.seen) > 50
    home = user.place / "sshd"  # the test's own: the server's settings, the seed of the codes
    state = user.cluster.settings.state
    found = files_with(watch.secrets, user.place, tmp_path, state / "spool", state / "log")
    left = {path: held for path, held in found.items() if not path.is_relative_to(home)}
    # The run's own file of keys, for the user's eyes alone, is what its driver gets them from.
    assert {path.name for path in left} <= {"secrets.env"}, left
    assert all(path.stat().st_mode & 0o077 == 0 for path in left)
    log = (home / "log").read_text(errors="replace")
    assert not [secret for secret in (PASSPHRASE, SECRET) if secret in log]


def test_the_whole_path_with_one_login(
    user: User, far: FarCluster, tmp_path: Path, argv_watch: ArgvWatch
) -> None:
    here = json.loads(user("detect", "--json").stdout)
    session = Session(far)
    assert session.json("detect", "--host", "far") == here
    recipe = str(user.place / "mine.yaml")
    session("recipe", "set", f"far:{recipe}", "checkpointing.save_period", "2")
    assert session("recipe", "get", f"far:{recipe}", "checkpointing.save_period").strip() == "2"
    assert session.json("check", "--host", "far", recipe)["checks"]

    sent = session.json(*submission(user, *SHORT)[:-1])
    events = session("watch", "--host", "far", "--json", sent["run"])
    assert '"completed"' in events
    state = session.json("watch", "--host", "far", "--once", sent["run"])
    assert (state["state"], state["metrics"]["step"]) == ("completed", 6)
    assert session.json("report", "--host", "far", sent["run"])["state"] == "completed"
    session("fetch", sent["run"], "--host", "far", "--to", str(tmp_path / "copies"))
    assert (tmp_path / "copies" / sent["run"] / "report.md").exists()

    long = session.json(*submission(user, *LONG)[:-1])
    user.wait(long["run"], lambda state: (state["metrics"]["step"] or 0) >= 3, 240)
    session("cancel", "--host", "far", long["run"])
    assert session.json("watch", "--host", "far", "--once", long["run"])["state"] == "cancelled"
    again = session.json("resume", "--host", "far", long["run"])
    assert again["resumes"]["step"] >= 2
    session("cancel", "--host", "far", long["run"])
    assert len(user.jobs()) == 3
    assert [prompt.partition(" ")[0] for prompt in session.prompts] == ["Passphrase", "One-time"]
    session.close()
    no_secret_left(user, tmp_path, argv_watch)


def test_the_whole_path_by_keys(
    user: User, far: FarCluster, tmp_path: Path, tmux: Tmux, argv_watch: ArgvWatch
) -> None:
    variables = [f"{name}={value}" for name, value in far.environment.items()]
    program = [sys.executable, str(ROOT / "distill_tui.py"), "--no-mouse"]
    opened = ["new", str(user.place / "mine.yaml"), "--host", "far"]
    tmux.start(
        [*far.wrapper, "env", "-i", *variables, "LANG=C.UTF-8", "TERM=tmux-256color", *program, *opened]
    )
    tmux.see("Log in to far", "Passphrase")
    tmux("send-keys", "-l", PASSPHRASE)
    tmux.press("Enter")
    tmux.see("Log in to far", "One-time password")
    tmux("send-keys", "-l", code())
    tmux.press("Enter")
    tmux.see("1 Cluster", "far", "booster", limit_s=60)
    tmux.press("Down", "Down", "Down", "Down", "Right")
    tmux.see("‹ light ›")
    tmux.press("NPage")
    tmux.see("‹ training ›")
    tmux.press("Left")
    tmux.see("‹ rehearsal ›")
    tmux.press("NPage")
    tmux.see("Nodes", "00:10:00")
    tmux.press("NPage")
    tmux.see("rehearsal of", limit_s=60)
    tmux.press("s")
    tmux.see("Submit?", limit_s=60)
    tmux.press("y")
    tmux.see("far: ", "All workers connected", limit_s=120)
    tmux.see("✓ Completed", "✓ completed", limit_s=200)
    (run,) = user.runs.glob("2*")
    assert user.state(run.name)["state"] == "completed"
    tmux.press("b")
    tmux.see("✓ completed", "rehearsal", limit_s=60)
    tmux.press("i")
    tmux.see(f"{run.name}: completed", limit_s=60)  # in the pager
    tmux.press("q")
    tmux.see("n new")
    # A second one, which is stopped and goes on.
    sent = user.submit(*LONG, nodes=1)
    user.wait(sent["run"], lambda state: (state["metrics"]["step"] or 0) >= 3, 240)
    tmux.see("2 runs", limit_s=90)
    tmux.until(lambda text: "● running" in text, "it runs", 90)
    tmux.press("Home", "Enter")
    tmux.see("● running", "c cancel", limit_s=60)
    tmux.press("c")
    tmux.see("Cancel this run?", limit_s=60)
    tmux.press("y")
    tmux.see("⊘ cancelled", limit_s=120)
    tmux.press("r")
    tmux.see("Resume", limit_s=60)
    tmux.press("y")
    tmux.until(lambda text: "● running" in text or "◌ " in text, "it goes on", 120)
    assert (Path(sent["dir"]) / "jobs.json").read_text().count('"submitted"') == 2
    assert len([path for path in (user.place / "sshd" / "log").read_text().splitlines()
                if "Accepted keyboard-interactive" in path]) == 1  # fmt: skip
    tmux.press("q")
    no_secret_left(user, tmp_path, argv_watch)
