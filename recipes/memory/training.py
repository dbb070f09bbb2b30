"""Moments of a training step, and of a teacher's forward pass, on the DTensor path.

NeMo-RL loads parameters in fp32, computes in bf16, reduces gradients in fp32 and returns fp32 logits; FSDP2
divides parameters, gradients and Adam's moments over all ranks that tensor parallelism leaves. A student's
peak is the highest moment of the second step, when Adam's moments exist. Byte counts are those of the tensors
that live then; docs/memory.md explains them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.activations import activations, held_arguments
from recipes.memory.logits import loss_logits
from recipes.memory.rank_sizes import RankSizes, gib
from recipes.memory.shapes import SLACK_GIB, MemoryTerm, Moment, Work
from recipes.memory.states import (
    WORKSPACE,
    gathered_root,
    gradients,
    held_layers,
    held_logits,
    optimizer_temporaries,
    several,
    states,
    weights,
    whole_layer_checkpoints,
)
from recipes.memory.unsharded import bf16_copies, unsharded_moments

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACES = {"layer": "", "mlp": ", in an MLP", "norm": ", in a norm"}


def student_moments(work: Work) -> tuple[Moment, ...]:
    """Return the moments of a training step."""
    sizes = RankSizes(work)
    if work.unsharded:
        return tuple(unsharded_moments(sizes))
    root = () if work.lora_rank else tuple(_root(sizes))
    return (_loss(sizes), *_layers(sizes), *root, _optimizer(sizes))


def teacher_moments(work: Work) -> tuple[Moment, ...]:
    """Return the moments of a teacher's forward pass."""
    sizes = RankSizes(work)
    segments = MemoryTerm("segments of the allocator", 0.0 if work.cpu_offload else gib(sizes.rounding))
    common = (weights(sizes), segments)
    if work.unsharded:
        gathered: tuple[MemoryTerm, ...] = (bf16_copies(sizes),)
    else:
        gathered = (gathered_root(sizes), *_last_layer(sizes))
    logits = MemoryTerm("logits", gib(6 * sizes.logits), "6 T")
    terms = (*common, *gathered, logits, WORKSPACE)
    cast = Moment("logits", "logits are cast to fp32", terms, _pinned(sizes))
    return (cast,) if work.shards == 1 else (_gathering(sizes, common), cast)


def _gathering(sizes: RankSizes, common: tuple[MemoryTerm, ...]) -> Moment:
    """Return the start of a forward pass: the root's all-gather buffer is copied out, the first layer comes.

    It is the highest moment where sequences are short.
    """
    terms = (
        *common,
        gathered_root(sizes),
        MemoryTerm("root's all-gather buffer", gib(2 * sizes.root), "2 R"),
        MemoryTerm("first layer with its buffer", gib(4 * sizes.layer), "4 P1"),
        WORKSPACE,
    )
    return Moment("gather", "embedding and head are gathered", terms, gib(2 * sizes.layer))


def _pinned(sizes: RankSizes) -> float:
    """Return GiB beyond the slack of what a forward pass leaves in blocks that cannot be given back.

    Small tensors that live on pin the blocks they were cut from: half of the gathered root's, one layer's,
    and twelve fp32 activations' (docs/memory.md).
    """
    pinned = sizes.root + 2 * sizes.layer + 24 * sizes.hidden_bytes
    return max(gib(pinned) - SLACK_GIB, 0.0)


