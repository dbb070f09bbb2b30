"""Results of nodes, kept in the cache by site and environments: other packages need other measurements."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.doctor.venv import Venv
from launcher.errors import TransportError
from launcher.paths import cache_root

if TYPE_CHECKING:
    from launcher.doctor.subject import Subject
    from launcher.transports.base import Transport

_SCHEMA = 1
_LARGEST = 4 << 20
_RESULT = re.compile(r"doctor-(?P<node>[\w.-]+)\.json")


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A measurement of nodes: its run, and what each node wrote."""

    run: str
    """The run's directory."""
    partition: str = ""
    nodes: Mapping[str, Any] = field(default_factory=dict)


def venvs_of(subject: Subject) -> dict[str, Path]:
    """Return the built Python environments that the run uses, by label; without a recipe, all of them."""
    venvs = {"driver": subject.venv} if subject.venv is not None else {}
    folder = subject.worker_venvs
    used = {need.actor for need in subject.worker_needs}
    if folder is not None and folder.is_dir():
        for entry in sorted(folder.iterdir()):
            label = entry.name.rpartition(".")[2]
            is_used = entry.name in used or subject.context is None
            if is_used and entry.name.startswith("nemo_rl.") and (entry / "bin" / "python").exists():
                venvs[label] = entry
    return venvs


def fingerprint(subject: Subject) -> str:
    """Return a hash of the environments' packages, and of the modules and libraries that jobs load."""
    parts: dict[str, object] = {
        label: [str(path), sorted(Venv(path).packages.items())] for label, path in venvs_of(subject).items()
    }
    parts["libraries"] = [subject.job.get("LD_LIBRARY_PATH", ""), list(subject.site.modules)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def record_path(subject: Subject) -> Path:
    """Return the file of a subject's measurement."""
    site = re.sub(r"[^\w.-]", "_", subject.site.id)
    return cache_root(subject.shell) / "doctor" / f"{site}-{fingerprint(subject)}.json"


def load_record(subject: Subject) -> NodeRecord | None:
    """Return the latest measurement with these environments, with what its job has written meanwhile."""
    path = record_path(subject)
    data = _read(subject.transport, str(path))
    if data is None or data.get("schema") != _SCHEMA or not isinstance(data.get("run"), str):
        return None
    nodes = data.get("nodes")
    record = NodeRecord(
        data["run"], str(data.get("partition") or ""), nodes if isinstance(nodes, dict) else {}
    )
    if record.nodes:
        return record
    collected = collect(subject.transport, record.run)
    return NodeRecord(record.run, record.partition, collected)


def save_record(subject: Subject, record: NodeRecord) -> None:
    """Keep a measurement; without effect where the cache cannot be written."""
    value = {
        "schema": _SCHEMA, "run": record.run, "partition": record.partition, "nodes": dict(record.nodes)
    }  # fmt: skip
    try:
        subject.transport.write_atomic(str(record_path(subject)), json.dumps(value).encode(), 0o600)
    except TransportError:
        return


def collect(transport: Transport, directory: str) -> dict[str, Any]:
    """Return what the nodes of a run wrote, by node."""
    out = str(Path(directory, "logs"))
    try:
        names = [entry.name for entry in transport.listdir(out)] if transport.stat(out) is not None else []
    except TransportError:
        return {}
    results = {}
    for name in names:
        match = _RESULT.fullmatch(name)
        data = _read(transport, f"{out}/{name}") if match is not None else None
        if match is not None and data is not None and data.get("schema") == _SCHEMA:
            results[match["node"]] = data
    return results


def _read(transport: Transport, path: str) -> dict[str, Any] | None:
    try:
        if transport.stat(path) is None:
            return None
        value = json.loads(transport.read(path, 0, _LARGEST))
    except (TransportError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
