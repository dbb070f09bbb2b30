"""How a DTensor worker wraps its model: checkpoints, FSDP units, prefetch, tied weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Checkpoints = Literal["parts", "layers", "layers outside FSDP"]
"""Recomputed units: a layer's norms, attention and MLP each; whole layers within FSDP's hooks; whole layers
around them, which makes FSDP gather a layer again after its backward pass."""


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Traits of a DTensor worker that decide its memory.

    `last_layer_kept`: the last layer is not resharded after the forward pass. `explicit_prefetch`: each layer
    gathers the next one in its forward hook. `bare_on_one_gpu`: no FSDP on one GPU. `ties_again`: a tied head
    is tied again after loading, also under tensor parallelism. `keeps_losses`: each micro batch's loss, with
    what its graph holds, lives to the end of the step. `logits_held`: the logits live until the optimizer
    steps, and norms return bf16; no worker does so, a measuring script did.
    """

    name: str
    checkpoints: Checkpoints = "parts"
    last_layer_kept: bool = False
    explicit_prefetch: bool = False
    bare_on_one_gpu: bool = False
    ties_again: bool = True
    keeps_losses: bool = False
    logits_held: bool = False

    @property
    def holds_layers(self) -> bool:
        """Return whether recomputing a layer gathers the one behind it, and nobody frees that."""
        return self.checkpoints == "layers outside FSDP" and self.explicit_prefetch


V1 = Wrapping("v1")
V1_UNTIED = Wrapping("v1, not tied again", ties_again=False)
V2_PARTS = Wrapping("v2, parts checkpointed", last_layer_kept=True, ties_again=False)
V2_PLAIN = Wrapping(
    "v2, reentrant checkpoints",
    "layers outside FSDP",
    last_layer_kept=True,
    bare_on_one_gpu=True,
    keeps_losses=True,
)
V2_HOLDING = Wrapping(
    "v2, reentrant checkpoints and explicit prefetch",
    "layers outside FSDP",
    last_layer_kept=True,
    explicit_prefetch=True,
    bare_on_one_gpu=True,
    keeps_losses=True,
)
V2_INSIDE = Wrapping(
    "v2, layers checkpointed within FSDP",
    "layers",
    last_layer_kept=True,
    explicit_prefetch=True,
    bare_on_one_gpu=True,
    keeps_losses=True,
)
