"""A small checkout whose driver validates: every way of writing a configuration class that is in use."""

import os
from typing import Annotated, Any, Optional, Union

from nemo_rl.data import *
from nemo_rl.models import PolicyConfig as Student
from nemo_rl.models.backend import BackendConfig, apply_transport
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, field_validator

PathLike = Union[str, "os.PathLike[Any]"]
LARGEST = 2 * 1024


class Loop(BaseModel, extra="allow"):
    # How many steps,
    # counted from one.
    max_num_steps: int = 1000
    period: NonNegativeInt = 0
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    size: int = Field(default=64, ge=1, lt=LARGEST)
    names: dict[str, list[str]] = Field(default_factory=lambda: {"a": []})
    limit: Optional[float]  # null for none
    other_name: str = Field("x", alias="other-name")


class Closed(BaseModel):
    """Extra keys are refused here."""

    model_config = ConfigDict(extra="forbid")

    on: bool
    text: str = Field("", max_length=5)
    """How it is called."""


class Checked(BaseModel):
    after: int
    before: int

    @field_validator("before", mode="before")
    @classmethod
    def _first(cls, value: Any) -> Any:
        return len(value) if isinstance(value, str) else value


class MasterConfig(BaseModel, extra="allow"):
    """Main configuration structure."""

    policy: Student
    teacher: Student
    distillation: Loop
    data: DataConfig
    closed: Closed = Closed(on=True)
    checked: Checked | None = None
    env: dict[str, Any] = {}
    directory: PathLike = "results"


def setup(master_config: MasterConfig) -> None:
    policy = master_config.policy
    generation = policy["generation"]
    if generation["backend"] == "fast":
        apply_transport(generation)
    extra = master_config.env
    if extra.get("backend") is not None:
        BackendConfig(**extra["backend"])
