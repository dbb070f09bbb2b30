from typing import Any, NotRequired, TypedDict


class Loop(TypedDict):
    max_num_steps: int
    seed: NotRequired[int]
    share: float


class MasterConfig(TypedDict):
    policy: dict[str, Any]
    distillation: Loop
