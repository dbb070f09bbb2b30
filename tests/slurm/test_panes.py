"""The monitor of a run on three nodes in a terminal: layouts at three sizes, a shell on a node, the end."""

from __future__ import annotations

import pytest

from tests.slurm.following import LONG, hurry
from tests.slurm.tmux import Tmux
from tests.slurm.user import SHORT, User

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


PLANTED = """\
import os
import sys

if any(item.endswith("rehearsal.py") for item in sys.orig_argv) and os.environ.get("NVTE_FUSED_ATTN") != "0":
    print("Traceback (most recent call last):", file=sys.stderr)
    print('  File "/venv/attention.py", line 21, in forward', file=sys.stderr)
    print("RuntimeError: cuDNN Error: CUDNN_STATUS_EXECUTION_FAILED", file=sys.stderr, flush=True)
    os._exit(1)
"""
"""A `sitecustomize` by which the driver fails as with a broken fused attention."""
SIZE = (80, 24)


def test_a_cudnn_error_is_found_repaired_and_run_again_by_keys(user: User, tmux: Tmux) -> None:
    folder = user.place / "planted"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(PLANTED)
    run = user.submit(*SHORT, "--env", f"PYTHONPATH={folder}", nodes=2)["run"]
    tmux.start(user.argv("--no-mouse", "watch", run), size=SIZE)
    tmux.see("✗ failed", "A cuDNN call failed", "NVTE_FUSED_ATTN=0", limit_s=120)
    tmux.press("e")
    tmux.see("finding 1 of", "CUDNN_STATUS_EXECUTION_FAILED")
    tmux.press("R")
    tmux.see("Run again", "NVTE_FUSED_ATTN=0  (variable of the job)", "with these changes")
    tmux.press("w")
    tmux.see("1 Cluster", "‹ light ›")
    tmux.press("NPage")
    tmux.see("‹ rehearsal ›")
    tmux.press("NPage")
    tmux.see("Nodes")
    tmux.press("NPage")
    tmux.see("2 nodes × 4 GPUs")
    tmux.press("s")
    tmux.see("Submit?")
    tmux.press("y")
    tmux.see("✓ completed", "✓ Completed", limit_s=200)
    assert tmux.pressed == ["e", "R", "w", "NPage", "NPage", "NPage", "s", "y"]
    states = {str(path): user.state(str(path))["state"] for path in user.runs.glob("2*")}
    assert sorted(states.values()) == ["completed", "failed"]


@pytest.mark.timeout(900)
def test_a_node_that_dies_is_named_on_the_screen(user: User, tmux: Tmux) -> None:
    hurry(user)
    run = user.submit(*LONG, "--sbatch-arg=--no-requeue", nodes=2, time_="20")["run"]
    try:
        tmux.start(user.argv("--no-mouse", "watch", run), size=SIZE)
        tmux.see("● running", "✓ First step done", limit_s=500)
        user.cluster.nodes[1].power_off()
        tmux.see("✗ failed", "Node node02 went down", "--exclude=node02", limit_s=200)
        tmux.press("l")
        tmux.see("✗ failing", "node02")
        tmux.press("q", "b")
        tmux.see("✗ failed", "node02")
    finally:
        user.cluster.up()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_chain_on_the_screen(user: User, tmux: Tmux) -> None:
    steps = ("distillation.max_num_steps=300", "distillation.max_num_epochs=200")
    saves = ("distillation.val_period=100", "checkpointing.save_period=25", "--chain", "5")
    run = user.submit(*steps, *saves, nodes=1, time_="2")["run"]
    tmux.start(user.argv("--no-mouse", "watch", run), size=SIZE)
    tmux.see("● running", "✓ First step done", limit_s=240)
    tmux.see("attempt: ", limit_s=240)
    tmux.see("✓ completed", "300/300", limit_s=500)
    tmux.press("3", "l")
    tmux.until(lambda text: text.count("-logs/") >= 2 or text.count("driver") >= 2, "two drivers' logs")
