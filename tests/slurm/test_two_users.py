"""Two users in one directory: each reads the other's runs, none makes the other do what was not seen."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.slurm.user import PROGRAM, User

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(240)]


def as_other(user: User, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run distill-tui as the other user on the login node."""
    own, name = directory / "own", user.cluster.settings.other_user
    variables = (
        f"HOME={own}", f"XDG_CONFIG_HOME={own}", f"XDG_STATE_HOME={own}", f"XDG_CACHE_HOME={own}",
        f"USER={name}",
        "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", f"DISTILL_TUI_RUNS={user.runs}",
    )  # fmt: skip
    command = user.cluster.login.inside("-i", *variables, PROGRAM, *arguments, user=name, directory=directory)
    numbers = {str(user.cluster.settings.uid): str(user.cluster.settings.other_uid)}
    command = [numbers.get(word, word) for word in command]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def project(user: User) -> Path:
    """Return a directory that both can reach; what the other one has in it is his."""
    directory = user.place / "project"
    (directory / "own").mkdir(parents=True)
    for path in (user.cluster.settings.home, user.place.parent, user.place):
        path.chmod(path.stat().st_mode | 0o055)
    for path in (directory, directory / "own"):
        os.chown(path, user.cluster.settings.other_uid, user.cluster.settings.other_uid)
    return directory


def test_who_may_do_what_with_whose_run(user: User, project: Path) -> None:
    submitted = user.submit("--sbatch-arg=--hold", nodes=1)
    directory, job = Path(submitted["dir"]), submitted["jobs"][0]["id"]
    read = as_other(user, project, "watch", "--once", "--json", str(directory))
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout)["run"] == submitted["run"]
    assert as_other(user, project, "report", str(directory)).returncode == 0
    for order in (("cancel", str(directory)), ("resume", str(directory))):
        refused = as_other(user, project, *order)
        assert refused.returncode != 0
        assert user.cluster.settings.user in refused.stderr
    trusted = as_other(
        user, project, "cancel", str(directory), "--trust"
    )  # what is not his stays, see the end
    assert trusted.returncode == 1, trusted.stdout + trusted.stderr
    assert "none of its jobs is yours" in trusted.stderr
    forged = project / directory.name
    subprocess.run(["cp", "-r", directory, forged], check=True)
    for path in (forged, *forged.rglob("*")):
        os.chown(path, user.cluster.settings.other_uid, user.cluster.settings.other_uid)
    refused_too = user("cancel", str(forged))
    assert refused_too.returncode == 2, refused_too.stdout + refused_too.stderr
    assert f"belongs to {user.cluster.settings.other_user}" in refused_too.stderr
    assert "--trust" in refused_too.stderr
    held = user("resume", str(forged))  # her job of that number is still queued
    assert held.returncode == 1
    assert "has not ended" in held.stderr
    for look in (("watch", "--once", str(forged)), ("report", str(forged))):
        seen = user(*look)
        assert seen.returncode == 0, seen.stdout + seen.stderr
    assert user.cluster.as_user("squeue", "-h", "-j", job, "-o", "%T").strip() == "PENDING"
    assert sorted(path.name for path in forged.iterdir()) == sorted(path.name for path in directory.iterdir())
