"""The monitor of a run on three nodes in a terminal: layouts at three sizes, a shell on a node, the end."""

from __future__ import annotations

import pytest

from tests.slurm.following import LONG
from tests.slurm.tmux import Tmux
from tests.slurm.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(400)]


def test_layouts_shell_and_cancel_by_key(user: User, tmux: Tmux) -> None:
    run = user.submit(*LONG, nodes=3)["run"]
    tmux.start(user.argv("--no-mouse", "watch", run), size=(160, 48))
    tmux.see("● running", "✓ First step done", "driver over head and worker", limit_s=240)
    for size in ((160, 48), (120, 40), (80, 24)):
        tmux.resize(*size)
        tmux.see("● running")
        tmux.press("3")
        for _ in range(5):
            tmux.press("p")
            tmux.see("● running", "following")
        tmux.see("F1 help")
    tmux.press("s")
    tmux.see("Shell in job", "--overlap", "copy the command")
    tmux.press("Enter")
    tmux.see("(exit leaves)", limit_s=60)
    tmux("send-keys", "-l", "echo on-$SLURM_STEP_NODELIST")
    tmux.press("Enter")
    tmux.see("on-node0")
    tmux("send-keys", "-l", "exit")
    tmux.press("Enter")
    tmux.see("● running", "F1 help")
    tmux.press("c")
    tmux.see("Cancel this run?", "after its next checkpoint")
    tmux.press("k")
    tmux.see("⊘ cancelled", limit_s=200)
    assert user.state(run)["state"] == "cancelled"
