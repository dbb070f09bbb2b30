"""What a user asks the doctor about: a recipe with its choices, or what every run needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.request import Kind, SubmitRequest

if TYPE_CHECKING:
    from launcher.runs import RunSpec


@dataclass(frozen=True, slots=True)
class DoctorRequest:
    """A user's request to the doctor; None leaves the choice to the cluster and the recipe."""

    recipe: Path | None = None
    overrides: tuple[str, ...] = ()
    kind: Kind = "training"
    nodes: int | None = None
    time: str | int | None = None
    partition: str | None = None
    account: str | None = None
    profile: str | None = None
    checkout: str | None = None
    modules: str | None = None
    container: str | None = None
    """Image, where the job runs in one."""

    def as_submit(self) -> SubmitRequest:
        """Return the request of a submission that asks for the same."""
        return SubmitRequest(
            self.recipe or Path(),
            self.nodes,
            self.time,
            overrides=self.overrides,
            kind=self.kind,
            partition=self.partition,
            account=self.account,
            profile=self.profile,
            checkout=self.checkout,
            modules=self.modules,
            launcher="ray.sub" if self.container else "ray_bare",
            container=self.container,
        )

    @classmethod
    def of_submission(cls, request: SubmitRequest) -> DoctorRequest:
        """Return the request that a request for a submission comes to."""
        if request.kind == "rehearsal":  # it needs neither the recipe's models nor the checkout
            return cls()
        return cls(
            request.recipe,
            request.overrides,
            request.kind,
            request.nodes,
            request.time,
            request.partition,
            request.account,
            request.profile,
            request.checkout,
            request.modules,
            request.container,
        )

    @classmethod
    def of_run(cls, spec: RunSpec) -> DoctorRequest | None:
        """Return the request for another run like one that there is; None where its recipe is unknown."""
        if spec.kind not in ("training", "smoke") or not Path(spec.recipe.source).is_absolute():
            return None
        slurm = spec.slurm
        return cls(
            Path(spec.recipe.source),
            spec.recipe.overrides,
            spec.kind,
            spec.nodes,
            slurm.time_s if slurm is not None else None,
            slurm.partition if slurm is not None else None,
            slurm.account if slurm is not None else None,
            checkout=spec.checkout,
        )