def _last_layer(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield a scoring model's last layer: gathered, and where it is not resharded, its all-gather buffer."""
    count = (2 if sizes.work.shards > 1 else 0) + (2 if sizes.work.wrapping.last_layer_kept else 0)
    if count:
        yield MemoryTerm("last layer", gib(count * sizes.layer), f"{count} P1")


def _loss(sizes: RankSizes) -> Moment:
    """Return the moment when the loss has been differentiated down to the logits."""
    kept: tuple[MemoryTerm, ...] = ()
    if sizes.work.wrapping.last_layer_kept:
        kept = (MemoryTerm("last layer, not resharded", gib(sizes.gathered_layer), "2 P1"),)
    terms = (
        *states(sizes),
        gradients(sizes, early=True),
        gathered_root(sizes),
        *kept,
        activations(sizes),
        *held_arguments(sizes),
        loss_logits(sizes),
        WORKSPACE,
    )
    return Moment("loss", "the loss is differentiated", terms, gib(2 * sizes.logits))


def _layers(sizes: RankSizes) -> Iterator[Moment]:
    """Yield one layer's backward pass: when all activations are kept, and when all gradients are there.

    At the end, reentrant checkpoints hold the layers that were gathered again.
    """
    less = (4 * sizes.root + 8 * sizes.layer) / sizes.work.shards
    late = gradients(sizes, less=less, formula="4 G/W - (4 R + 8 P1)/N")
    common = (*states(sizes), *held_arguments(sizes), *held_logits(sizes), gathered_root(sizes))
    head = () if sizes.work.lora_rank else (MemoryTerm("head's gradient", gib(2 * sizes.embedding), "2 E"),)
    early = (gradients(sizes, early=True), _activations_left(sizes))
    block = gib(4 * sizes.layer)
    for name, term in _one_layer(sizes, first=True):
        terms = (*common, *early, *head, term, WORKSPACE)
        yield Moment(f"{name}-first", f"the backward pass begins{_PLACES[name]}", terms, block)
    for name, term in _one_layer(sizes, first=False):
        terms = (*common, late, *head, *held_layers(sizes), term, WORKSPACE)
        yield Moment(f"{name}-last", f"the backward pass ends{_PLACES[name]}", terms, block)


def _activations_left(sizes: RankSizes) -> MemoryTerm:
    """Return the activations when the first layer's backward pass is over, which frees its own.

    With checkpoints, and where whole layers are counted, they are as good as all of them.
    """
    term, work = activations(sizes), sizes.work
    if work.checkpointing or whole_layer_checkpoints(sizes):
        return term
    own = gib(sizes.tokens * sizes.inner)
    return MemoryTerm(term.name, term.gib - own, term.formula.replace("L I", "(L - 1) I"))


def _one_layer(sizes: RankSizes, *, first: bool) -> Iterator[tuple[str, MemoryTerm]]:
    """Yield what one layer's backward pass takes.

    Parts checkpointed: the layer and the next gathered (4 P1), its bf16 gradients (2), the fp32 reduce buffer
    of the one before (4). Whole layers: within the MLP, or in the norm after it, where TP makes the MLP
    small; their counts were read from traces of the allocator (docs/memory.md).
    """
    name = "one layer's backward pass"
    many = sizes.work.shards > 1
    if not whole_layer_checkpoints(sizes):
        count = 10 if many else 12
        yield "layer", MemoryTerm(name, gib(count * sizes.layer), f"{count} P1")
        return
    facts, split, tokens = sizes.work.facts, sizes.split, sizes.tokens
    inner = sizes.inner if sizes.work.checkpointing else 0.0
    kept = "I + " if inner else ""
    less = 4 if first and not many else 0
    mlp = (6.5 - less) * sizes.layer + tokens * (inner + 14 * facts.hidden + 6 * facts.ffn / split)
    norm = (7.5 - less) * sizes.layer + tokens * (inner + 31 * facts.hidden - 8 * facts.ffn / split)
    yield "mlp", MemoryTerm(name, gib(mlp), f"{6.5 - less} P1 + t ({kept}14 H + 6 F/TP)")
    yield "norm", MemoryTerm(name, gib(max(norm, 0.0)), f"{7.5 - less} P1 + t ({kept}31 H - 8 F/TP)")


def _root(sizes: RankSizes) -> Iterator[Moment]:
    """Yield the end of the backward pass: undivided gradients of embedding and head, added up and reduced.

    The block: the reduction asks for 4 R in one piece.
    """
    formula = "4 G/W - 4 R/N"
    grads = gradients(sizes, less=4 * sizes.root / sizes.work.shards, formula=formula)
    common = (*states(sizes), grads, *held_arguments(sizes), *held_layers(sizes), *held_logits(sizes))
    block = gib(4 * sizes.root)
    for id_, title, own in (
        ("root-added", "the embedding's gradient is added", _added(sizes)),
        ("root-reduced", "the root's gradients are reduced", _reduced(sizes)),
    ):
        yield Moment(id_, title, (*common, *own, WORKSPACE), block)


def _added(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield gathered matrices and gradients; of one matrix, the head's, the embedding's and their sum."""
    yield gathered_root(sizes)
    if sizes.two:
        yield MemoryTerm("root's gradients", gib(2 * sizes.root), "2 R")
    else:
        yield MemoryTerm("root's gradients", gib(6 * sizes.embedding), "6 E")
    yield MemoryTerm("first layer's gradients", gib(4 * sizes.layer), "4 P1")


def _reduced(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield the bf16 gradients with the fp32 buffer made of them, or that buffer with its divided result."""
    many, root, shards = sizes.work.shards > 1, sizes.root, sizes.work.shards
    parts = not whole_layer_checkpoints(sizes)
    result = 4 * root / shards if many or several(sizes) else 0.0
    bf16 = 2 * sizes.embedding if sizes.two and many and not parts else 0.0
    if 4 * root + result + bf16 > 6 * root:
        formula = "4 R" + (" + 4 R/N" if result else "") + (" + 2 E" if bf16 else "")
        yield MemoryTerm("root's gradients", gib(4 * root + result + bf16), formula)
    else:
        yield MemoryTerm("root's gradients", gib(6 * root), "6 R")
    if parts and many:
        yield MemoryTerm("first layer's gradients", gib(4 * sizes.layer), "4 P1")


def _optimizer(sizes: RankSizes) -> Moment:
    """Return Adam's update of the largest matrix."""
    terms = (
        *states(sizes),
        gradients(sizes, less=0.0),
        *held_arguments(sizes),
        *held_logits(sizes),
        optimizer_temporaries(sizes),
        WORKSPACE,
    )
    return Moment("optimizer", "the optimizer steps", terms, gib(4 * sizes.largest))
