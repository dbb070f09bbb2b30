"""What a user orders, and the choices that an order leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.detect import Detection
from launcher.clusters.slurm.job_options import SECRET_VARIABLES, JobOptions, Kind
from launcher.clusters.slurm.parse import ParseError, parse_duration
from launcher.clusters.slurm.partitions import Partition
from launcher.clusters.slurm.submission import read_env_file
from launcher.errors import InputError
from launcher.runs import Launcher, SlurmRequest
from launcher.submit.checkout import NemoCheckout
from launcher.transports.base import Transport
from recipes.inheritance import resolve
from recipes.planning import Setup


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """What the user wants; None leaves the choice to what the cluster and the recipe say."""

    recipe: Path
    nodes: int | None
    """None: the recipe's; for a smoke run the fewest on which nothing fails and the memory suffices."""
    time: str | int
    """Limit of each job: as Slurm writes it, or in seconds."""
    overrides: tuple[str, ...] = ()
    kind: Kind = "training"
    gpus_per_node: int | None = None
    """None: what most nodes of the partition have."""
    partition: str | None = None
    """None: for a smoke run what the site has for tests, where it takes the job; else Slurm's default."""
    account: str | None = None
    """None: the default account, else the only one that may use the partition."""
    qos: str | None = None
    reservation: str | None = None
    checkout: str | None = None
    """None: $NEMO_RL_ROOT, else the one used last. Rehearsals need none."""
    chain: int = 1
    profile: str | None = None
    env_file: Path | None = None
    sbatch_args: tuple[str, ...] = ()
    skip_checks: tuple[str, ...] = ()
    """Ids of checks that are known to fail and do not block."""
    launcher: Launcher = "ray_bare"
    container: str | None = None
    """For `ray.sub`; None: the profile's or the site's."""
    mounts: tuple[str, ...] = ()
    """For `ray.sub`: `/SOURCE:/TARGET[:ro]`."""
    yes: bool = False
    """What a proposal asks is agreed to."""


def choose_for(
    order: SubmitRequest,
    found: Detection,
    transport: Transport,
    environment: Mapping[str, str],
    checkout: NemoCheckout | None,
) -> tuple[Partition | None, JobOptions]:
    """Return the partition and all choices, with what the order leaves open.

    Raises:
        InputError: the order contradicts itself, or something is not known.
    """
    nodes = nodes_of(order)
    if nodes < 1 or (order.gpus_per_node or 0) < 0 or order.chain < 1:
        raise InputError("--nodes and --chain must be 1 or more, and --gpus-per-node not below 0")
    limit = limit_of(order.time)
    name, reservation = _place(order, found, nodes, limit)
    partition = found.partition(name)
    choices = JobOptions(
        kind=order.kind,
        nodes=nodes,
        gpus_per_node=_gpus(order, partition),
        request=SlurmRequest(
            partition=name,
            account=order.account or _account(found, partition),
            time_s=limit,
            qos=order.qos,
            reservation=reservation,
            chain=order.chain,
        ),
        user=SlurmClient(transport, environment).user,
        profile=order.profile,
        keys=_keys(order, transport, environment),
        sbatch_args=order.sbatch_args,
        checkout=checkout,
        launcher=order.launcher,
        container=order.container,
        mounts=order.mounts,
    )
    return partition, choices


def limit_of(time: str | int) -> int:
    """Return a time limit in seconds.

    Raises:
        InputError: it is none.
    """
    try:
        limit = time if isinstance(time, int) else parse_duration(time)
    except ParseError:
        limit = None
    if not limit or limit < 0:
        raise InputError(f"--time '{time}' is no time", fix="Write it as MM, HH:MM:SS or D-HH:MM:SS.")
    return limit


def nodes_of(order: SubmitRequest) -> int:
    """Return the nodes that an order names, else the recipe's.

    Raises:
        RecipeError: the recipe cannot be read.
    """
    if order.nodes is not None:
        return order.nodes
    return Setup.of(resolve(order.recipe, order.overrides)).nodes


def _place(order: SubmitRequest, found: Detection, nodes: int, limit: int) -> tuple[str, str | None]:
    """Return the partition and the reservation: as ordered, the site's for tests, or the default.

    Raises:
        InputError: there is no default partition.
    """
    default = next((item.name for item in found.partitions if item.default), None)
    smoke = found.site.smoke
    if order.kind == "smoke" and order.partition is None and order.reservation is None:
        own = found.partition(smoke.partition) if smoke.partition else None
        if own is not None and _takes(own.max_nodes, nodes) and _takes(own.max_time_s, limit):
            return own.name, None
        if (
            smoke.reservation
            and default
            and _takes(smoke.max_nodes, nodes)
            and _takes(smoke.max_time_s, limit)
        ):
            return default, smoke.reservation
    name = order.partition or default
    if name is None:
        raise InputError(
            "this cluster has no default partition", fix="Give --partition; `detect` lists them."
        )
    return name, order.reservation


def _takes(limit: int | None, wanted: int) -> bool:
    return limit is None or wanted <= limit


def _gpus(order: SubmitRequest, partition: Partition | None) -> int:
    if order.gpus_per_node is not None:
        return order.gpus_per_node
    if partition is not None:
        return partition.gpus.count
    count = resolve(order.recipe, order.overrides).get("cluster.gpus_per_node", 1)
    return count if isinstance(count, int) else 1


def _account(found: Detection, partition: Partition | None) -> str | None:
    default = next((item.account for item in found.accounts or () if item.default), None)
    usable = found.accounts_in(partition) if partition is not None else None
    if usable is not None and len(usable) == 1:
        return usable[0]
    return default


def _keys(order: SubmitRequest, transport: Transport, environment: Mapping[str, str]) -> dict[str, str]:
    keys = {name: environment[name] for name in SECRET_VARIABLES if environment.get(name)}
    if order.env_file is not None:
        text = transport.read(str(order.env_file)).decode(errors="replace")
        keys |= read_env_file(text, order.env_file)
    return keys
