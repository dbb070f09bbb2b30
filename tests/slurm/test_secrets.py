"""Keys reach the driver, and nothing else: no command line, no environment of Slurm's, one file."""

from __future__ import annotations

import os

import pytest

from tests.slurm.user import RECIPE, SHORT, User

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(240)]
TOKEN, KEY = "hf_canary_4711_from_the_shell", "canary_0815_from_the_file"
SECRETS = (TOKEN, KEY)


def held(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def test_keys_of_the_shell_and_of_a_file(user: User) -> None:
    keys = user.place / "keys.env"
    keys.write_text(f"WANDB_API_KEY={KEY}\n")
    keys.chmod(0o600)
    os.chown(keys, user.cluster.settings.uid, user.cluster.settings.uid)
    seen = user.place / "seen.txt"
    path = user.put_before(
        "sbatch", f'{{ ps -eww -o args; env; cat "${{@: -1}}"; }} >{seen}; exec /usr/bin/sbatch "$@"'
    )
    user.place.chmod(0o777)
    command = ("--env-file", str(keys), "--account", "distill", "--profile", "light", "--rehearse")
    done = user("submit", RECIPE, *SHORT, *command, "--nodes", "1", "--time", "5", "--json",
                HF_TOKEN=TOKEN, PATH=path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert held(done.stdout + done.stderr) == []
    assert "sbatch" in seen.read_text()
    assert "ray_bare.sub" in seen.read_text()
    assert held(seen.read_text()) == []
    (run,) = user.runs.glob("2*")
    user.wait(run.name, lambda state: state["milestones"] != [], 60)
    while user.state(run.name)["state"] in ("queued", "starting", "running"):
        running = [line for node in user.cluster.nodes for line in node.processes(user.cluster.settings.user)]
        assert held("\n".join(running)) == []
    assert user.state(run.name)["state"] == "completed"
    for printed in (("runs", "--json"), ("report", run.name), ("report", "--json", run.name),
                    ("watch", "--once", "--json", run.name), ("watch", "--plain", run.name)):  # fmt: skip
        told = user(*printed)
        assert told.returncode == 0, told.stderr
        assert held(told.stdout + told.stderr) == [], printed
    holding = {
        file.name: file.stat().st_mode & 0o777
        for file in user.place.rglob("*")
        if file.is_file() and any(secret.encode() in file.read_bytes() for secret in SECRETS)
    }
    assert holding == {"keys.env": 0o600, "secrets.env": 0o600}
    secrets = (run / "secrets.env").read_text()
    assert held(secrets) == list(SECRETS)
    job = (run / "jobs.json").read_text()
    assert held(job) == []
    state = user.cluster.settings.state
    for file in (*(state / "spool").rglob("*"), *(state / "log").rglob("*")):
        assert not file.is_file() or held(file.read_text(errors="replace")) == [], file
