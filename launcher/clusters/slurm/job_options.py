"""What a user chose for a submission, and what that costs at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from launcher.runs import Launcher, SlurmRequest
from launcher.sites import Profile, Site
from launcher.submit.checkout import NemoCheckout

SECRET_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY")
"""Taken from the environment of the program; others come with an env file."""
Kind = Literal["rehearsal", "smoke", "training"]


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What the user chose."""

    kind: Kind
    nodes: int
    gpus_per_node: int
    request: SlurmRequest
    user: str
    profile: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    """Secrets; they reach the driver through a file that only the user can read."""
    sbatch_args: tuple[str, ...] = ()
    checkout: NemoCheckout | None = None
    launcher: Launcher = "ray_bare"
    container: str | None = None
    """The image that `ray.sub` runs in; None: the profile's or the site's."""
    mounts: tuple[str, ...] = ()
    """What the container sees besides: `SOURCE:TARGET[:OPTIONS]`."""

    def profile_of(self, site: Site) -> Profile:
        """Return the chosen profile; an empty one where none is chosen."""
        return site.profiles[self.profile] if self.profile is not None else Profile()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a submission costs at most."""

    node_hours: float
    gpu_hours: float
    core_hours: float | None = None
    """What many sites charge; None where the cores of a node are not known."""

    @staticmethod
    def of(choices: JobOptions, cores: int | None = None) -> Cost:
        """Return the cost when every job takes all of its time; `cores` are those of a node."""
        time_s = choices.request.time_s * choices.request.chain
        return cost_of(choices.nodes, choices.gpus_per_node, time_s, cores)


def cost_of(nodes: int, gpus_per_node: int, time_s: int, cores: int | None = None) -> Cost:
    """Return what nodes cost for some seconds."""
    hours = nodes * time_s / 3600
    core_hours = round(hours * cores, 3) if cores is not None else None
    return Cost(round(hours, 3), round(hours * gpus_per_node, 3), core_hours)
