"""A job with NeMo-RL's own `ray.sub`: Ray and driver run in a container that Slurm's Pyxis plugin starts.

It reads CONTAINER, MOUNTS, COMMAND, GPUS_PER_NODE and BASE_LOG_DIR (NeMo-RL's `ray.sub` and docs/cluster.md),
starts in the directory that sbatch was called in, mounts no home, and hands lists on unquoted. It wants all
GPUs of its nodes, and a partition for which sinfo prints one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from launcher.clusters.slurm.batch import Batch, common_environment, driver_command, job_script
from launcher.clusters.slurm.job_options import JobOptions
from launcher.clusters.slurm.partitions import Partition
from launcher.errors import InputError
from launcher.scripts import script_path
from launcher.sites import Site
from launcher.transports.base import Transport

SCRIPT = "ray.sub"
_OURS = "RAY_BARE_"
_END = (
    "# The container has no squeue: until when the job may run is found out here.",
    'left=$(bash "$RUN_DIR/chain.sh" left) && export CHAIN_JOB_END=$(($(date +%s) + left))',
)


def contained(
    transport: Transport,
    environment: Mapping[str, str],
    site: Site,
    choices: JobOptions,
    directory: Path,
    *,
    saves: bool,
) -> Batch:
    """Return what a job with `ray.sub` consists of.

    Raises:
        InputError: the checkout has no `ray.sub`, the container is not known, or a path cannot be mounted.
    """
    if choices.checkout is None:
        raise InputError(
            "a rehearsal runs without a container", fix="Leave --launcher out, or use --smoke instead."
        )
    script = str(Path(choices.checkout.path, SCRIPT))
    if transport.stat(script) is None:
        raise InputError(
            "this checkout has no ray.sub", where=choices.checkout.path, fix="Use --launcher ray_bare."
        )
    common = common_environment(environment, site, choices)
    argv = ["uv", "run", "python", choices.checkout.driver]
    return Batch(
        {
            SCRIPT: transport.read(script),
            "chain.sh": script_path("chain.sh").read_bytes(),
            "job.sh": job_script(site, choices, SCRIPT, _END if saves else ()),
        },
        {
            **{name: value for name, value in common.items() if not name.startswith(_OURS)},
            "BASE_LOG_DIR": str(directory / "logs"),
            "COMMAND": driver_command(argv, choices, directory, saves=saves),
            "CONTAINER": container_of(choices, site),
            "GPUS_PER_NODE": str(choices.gpus_per_node),
            "MOUNTS": ",".join(mounts_of(choices, site, choices.checkout.path, directory)),
            "RUN_DIR": str(directory),
        },
        choices.checkout.path,
    )


def container_of(choices: JobOptions, site: Site) -> str:
    """Return the image: as chosen, else the profile's, else the site's.

    Raises:
        InputError: none is known, or its name cannot be handed on.
    """
    image = choices.container or choices.profile_of(site).container or site.container
    if not image:
        raise InputError(
            "which container ray.sub runs in is not known",
            fix='Give --container IMAGE, or write container = "…" under [job] into your site.toml.',
        )
    if re.search(r"\s", image):
        raise InputError(f"the container's name '{image}' has a blank in it", fix="ray.sub cannot take it.")
    return image


def mounts_of(choices: JobOptions, site: Site, checkout: str, directory: Path) -> tuple[str, ...]:
    """Return what the container sees: the checkout, the run's directory, and what site, profile and user add.

    Raises:
        InputError: one is no mount, or has what separates mounts in its path.
    """
    for path in (checkout, str(directory)):
        if re.search(r"[\s:,]", path):
            raise InputError("ray.sub cannot mount a path with a blank, a colon or a comma in it", where=path)
    given = (*site.mounts, *choices.profile_of(site).mounts, *choices.mounts)
    for mount in given:
        if not re.fullmatch(r"/[^\s:,]*:/[^\s:,]*(:[^\s:,]+)?", mount):
            raise InputError(
                f"'{mount}' is no mount", fix="Write it as /SOURCE:/TARGET, or /SOURCE:/TARGET:ro."
            )
    own = (f"{checkout}:{checkout}", f"{directory}:{directory}")
    return tuple(dict.fromkeys((*own, *given)))


def doubts(partition: Partition | None, gpus_per_node: int) -> tuple[str, ...]:
    """Return what of a partition `ray.sub` will stumble over (its function maybe_gres_arg)."""
    if partition is None or not partition.gpus.count:
        return ()
    if len(partition.mix) > 1:
        return (
            f"the nodes of {partition.name} have different GPUs, which ray.sub cannot count: it may stop",
        )
    if gpus_per_node != partition.gpus.count:
        return (f"ray.sub stops unless it is given all {partition.gpus.count} GPUs of a node",)
    return ()


def unseen(paths: Iterable[str], mounts: Iterable[str]) -> tuple[str, ...]:
    """Return the absolute paths that no mount shows in the container."""
    targets = [PurePosixPath(mount.split(":")[1]) for mount in mounts]
    return tuple(
        path
        for path in paths
        if path.startswith("/") and not any(PurePosixPath(path).is_relative_to(one) for one in targets)
    )
