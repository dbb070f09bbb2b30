"""Generic resources (GRES), as sinfo and scontrol write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from launcher.clusters.inventory import Gpus
from launcher.clusters.slurm.parse import ParseError


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource of a node."""

    name: str
    type: str
    """Empty where it has none."""
    count: int


def read_gres(text: str) -> tuple[Gres, ...]:
    """Read a list of generic resources: `gpu:a100:4(S:0-1),nvme:1600`.

    Commas stand between entries and within `(S:1,3)`; types hold dots, dashes and underscores; an entry may
    have further parts (`pfsdir:scratch:no_consume:1`) and a count with a unit (`shard:4K`). What is no
    GPU may have any form, and is left out where it is not understood.

    Raises:
        ParseError: an entry for GPUs is none.
    """
    text = text.strip()
    if text.lower() in ("", "(null)", "n/a", "none"):
        return ()
    resources = []
    for entry in re.split(r",(?![^(]*\))", text):
        bare = re.sub(r"\([^)]*\)", "", entry)
        match = re.fullmatch(r"([A-Za-z][\w-]*)((?::[^:\s]+)*?)(?::(\d+)([KMG]?))?", bare)
        if match is None:
            if not re.match(r"\w[\w-]*:", bare) or bare.startswith("gpu:"):
                raise ParseError("list of generic resources", text)
            continue
        name, middle, count, unit = match.groups()
        kind = ":".join(part for part in middle.split(":") if part and part != "no_consume")
        factor = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(unit or "", 1)
        resources.append(Gres(name, kind, int(count) * factor if count else 1))
    return tuple(resources)


def gpus_of(gres: tuple[Gres, ...]) -> Gpus:
    """Return the GPUs among the resources of a node."""
    gpus = [item for item in gres if item.name == "gpu"]
    return Gpus(sum(item.count for item in gpus), "+".join(item.type for item in gpus if item.type))
