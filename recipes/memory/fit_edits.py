"""The edits that turn one work into another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.planning.edits import Fix, RecipeEdit
from recipes.planning.sizes import nearest_multiple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.memory.demand import Demand
    from recipes.memory.shapes import Work
    from recipes.planning.setup import Side

_FORMAT = "checkpointing.model_save_format"
_Change = tuple[str, object, str]
"""A key, its new value, and the words for it; "" where it only follows from another change."""


def fix_of(demand: Demand, side: Side, work: Work, to: Work, nodes: int) -> Fix:
    """Return the edits that turn a side's work into another, on so many nodes."""
    setup = demand.setup
    changes: list[_Change] = []
    if nodes != setup.nodes:
        changes.append(("cluster.num_nodes", nodes, f"{nodes} nodes"))
    changes.extend(_sizes(side, work, to))
    changes.extend(_settings(side, work, to))
    changes.extend(_shorter(side, work, to))
    divisor = setup.policy.divisor
    if to.cp > 1 and divisor % (2 * to.cp):
        padded = nearest_multiple(divisor, 2 * to.cp)[-1]
        changes.append(("policy.make_sequence_length_divisible_by", padded, ""))
    edits = tuple(
        RecipeEdit(key, side.recipe.get(key), value, absent=not side.recipe.has(key))
        for key, value, _ in changes
    )
    return Fix(f"{side.name}: " + ", ".join(words for _, _, words in changes if words), edits)


def _sizes(side: Side, work: Work, to: Work) -> Iterator[_Change]:
    if work.tp != to.tp:
        yield side.size_key("tp"), to.tp, f"TP {to.tp}"
    if work.cp != to.cp:
        yield side.size_key("cp"), to.cp, f"CP {to.cp}"
    if work.pp != to.pp:
        yield side.size_key("pp"), to.pp, f"PP {to.pp}"


def _settings(side: Side, work: Work, to: Work) -> Iterator[_Change]:
    if to.wrapping is not work.wrapping:
        yield side.key("dtensor_cfg._v2"), False, "DTensor v1"
        if side.name == "policy" and side.recipe.get(_FORMAT) is not None:
            yield _FORMAT, None, ""  # v1 has none of its own
    if to.checkpointing != work.checkpointing:
        yield side.key(f"{side.section}.activation_checkpointing"), True, "activation checkpointing"
    if to.cpu_offload != work.cpu_offload:
        yield side.key("dtensor_cfg.cpu_offload"), True, "CPU offload"


def _shorter(side: Side, work: Work, to: Work) -> Iterator[_Change]:
    """Yield the changes of a smaller micro batch and of shorter sequences."""
    kind = "train" if side.name == "policy" else "logprob"
    if to.rows < work.rows:
        name = "train_micro_batch_size" if kind == "train" else "logprob_batch_size"
        yield side.key(name), to.rows, f"micro batch {to.rows}"
    before, after = work.tokens // work.rows, to.tokens // to.rows
    if after < before:
        yield "policy.max_total_sequence_length", after, f"sequences of {after} tokens"
        yield "teacher.max_total_sequence_length", after, ""
    if to.tokens == work.tokens:
        return
    for batching, on in (("dynamic_batching", side.dynamic), ("sequence_packing", side.packing)):
        if on:
            yield side.key(f"{batching}.{kind}_mb_tokens"), to.tokens, ""
