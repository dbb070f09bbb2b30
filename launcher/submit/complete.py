"""Completion of a request: open choices are made from the cluster, the site and the recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.durations import DurationError, parse_time_limit
from launcher.errors import InputError
from launcher.request import JobOptions, SubmitRequest, has_dedicated_head
from launcher.runs import SlurmRequest
from launcher.submit.env_file import read_env_file
from launcher.submit.job_environment import environment_of
from launcher.transports.base import Transport, user_of
from recipes.planning import Setup

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.clusters.inventory import Detection, Partition
    from launcher.sites import Site
    from recipes.inheritance import Resolver


def complete(
    request: SubmitRequest,
    detection: Detection,
    transport: Transport,
    environment: Mapping[str, str],
    checkout: NemoCheckout | None,
    resolver: Resolver,
    root: str,
) -> tuple[Partition | None, JobOptions]:
    """Return the partition (None where Slurm does not list it) and the options of the job.

    `root` is where runs are kept: jobs see it, so it tells whether /tmp is shared.

    Raises:
        InputError: the request contradicts itself, or something is missing.
        RecipeError: the recipe cannot be read.
    """
    nodes = _valid_nodes(request, resolver)
    slurm = _slurm_request(request, detection, nodes)
    partition = detection.partition(slurm.partition)
    if partition is not None and (chosen := gpu_type_in(request, detection.site)):
        partition = partition.with_gpus_of(chosen)
    gpus_per_node = _gpus_per_node(request, detection, partition, resolver)
    shared = (root, *((checkout.path,) if checkout is not None else ()))
    secrets = resolver.resolve(request.recipe, request.overrides).secret_variables
    job = environment_of(
        request,
        detection.site,
        transport,
        environment,
        partition=slurm.partition,
        shared=shared,
        secrets=secrets,
    )
    if nodes == 1 and has_dedicated_head(job):
        raise InputError(
            "RAY_BARE_DEDICATED_HEAD=1 keeps one node for Ray's head, and none is left to work",
            fix="Give --nodes 2 or more, or --no-env RAY_BARE_DEDICATED_HEAD.",
        )
    options = JobOptions(
        request,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        user=user_of(transport, environment),
        slurm=slurm,
        keys={**job.secrets, **_env_file(request, transport)},
        checkout=checkout,
        environment=job,
    )
    return partition, options


def near_checkout(transport: Transport, request: SubmitRequest, resolver: Resolver) -> tuple[Path, ...]:
    """Return files that may lie in the checkout: the recipe, the current directory, the recipe's parents.

    Raises:
        RecipeError: the recipe cannot be read.
    """
    files = resolver.resolve(request.recipe, request.overrides).files
    here = transport.path("").absolute()
    return (request.recipe, here, *(transport.path(name) for name in reversed(files)))


def _valid_nodes(request: SubmitRequest, resolver: Resolver) -> int:
    """Return the nodes of a job.

    Raises:
        InputError: a size of the request is none.
        RecipeError: the recipe cannot be read.
    """
    nodes = nodes_of(request, resolver)
    if nodes < 1 or (request.gpus_per_node or 0) < 0 or request.chain < 1:
        raise InputError("--nodes and --chain must be whole numbers >= 1, --gpus-per-node one >= 0")
    return nodes


def _slurm_request(request: SubmitRequest, detection: Detection, nodes: int) -> SlurmRequest:
    """Return what is asked of Slurm: partition, account and time, where they were left open, too.

    Raises:
        InputError: there is no partition or no time limit to take.
    """
    _refuse_clusters(request, detection.site)
    limit_s = time_limit_of(request.time if request.time is not None else detection.defaults.time)
    name, reservation = _partition_name(request, detection, nodes, limit_s)
    partition = detection.partition(name)
    account = request.account or detection.account_for(partition)
    return SlurmRequest(
        partition=name,
        account=account,
        time_s=limit_s,
        qos=request.qos or qos_in(detection, partition, account),
        reservation=reservation,
        chain=request.chain,
        options=request.options,
        cluster=detection.defaults.cluster,
        without=detection.site.sbatch_without,
        gres=detection.lists_gpus or not detection.partitions,
    )


def sbatch_arguments(request: SubmitRequest, site: Site) -> tuple[str, ...]:
    """Return the arguments of sbatch as jobs get them: those of the profile before the request's own."""
    profile = site.profile(request.profile).sbatch_args if request.profile is not None else ()
    return (*profile, *request.sbatch_args)


def gpu_type_in(request: SubmitRequest, site: Site) -> str:
    """Return the type of GPU that an argument of sbatch asks for (`--gres=gpu:h100:4`); empty for any."""
    matches = [_GPU_TYPE.match(argument) for argument in sbatch_arguments(request, site)]
    return next((match[1] for match in reversed(matches) if match is not None), "")


