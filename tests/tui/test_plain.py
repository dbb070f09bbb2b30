"""Findings without a screen."""

from __future__ import annotations

from dataclasses import replace

from launcher.logs.events import FindingSeen, Role, Source
from launcher.logs.signatures import SuggestedEdit
from launcher.monitor.summary import finding_json
from tui.headless.plain import finding_lines


def test_the_cause_is_told_with_what_it_changes_in_the_recipe() -> None:
    edits = (SuggestedEdit("policy.a", True), SuggestedEdit("policy.b", how="lower"))
    place = Source("ray-driver.log", Role.DRIVER, 7)
    cause = FindingSeen(
        "x", "It failed", "fatal", "so it did", place, "Do it right.", root=True, rank=3, edits=edits
    )
    other = replace(cause, title="Another", root=False, rank=None)
    assert finding_lines([finding_json(cause), finding_json(other)]) == [
        "  ✗ cause: It failed (ray-driver.log:7, rank 3)",
        "    so it did",
        "    -> Do it right.",
        "    recipe: policy.a=true, lower policy.b",
        "  ✗ Another (ray-driver.log:7)",
    ]
