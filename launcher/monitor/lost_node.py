"""The finding that a node of a run went down, with the part of the run that was on it."""

from __future__ import annotations

from launcher.durations import moment
from launcher.logs.events import FindingSeen, JobChanged, LostNode, Role, Source, UnitsOnline
from launcher.logs.node_names import expanded
from launcher.logs.signatures import catalogue

IDENTITY = "slurm-node-fail"


def lost_node_findings(job: JobChanged | None, units: UnitsOnline | None) -> list[FindingSeen]:
    """Return a finding for each node that went down under a job."""
    if job is None or not job.lost_nodes:
        return []
    nodes = expanded(job.nodes)
    per_node = units.wanted // len(nodes) if units is not None and nodes else 0
    fix = catalogue().signatures[IDENTITY].advice.fix
    return [
        FindingSeen(
            IDENTITY, f"Node {node.name} went down", "fatal", _text(node, nodes, per_node),
            Source("", Role.SLURM, 0), fix.replace("NODE", node.name), node.name, time=node.since, tier=1,
        )
        for node in job.lost_nodes
    ]  # fmt: skip


def _text(node: LostNode, nodes: tuple[str, ...], per_node: int) -> str:
    at = f" at {moment(node.since)}" if node.since else ""
    reason = f": {node.reason}" if node.reason else ""
    text = f"{node.name} went down{at} (Slurm{reason})"
    if per_node and node.name in nodes:
        first = nodes.index(node.name) * per_node
        ranks = f"rank {first}" if per_node == 1 else f"ranks {first}-{first + per_node - 1}"
        text += f"; by the order of the nodes, {ranks} ran there"
    return f"{text}; other failures follow from it"