_GPU_TYPE = re.compile(
    r"--(?:gres=(?:.*,)?gpu:|gpus-per-node=)([^:,=\s]*[^:,=\s\d][^:,=\s]*)(?::\d+)?(?:,|$)"
)


def _refuse_clusters(request: SubmitRequest, site: Site) -> None:
    """Refuse an argument of sbatch that sends jobs to another cluster than the one that is asked for them.

    Raises:
        InputError: there is one.
    """
    for argument in sbatch_arguments(request, site):
        if re.match(r"--clusters?\b|-M", argument):
            raise InputError(
                f"invalid sbatch argument '{argument}': jobs of another cluster would not be found again",
                fix="Name the cluster for all commands: export SLURM_CLUSTERS=NAME, then submit.",
            )


def qos_in(detection: Detection, partition: Partition | None, account: str | None) -> str | None:
    """Return the QoS of a request that names none: the shell's, else the only one that may be chosen."""
    if detection.defaults.qos is not None:
        return detection.defaults.qos
    choices = detection.qos_choices(partition, account) if partition is not None else ()
    return choices[0] if len(choices) == 1 else None


def time_limit_of(time: str | int | None) -> int:
    """Return a time limit in seconds.

    Raises:
        InputError: the time limit is invalid, or not given.
    """
    if time is None:
        raise InputError("no time limit", fix="Give --time, or `time` in a profile of your site.toml.")
    try:
        return parse_time_limit(time) if isinstance(time, str) else _positive(time)
    except DurationError as error:
        raise InputError(f"--time: {error}") from error


def _positive(seconds: int) -> int:
    if seconds <= 0:
        raise DurationError(f"invalid time limit '{seconds}' (expected seconds above 0)")
    return seconds


def nodes_of(request: SubmitRequest, resolver: Resolver) -> int:
    """Return the nodes that a request names, else the recipe's.

    Raises:
        RecipeError: the recipe cannot be read.
    """
    if request.nodes is not None:
        return request.nodes
    return Setup.of(resolver.resolve(request.recipe, request.overrides)).nodes


def _partition_name(
    request: SubmitRequest, detection: Detection, nodes: int, limit_s: int
) -> tuple[str, str | None]:
    """Return the partition and the reservation: as requested, the site's for tests, or the default.

    Raises:
        InputError: there is no default partition.
    """
    if request.kind == "smoke" and request.partition is None and request.reservation is None:
        target = smoke_target(detection, nodes, limit_s)
        if target is not None:
            return target
    name = request.partition or detection.default_partition
    if name is None:
        raise InputError(
            "this cluster has no default partition", fix="Give --partition; `detect` lists them."
        )
    return name, request.reservation or detection.defaults.reservation


def smoke_target(detection: Detection, nodes: int, limit_s: int) -> tuple[str, str | None] | None:
    """Return the site's partition and reservation for tests; None without any that takes the job."""
    default = detection.default_partition
    smoke = detection.site.smoke
    own = detection.partition(smoke.partition) if smoke.partition else None
    if own is not None and _admits(own.max_nodes, nodes) and _admits(own.max_time_s, limit_s):
        return own.name, None
    fits = _admits(smoke.max_nodes, nodes) and _admits(smoke.max_time_s, limit_s)
    return (default, smoke.reservation) if smoke.reservation and default and fits else None


def _admits(limit: int | None, value: int) -> bool:
    return limit is None or value <= limit


def _gpus_per_node(
    request: SubmitRequest, detection: Detection, partition: Partition | None, resolver: Resolver
) -> int:
    """Return the GPUs of each node: as requested, the partition's, the recipe's where Slurm lists none.

    Raises:
        InputError: the partition's nodes have none, and others have.
    """
    if request.gpus_per_node is not None:
        return request.gpus_per_node
    if partition is not None and (partition.gpus.count or request.kind == "rehearsal"):
        return partition.gpus.count
    if partition is not None and detection.lists_gpus:
        names = ", ".join(detection.gpu_partitions)
        raise InputError(
            f"the nodes of {partition.name} have no GPUs",
            fix=f"Give --partition; these have some: {names}.",
        )
    count = resolver.resolve(request.recipe, request.overrides).get("cluster.gpus_per_node", 1)
    return count if isinstance(count, int) else 1


def _env_file(request: SubmitRequest, transport: Transport) -> dict[str, str]:
    if request.env_file is None:
        return {}
    text = transport.read(str(request.env_file)).decode(errors="replace")
    return read_env_file(text, request.env_file)
