"""The wizard on the test cluster, in a terminal of 80x24, by keyboard alone."""

from __future__ import annotations

import json

import pytest

from tests.slurm.test_submit import MILESTONES
from tests.slurm.tmux import Tmux
from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def open_wizard(tmux: Tmux, user: User) -> None:
    tmux.start(user.argv("--no-mouse"))
    tmux.see("n new")
    tmux.press("n")
    tmux.see("1 Cluster", "booster", "distill", "1-00:00:00")


def to_profile(tmux: Tmux) -> None:
    """Choose the profile that suits pretended nodes, then go on."""
    tmux.press("Down", "Down", "Down", "Down", "Right")
    tmux.see("‹ light ›")
    tmux.press("NPage")
    tmux.see("‹ training ›")


def as_rehearsal(tmux: Tmux) -> None:
    tmux.press("Left")
    tmux.see("‹ rehearsal ›", "rehearsal.yaml")
    tmux.press("NPage")
    tmux.see("Nodes", "00:10:00")


@pytest.mark.ray
def test_a_rehearsal_on_two_nodes_from_the_first_key_to_the_last_milestone(user: User, tmux: Tmux) -> None:
    open_wizard(tmux, user)
    to_profile(tmux)
    as_rehearsal(tmux)
    tmux.type("2")
    tmux.see("0.333 node-h", "1.33 GPU-h")
    tmux.press("NPage")
    tmux.see("rehearsal of", "2 nodes × 4 GPUs of booster for 00:10:00, charged to distill")
    tmux.press("t")
    tmux.until(lambda text: "starts      now" in text or "starts      at 20" in text, "a start")
    tmux.press("s")
    tmux.see("Submit?", "rehearsal: 2 nodes")
    tmux.press("y")
    tmux.see("Ray head up", "All workers connected")
    tmux.see("✓ Completed", "✓ completed", limit_s=200)
    (run,) = user.runs.glob("2*")
    state = user.state(str(run))
    assert state["state"] == "completed"
    assert {item["id"] for item in state["milestones"]} == set(MILESTONES)
    spec = json.loads((run / "run.json").read_text())
    assert (spec["kind"], spec["nodes"], spec["gpus_per_node"]) == ("rehearsal", 2, 4)
    assert ray_processes(user.cluster) == {}
    tmux.press("b")
    tmux.see("✓ completed", "rehearsal")


def test_a_wrong_account_and_too_long_a_time_in_slurms_words(user: User, tmux: Tmux) -> None:
    open_wizard(tmux, user)
    tmux.press("Down")
    tmux.type("nosuch")
    tmux.see("! may not use booster")
    tmux.press("Down", "Down", "Down", "Right", "NPage")
    as_rehearsal(tmux)
    tmux.press("NPage")
    tmux.see("charged to nosuch")
    tmux.press("s")
    tmux.see("Submit?")
    tmux.press("y")
    tmux.see("Error", "Slurm refused: Invalid account", "account that may use")
    tmux.press("o", "Escape")
    tmux.see("Nodes")
    tmux.press("Escape", "Escape")
    tmux.see("Partition", "nosuch")
    tmux.press("Right", "Down")  # the partition for short jobs
    tmux.see("‹ develbooster ›")
    tmux.type("distill")
    tmux.press("NPage", "NPage")
    tmux.see("Nodes", "develbooster")
    tmux.press("Down", "Down")
    tmux.see("─ Time limit ─")
    tmux.type("3:00:00")
    tmux.see("develbooster: 02:00:00 at most")
    tmux.press("NPage")
    tmux.see("of develbooster for 03:00:00, charged to distill")
    tmux.press("s")
    tmux.see("Submit?")
    tmux.press("y")
    tmux.see("Error", "Requested time limit is invalid", "shorter")
    assert user.jobs() == []
    runs = sorted(user.runs.glob("2*"))
    assert [user.state(str(run))["state"] for run in runs] == ["failed", "failed"]
    tmux.press("o", "q")
    (draft,) = user.place.rglob("*.draft.json")  # nothing is lost, so that nothing is asked
    assert "3:00:00" in draft.read_text()
