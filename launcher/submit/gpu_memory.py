"""The memory of GPUs that a site does not know: given by the user, remembered by site and type of GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from launcher.clusters.inventory import Detection, Partition


def gpu_type(partition: Partition) -> str:
    """Return the type of a partition's GPUs as the site's table has it."""
    return (partition.gpus.type or "gpu").lower()


def with_gpu_memory(
    detection: Detection, given_gib: int | None, remembered: Mapping[str, float]
) -> Detection:
    """Return the detection with remembered memory below the site's own, and the given one (GiB) above it."""
    site = detection.site
    known = {**remembered, **site.gpu_memory_gib}
    if given_gib is not None:
        listed = [item for item in detection.partitions if item.gpus.count] or detection.partitions
        known |= {gpu_type(item): float(given_gib) for item in listed}
        known |= {kind.lower(): float(given_gib) for item in listed for kind in item.gpu_types if kind}
    return (
        detection
        if known == site.gpu_memory_gib
        else replace(detection, site=replace(site, gpu_memory_gib=known))
    )
