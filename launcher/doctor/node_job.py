"""The job that measures nodes: a run of its own, with logs, in the partition for tests.

examination = plan_examination(subject, store, environment)    writes and submits nothing
run = send_examination(examination, subject, store)            once; watched like any other run
record = results_of(subject, run, store)                       what the nodes have written so far
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from launcher.clusters.registry import cluster_of, slurm_cluster
from launcher.doctor.node_results import NodeRecord, collect, save_record, venvs_of
from launcher.environment import JobEnvironment, is_secret
from launcher.errors import InputError
from launcher.request import JobOptions, SubmitRequest
from launcher.runs import RecipeRef, Run, RunSpec, SlurmRequest, new_id
from launcher.scripts import script_path
from launcher.transports.base import user_of

if TYPE_CHECKING:
    from launcher.clusters.base import RenderedJobs
    from launcher.doctor.subject import JobSize, Subject
    from launcher.runs import RunStore

DEFAULT_TIME_S = 900
"""Imports of four environments from a cold file system, and two all-reduces."""
NODES = 2
"""Nodes that are measured where nothing else is asked for: what is between nodes needs two."""
DRIVER_IMPORTS = ("torch", "ray", "transformers", "nemo_rl")
EXTRA_IMPORTS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm",),
    "fsdp": ("flash_attn",),
    "automodel": ("nemo_automodel", "flash_attn", "transformer_engine"),
    "mcore": ("megatron.core", "transformer_engine", "flash_attn"),
}
"""Packages that are imported in a worker's environment besides torch and transformers, by its extra."""
_HUB = "https://huggingface.co"
_SCRIPTS = ("doctor.sh", "doctor_node.py", "doctor_probe.py")
_IMPORT_LIMIT_S = 180
_NOTE = b"# Measurements by `distill-tui doctor`: no recipe was run.\n{}\n"


@dataclass(frozen=True, slots=True)
class NodeExamination:
    """A measurement that is planned; nothing of it is written yet."""

    spec: RunSpec
    files: Mapping[str, bytes]
    jobs: RenderedJobs
    size: JobSize


def plan_examination(subject: Subject, store: RunStore, environment: Mapping[str, str]) -> NodeExamination:
    """Return the planned job.

    Raises:
        InputError: Slurm lists no partition for it.
    """
    size, reservation = _size(subject)
    now = datetime.now(UTC)
    identity = new_id("doctor", now)
    directory = Path(store.root, identity)
    options = _options(subject, size, reservation)
    cluster = slurm_cluster(store.transport, store.root, environment)
    jobs = cluster.plan_script(options, subject.site, identity, directory, "doctor.sh")
    files = {
        "recipe.yaml": _NOTE,
        "effective.yaml": _NOTE,
        **{name: script_path(name).read_bytes() for name in _SCRIPTS},
        "canary.txt": secrets.token_hex(16).encode(),
    }
    files["spec.json"] = _spec(subject, directory, files["canary.txt"].decode())
    files |= {**jobs.files, "plan.json": jobs.plans[0].as_bytes()}
    spec = RunSpec(
        id=identity,
        name="doctor",
        kind="doctor",
        created=now,
        user=options.user,
        host=store.transport.host,
        recipe=RecipeRef(source=""),
        cluster="slurm",
        nodes=size.nodes,
        gpus_per_node=options.gpus_per_node,
        slurm=options.slurm,
        checkout=subject.checkout.path if subject.checkout is not None else None,
        schema=1,
    )
    return NodeExamination(spec, files, jobs, size)


def send_examination(examination: NodeExamination, subject: Subject, store: RunStore) -> Run:
    """Write the run and submit its job, once; its results count from now on.

    Raises:
        RefusedError: Slurm refused.
        UnreachableError: it is not clear whether Slurm accepted the job.
    """
    run = store.create(examination.spec, examination.files)
    run = cluster_of(run, store.transport).submit(run, examination.jobs.plans[0])
    save_record(subject, NodeRecord(run.directory, examination.size.partition or ""))
    return run


