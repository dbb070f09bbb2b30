"""Nodes that went down under a job: what Slurm's commands say of them, and the finding that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.lost_nodes import ask_lost_nodes, may_have_lost_nodes
from launcher.clusters.slurm.node_states import is_dead
from launcher.logs.events import (
    DriverEnded,
    FindingSeen,
    JobChanged,
    JobState,
    LostNode,
    Role,
    Source,
    UnitsOnline,
)
from launcher.monitor.attempts import SlurmRunState
from launcher.monitor.lost_node import lost_node_findings
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport

JOB = JobChanged(
    JobState.FAILED, "a node failed", time=2000.0, word="NODE_FAIL", job="14", exit_code="1:0",
    nodes="jwb[0001-0003]", submitted=900.0, began=1000.0,
)  # fmt: skip


class Answers(LocalTransport):
    """Slurm's commands as texts; one that has none fails."""

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.texts = texts
        self.asked: list[list[str]] = []

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.asked.append(list(argv))
        if argv[0] not in self.texts:
            return Completed(
                1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)"
            )
        return Completed(0, self.texts[argv[0]], "")


def lost(job: JobChanged = JOB, **texts: str) -> tuple[LostNode, ...] | None:
    return ask_lost_nodes(SlurmClient(Answers(**texts), {"USER": "u"}), job)


def test_the_node_that_went_down_while_the_job_ran() -> None:
    rows = (
        "jwb0001|idle|Unknown|none\n"
        "jwb0002|down*|1500|Not responding\n"
        "jwb0002|down*|1500|Not responding\n"  # in a second partition
        "jwb0003|drained|1500|Kill task failed\n"
    )
    assert lost(sinfo=rows) == (LostNode("jwb0002", 1500.0, "Not responding"),)


@pytest.mark.parametrize("since", ["500", "9000"])
def test_a_node_that_went_down_before_or_long_after_is_no_reason(since: str) -> None:
    assert lost(replace(JOB, word="FAILED"), sinfo=f"jwb0002|down*|{since}|Not responding\n") == ()


def test_a_node_that_is_in_service_again_is_in_the_record_of_events() -> None:
    events = "jwb0001|DRAIN|1400|bad disk\njwb0003|DOWN*|1500|Not responding|\n"
    assert lost(sinfo="jwb0003|idle|Unknown|none\n", sacctmgr=events) == (
        LostNode("jwb0003", 1500.0, "Not responding|"),
    )
    transport = Answers(sinfo="jwb0003|idle|Unknown|none\n")
    change = replace(JOB, word="FAILED")  # nothing says that a node is the reason: events are not asked for
    assert ask_lost_nodes(SlurmClient(transport, {"USER": "u"}), change) == ()
    assert [argv[0] for argv in transport.asked] == ["sinfo"]


def test_no_answer_is_not_that_all_nodes_are_well() -> None:
    assert lost() is None


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (JOB, True), (replace(JOB, word="FAILED"), True), (replace(JOB, word="TIMEOUT"), False),
        (replace(JOB, nodes=""), False), (replace(JOB, state=JobState.CANCELLED, word="CANCELLED"), False),
        (replace(JOB, state=JobState.COMPLETED), False), (replace(JOB, word="PREEMPTED"), False),
    ],
)  # fmt: skip
def test_which_jobs_are_asked_about(change: JobChanged, asked: bool) -> None:
    assert may_have_lost_nodes(change) is asked


@pytest.mark.parametrize(
    ("state", "dead"),
    [
        ("down", True), ("DOWN*", True), ("idle*", True), ("down+drain", True), ("fail", True),
        ("drained", False), ("draining", False), ("idle", False), ("allocated", False), ("idle~", False),
        ("maint", False), ("powering_down", False),
    ],
)  # fmt: skip
def test_what_a_dead_node_is(state: str, dead: bool) -> None:
    assert is_dead(state) is dead


def test_the_node_is_the_cause_and_the_rest_follows() -> None:
    state = SlurmRunState()
    log = "14-logs/ray-driver.log"
    state.apply(UnitsOnline(12, 12, Source("14-logs/launcher.log", Role.SLURM, 3)))
    died = FindingSeen(
        "ray-actor-died", "A Ray actor died", "fatal", "died", Source(log, Role.DRIVER, 90), tier=3
    )
    state.apply(died)
    state.apply(DriverEnded(1, Source("14-logs/launcher.log", Role.SLURM, 9)))
    state.apply(replace(JOB, lost_nodes=(LostNode("jwb0002", 1500.0, "Not responding"),)))
    root = state.diagnosis.root
    assert root is not None
    assert (root.id, root.node, root.title) == ("slurm-node-fail", "jwb0002", "Node jwb0002 went down")
    assert root.text.startswith("jwb0002 went down at Jan 01 ")
    assert "(Slurm: Not responding); by the order of the nodes, ranks 4-7 ran there" in root.text
    assert "--exclude=jwb0002" in root.fix
    assert [item.id for item in state.findings] == ["slurm-node-fail", "ray-actor-died"]
    assert "ray-actor-died" in root.causes
    assert state.state is JobState.FAILED
    assert "jwb0002" in state.reason


def test_nodes_of_which_less_is_known() -> None:
    (finding,) = lost_node_findings(replace(JOB, lost_nodes=(LostNode("x9"),)), None)
    assert finding.text == "x9 went down (Slurm); other failures follow from it"
    assert lost_node_findings(None, None) == lost_node_findings(JOB, None) == []
