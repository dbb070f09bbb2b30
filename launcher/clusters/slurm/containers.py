"""A job with NeMo-RL's own `ray.sub`: Ray and driver run in a container that Slurm's Pyxis plugin starts.

It reads CONTAINER, MOUNTS, COMMAND, GPUS_PER_NODE and BASE_LOG_DIR (NeMo-RL's `ray.sub` and docs/cluster.md),
starts in the directory that sbatch was called in, mounts no home, and hands lists on unquoted. It wants all
GPUs of its nodes, and a partition for which sinfo prints one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from launcher.checkout import NemoCheckout
from launcher.clusters.base import RunLayout
from launcher.clusters.inventory import Partition
from launcher.clusters.slurm.batch import Batch, common_environment, driver_command, job_script
from launcher.errors import InputError
from launcher.request import JobOptions
from launcher.scripts import script_path
from launcher.sites import Site
from launcher.transports.base import Transport

SCRIPT = "ray.sub"
_RAY_BARE_PREFIX = "RAY_BARE_"
_JOB_END = (
    "# The container has no squeue: until when the job may run is found out here.",
    'left=$(bash "$RUN_DIR/chain.sh" left) && export CHAIN_JOB_END=$(($(date +%s) + left))',
)


def container_batch(
    transport: Transport,
    environment: Mapping[str, str],
    site: Site,
    options: JobOptions,
    directory: Path,
    *,
    saves: bool,
) -> Batch:
    """Return the files and the environment of a job with `ray.sub`.

    Raises:
        InputError: the checkout has no `ray.sub`, no image is given, or a path cannot be mounted.
    """
    checkout = _checkout_with_script(transport, options)
    common = common_environment(environment, options)
    argv = ["uv", "run", "python", checkout.driver]
    return Batch(
        {
            SCRIPT: transport.read(str(Path(checkout.path, SCRIPT))),
            "chain.sh": script_path("chain.sh").read_bytes(),
            "job.sh": job_script(environment, site, options, SCRIPT, _JOB_END if saves else ()),
        },
        {
            **{name: value for name, value in common.items() if not name.startswith(_RAY_BARE_PREFIX)},
            "BASE_LOG_DIR": str(directory / "logs"),
            "COMMAND": driver_command(argv, options, directory, saves=saves),
            "CONTAINER": container_of(options, site),
            "GPUS_PER_NODE": str(options.gpus_per_node),
            "MOUNTS": ",".join(mounts_of(options, site, checkout.path, directory)),
            "RUN_DIR": str(directory),
        },
        checkout.path,
    )


def _checkout_with_script(transport: Transport, options: JobOptions) -> NemoCheckout:
    if options.checkout is None:
        raise InputError(
            "a rehearsal runs without a container", fix="Omit --launcher, or use --smoke instead."
        )
    if transport.stat(str(Path(options.checkout.path, SCRIPT))) is None:
        raise InputError(
            "this checkout has no ray.sub", where=options.checkout.path, fix="Use --launcher ray_bare."
        )
    return options.checkout


def container_of(options: JobOptions, site: Site) -> str:
    """Return the image: the request's, else the profile's, else the site's.

    Raises:
        InputError: no image is given, or its name has a blank.
    """
    image = options.request.container or options.profile_of(site).container or site.container
    if not image:
        raise InputError(
            "no container image for ray.sub",
            fix='Give --container IMAGE, or write container = "…" under [job] into your site.toml.',
        )
    if re.search(r"\s", image):
        raise InputError(
            f"invalid container image '{image}': it has a blank in it",
            fix="ray.sub needs a name without blanks.",
        )
    return image


def mounts_of(options: JobOptions, site: Site, checkout: str, directory: Path) -> tuple[str, ...]:
    """Return the container's mounts: checkout, run directory, and those of site, profile and user.

    Raises:
        InputError: a mount is invalid, or a path has a character that separates mounts.
    """
    for path in (checkout, str(directory)):
        if re.search(r"[\s:,]", path):
            raise InputError("ray.sub cannot mount a path with a blank, a colon or a comma in it", where=path)
    given = (*site.mounts, *options.profile_of(site).mounts, *options.request.mounts)
    for mount in given:
        if not re.fullmatch(r"/[^\s:,]*:/[^\s:,]*(:[^\s:,]+)?", mount):
            raise InputError(
                f"invalid mount '{mount}' (expected /SOURCE:/TARGET or /SOURCE:/TARGET:ro)",
                fix="Correct --mounts, or your site.toml.",
            )
    own = (f"{checkout}:{checkout}", f"{directory}:{directory}")
    return tuple(dict.fromkeys((*own, *given)))


_PATH_KEYS = (
    "checkpointing.checkpoint_dir",
    "logger.log_dir",
    "policy.model_name",
    "policy.tokenizer.name",
    "teacher.model_name",
    "teacher.tokenizer.name",
)
"""Keys by which recipes name files; relative ones count from the checkout, which a container sees."""


def container_hints(layout: RunLayout, partition: Partition | None) -> tuple[str, ...]:
    """Return hints about a run with `ray.sub`: GPUs that it rejects, and files outside all mounts."""
    options = layout.options
    checkout = options.checkout.path if options.checkout is not None else ""
    mounts = mounts_of(options, layout.site, checkout, layout.directory)
    values = (layout.recipe.get(key) for key in _PATH_KEYS)
    paths = unmounted((value for value in values if isinstance(value, str)), mounts)
    hidden = (f"{path} is in no mount: the container cannot read it (--mounts)" for path in paths)
    return (*gpu_hints(partition, options.gpus_per_node), *hidden)


def gpu_hints(partition: Partition | None, gpus_per_node: int) -> tuple[str, ...]:
    """Return why `ray.sub` may reject a partition's GPUs (its function maybe_gres_arg)."""
    if partition is None or not partition.gpus.count:
        return ()
    if len(partition.mix) > 1:
        return (
            f"the nodes of {partition.name} have different GPUs, which ray.sub does not support: it may stop",
        )
    if gpus_per_node != partition.gpus.count:
        return (f"ray.sub stops unless it is given all {partition.gpus.count} GPUs of a node",)
    return ()


def unmounted(paths: Iterable[str], mounts: Iterable[str]) -> tuple[str, ...]:
    """Return the absolute paths that are in no mount."""
    targets = [PurePosixPath(mount.split(":")[1]) for mount in mounts]
    return tuple(
        path
        for path in paths
        if path.startswith("/") and not any(PurePosixPath(path).is_relative_to(one) for one in targets)
    )