def results_of(subject: Subject, run: Run, store: RunStore) -> NodeRecord:
    """Return what the nodes have written so far; a complete result is kept."""
    partition = run.spec.slurm.partition if run.spec.slurm is not None else ""
    record = NodeRecord(run.directory, partition, collect(store.transport, run.directory))
    if len(record.nodes) >= run.spec.nodes:
        save_record(subject, record)
    return record


def _size(subject: Subject) -> tuple[JobSize, str | None]:
    """Return the size of the job and its reservation: the site's place for tests, else the run's."""
    size, detection, smoke = subject.size, subject.detection, subject.site.smoke
    name = (
        smoke.partition if detection is not None and detection.partition(smoke.partition) else size.partition
    )
    partition = detection.partition(name) if detection is not None and name is not None else None
    if detection is None or partition is None or name is None:
        raise InputError(
            "Slurm lists no partition to measure nodes in", fix="Give --partition (see `detect`)."
        )
    limits = (NODES, partition.nodes, partition.max_nodes, partition.nodes_usable)
    nodes = max(min(limit for limit in limits if limit is not None), 1)
    usable = detection.accounts_in(partition)
    account = size.account
    if usable and account not in usable:
        account = usable[0]
    time_s = min(DEFAULT_TIME_S, partition.max_time_s or DEFAULT_TIME_S)
    chosen = replace(
        size, nodes=nodes, partition=name, account=account, time_s=time_s, gpus_per_node=partition.gpus.count
    )
    return chosen, smoke.reservation if not smoke.partition and smoke.reservation else None


def _options(subject: Subject, size: JobSize, reservation: str | None) -> JobOptions:
    variables = {name: value for name, value in subject.job.items() if not is_secret(name, value)}
    if subject.venv is not None:
        variables["DOCTOR_PYTHON"] = str(subject.venv / "bin" / "python")
    return JobOptions(
        SubmitRequest(Path("doctor"), size.nodes, size.time_s),
        size.nodes,
        size.gpus_per_node or 0,
        user_of(subject.transport, subject.shell),
        SlurmRequest(
            partition=size.partition or "",
            account=size.account,
            time_s=size.time_s or DEFAULT_TIME_S,
            reservation=reservation,
            without=subject.site.sbatch_without,
            cluster=subject.detection.defaults.cluster if subject.detection is not None else None,
            gres=subject.detection is None or subject.detection.lists_gpus,
        ),
        environment=JobEnvironment(variables, {}, ()),
    )


def _spec(subject: Subject, directory: Path, canary: str) -> bytes:
    """Return what the nodes are told to measure."""
    value = {
        "out": str(directory / "logs"),
        "venvs": imports_of(subject),
        "suffix": subject.site.host_suffix,
        "tmp": subject.job.get("RAY_TMPDIR") or "/tmp",  # noqa: S108 - the launcher's default
        "canary": {"path": str(directory / "canary.txt"), "text": canary},
        "internet": [internet_target(subject.job)],
        "limit_s": _IMPORT_LIMIT_S,
    }
    return (json.dumps(value, indent=1) + "\n").encode()


def imports_of(subject: Subject) -> dict[str, dict[str, object]]:
    """Return the environments that are examined, each with the packages to import in it."""
    by_label = {actor.rpartition(".")[2]: item.extras for actor, item in subject.actors.items()}
    result: dict[str, dict[str, object]] = {}
    for label, path in venvs_of(subject).items():
        names: tuple[str, ...] = DRIVER_IMPORTS
        if label != "driver":
            own = (name for extra in by_label.get(label, ()) for name in EXTRA_IMPORTS.get(extra, ()))
            names = ("torch", "transformers", *dict.fromkeys(own))
        result[label] = {"path": str(path), "imports": list(names)}
    return result


def internet_target(variables: Mapping[str, str]) -> str:
    """Return HOST:PORT that models would be fetched from: `HF_ENDPOINT`, else Hugging Face's."""
    parts = urlsplit(variables.get("HF_ENDPOINT") or _HUB)
    try:
        port = parts.port
    except ValueError:
        port = None
    return f"{parts.hostname or 'huggingface.co'}:{port or (80 if parts.scheme == 'http' else 443)}"
