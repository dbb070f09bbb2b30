"""States of nodes in all of sinfo's spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.clusters.slurm.node_states import NodeUse, node_use

USABLE = [
    "idle",
    "alloc",
    "allocated",
    "mix",
    "mixed",
    "comp",
    "completing",
    "resv",
    "reserved",
    "plnd",
    "planned",
    "boot",
]
DOWN = [
    "down",
    "drain",
    "drained",
    "draining",
    "drng",
    "fail",
    "failing",
    "failg",
    "err",
    "error",
    "unk",
    "unknown",
    "inval",
]


@given(base=st.sampled_from(USABLE), suffix=st.sampled_from(["", *"~#!%@^-+"]), upper=st.booleans())
def test_nodes_that_can_be_had(base: str, suffix: str, upper: bool) -> None:
    assert node_use((base.upper() if upper else base) + suffix) is NodeUse.USABLE


@given(base=st.sampled_from(DOWN), suffix=st.sampled_from(["", *"*~#!%$@^-+"]), upper=st.booleans())
def test_nodes_that_are_down(base: str, suffix: str, upper: bool) -> None:
    assert node_use((base.upper() if upper else base) + suffix) is NodeUse.DOWN


@pytest.mark.parametrize(
    ("state", "use"),
    [
        ("idle*", NodeUse.DOWN),
        ("alloc*", NodeUse.DOWN),
        ("IDLE+DRAIN", NodeUse.DOWN),
        ("IDLE+CLOUD+POWERED_DOWN", NodeUse.USABLE),
        ("maint", NodeUse.RESERVED),
        ("maint*", NodeUse.DOWN),
        ("idle$", NodeUse.RESERVED),
        ("future", NodeUse.RESERVED),
        ("n/a", None),
        ("", None),
    ],
)
def test_single_states(state: str, use: NodeUse | None) -> None:
    assert node_use(state) is use
