"""What is done to a run by key: a shell on a node, and a cancellation that waits for a checkpoint."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from launcher.errors import InputError
from launcher.logs.events import JobState
from launcher.monitor.watch import watch_directory
from launcher.transports.local import LocalTransport
from launcher.usage import UsageLimits, own_usage, user_usage
from tests.tui.replay import make_run
from tui.node_shell import copyable, is_job_id, open_shell, shell_command
from tui.opening import OpenedRun, RunSummary
from tui.run_view import RunView
from tui.screens import run_actions
from tui.screens.run_actions import RunActions
from tui.usage_lines import machine_lines


def test_the_command_of_a_shell() -> None:
    command = shell_command("41", "jwb0002")
    assert command[:5] == ["srun", "--jobid=41", "--overlap", "--nodes=1", "--ntasks=1"]
    assert copyable(command) == (
        "srun --jobid=41 --overlap --nodes=1 --ntasks=1 --nodelist=jwb0002 --pty bash"
    )
    assert "--nodelist" not in copyable(shell_command("41_3"))


@pytest.mark.parametrize("job", ["", "--me", "41;id", "41,42", "local-41", "4 1", "$(id)"])
def test_what_is_no_job_gets_no_shell(job: str) -> None:
    assert not is_job_id(job)
    with pytest.raises(InputError, match="no shell"):
        shell_command(job)


@pytest.mark.parametrize("node", ["--overlap", "a b", "n1,n2", "$(id)", "n[1-3]"])
def test_what_is_no_node_gets_no_shell(node: str) -> None:
    with pytest.raises(InputError, match="no shell"):
        shell_command("41", node)


def test_a_shell_has_nothing_of_an_allocation_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    srun = tmp_path / "srun"
    srun.write_text(f'#!/bin/sh\nenv >{tmp_path}/env\necho "$@" >{tmp_path}/args\nexit 3\n')
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/s",
        "HOME": "/h",
    }
    assert open_shell(shell_command("41", "n1"), environment) == 3
    given = (tmp_path / "env").read_text()
    assert "SLURM_CONF=/etc/s" in given
    assert "SLURM_JOB_ID" not in given
    assert "--jobid=41 --overlap" in (tmp_path / "args").read_text()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="srun is not installed"):
        open_shell(shell_command("41"), environment)


def test_a_cancellation_that_waits_for_the_next_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, host="elsewhere")
    transport = LocalTransport()
    opened = OpenedRun(RunSummary("r"), watch_directory(transport, run.directory), transport, run)
    cancelled: list[str] = []
    called = threading.Event()

    def cancel(directory: str, machine: object) -> None:
        cancelled.append(directory)
        called.set()

    monkeypatch.setattr(run_actions, "cancel", cancel)
    view = RunView(RunSummary("r"), JobState.RUNNING, checkpoint=10)
    notes: list[str] = []
    actions = RunActions(
        cast(Any, None), cast(Any, None), opened=lambda: opened, view=lambda: view,
        node=lambda: "", note=notes.append,
    )  # fmt: skip
    actions._cancel_later()
    actions.viewed(view)
    assert (cancelled, actions.stopping, actions.stop_after) == ([], False, 10)
    actions.viewed(replace(view, checkpoint=15))
    assert called.wait(5)
    assert (cancelled, actions.stopping) == ([run.directory], True)
    assert "checkpoint 15 is complete" in notes[-1]
    actions.viewed(replace(view, state=JobState.CANCELLED))
    assert (actions.stopping, actions.stop_after) == (False, None)


def test_usage_against_the_limits_of_a_site() -> None:
    usage, own = user_usage(), own_usage()
    assert usage.processes >= 1
    assert 0 < own.memory <= usage.memory + own.memory < 2 * usage.machine_memory
    (line,) = machine_lines(UsageLimits())
    assert "no limit of this site is known" in line
    lines = machine_lines(UsageLimits(10**6, 100))
    assert "of 1000000 processes" in lines[0]
    assert len(lines) == 1 or "more than" in lines[1]
    assert "processes may be killed" in machine_lines(UsageLimits(1, None))[-1] or usage.processes == 1
