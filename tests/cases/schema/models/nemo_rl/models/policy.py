from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Literal, NewType, NotRequired, Required

from typing_extensions import TypedDict

from . import kinds
from .kinds import Kind

Whole = NewType("Whole", int)
Order = Literal["first", "last"]
Milestones = dict[str, list[int]]


class Colour(str, Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Plain(Enum):
    A = "a"
    ONE = 1


@dataclass
class Window:
    width: int
    height: int = 3


class Off(TypedDict):
    enabled: Literal[False]


class On(TypedDict):
    """A section that is switched on.

    Attributes:
        tensor_parallel_size (int): Over how many GPUs
            a layer is cut.
    """

    enabled: Literal[True]
    _v2: NotRequired[bool]
    _target_: NotRequired[str]
    tensor_parallel_size: int
    plan: NotRequired[str | None]


class Loose(TypedDict, total=False):
    width: int
    kept: Required[int]


class Loosest(Loose):
    third: "list[Loose] | None"


Made = TypedDict("Made", {"not-a-name": int, "other": NotRequired[str]})


class GenerationConfig(TypedDict):
    backend: str
    top_k: int | None


class Node(TypedDict):
    value: int
    below: NotRequired["Node"]


class PolicyConfig(TypedDict):
    model_name: str
    dtensor_cfg: On | Off
    generation: NotRequired[GenerationConfig]
    loose: NotRequired[Loosest]
    made: NotRequired[Made]
    colour: NotRequired[Colour]
    level: NotRequired[Level]
    plain: NotRequired[Plain]
    window: NotRequired[Window]
    kind: NotRequired[Kind]
    other_kind: NotRequired["kinds.Kind | Literal[3, True]"]
    order: NotRequired[Order | None]
    whole: NotRequired[Whole]
    pair: NotRequired[tuple[int, str]]
    many: NotRequired[tuple[int, ...]]
    unique: NotRequired[set[int]]
    scheduler: NotRequired[list[On | Off] | Milestones | None]
    node: NotRequired[Node]
    max_grad_norm: NotRequired[float | int | None]
    anything: NotRequired[Any]
