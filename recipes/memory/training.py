"""Memory of a training step and of a teacher's forward pass on the DTensor path, term by term.

NeMo-RL loads parameters in fp32, computes in bf16, reduces gradients in fp32 and returns fp32 logits;
FSDP2 divides parameters, gradients and Adam's moments over all ranks that tensor parallelism leaves.
A peak is the highest of the moments below; the byte counts are those of the tensors that live then.
"""

from __future__ import annotations

from recipes.memory.shapes import GIB, MemoryTerm, Peak, Work

WORKSPACE_GIB = 0.0733
"""cuBLAS workspaces, position tables, inputs: what does not depend on the model; fitted (docs/memory.md)."""

_BF16, _FP32 = 2, 4
_ADAM = 8


def student_peak(work: Work, workspace: float = WORKSPACE_GIB) -> Peak:
    """Return the highest moment of a training step once Adam's moments exist (from the second step on)."""
    moments = (_loss_moment, _reduce_moment, _optimizer_moment)
    peaks = [
        Peak(peak.moment, (*peak.terms, MemoryTerm("workspace", workspace)))
        for peak in (m(work) for m in moments)
    ]
    return max(peaks, key=lambda peak: peak.gib)


def teacher_peak(work: Work, workspace: float = WORKSPACE_GIB) -> Peak:
    """Return the highest moment of a teacher's forward pass: fp32 logits are made from bf16 ones."""
    states = 0.0 if work.cpu_offload else _states(work, _FP32)
    terms = (
        MemoryTerm("weights", states),
        MemoryTerm("gathered weights", _gathered_root(work) + _gathered_layer(work)),
        MemoryTerm("logits", _logits(work, _BF16 + _FP32)),
        MemoryTerm("workspace", workspace),
    )
    return Peak("logits are cast to fp32", terms)


def _loss_moment(work: Work) -> Peak:
    """Return the moment after the loss is differentiated: fp32 logits, their fp32 gradient, its bf16 copy."""
    terms = (
        *_state_terms(work, gradients=False),
        MemoryTerm("gathered weights", _gathered_root(work) + _gathered_layer(work)),
        MemoryTerm("activations", activations(work)),
        MemoryTerm("logits", _logits(work, _FP32 + _FP32 + _BF16)),
    )
    return Peak("the loss is differentiated", terms)


def _reduce_moment(work: Work) -> Peak:
    """Return the end of the backward pass: undivided gradients of embedding and head, bf16 and fp32."""
    root = _root_params(work)
    divided = 0.0 if work.shards == 1 else root * (_BF16 + _FP32) / GIB
    own = root * _FP32 / work.shards / GIB
    terms = (
        *_state_terms(work, gradients=True, gradients_less=own),
        MemoryTerm("gathered weights", _gathered_layer(work) * (_FP32 / _BF16)),
        MemoryTerm("undivided gradients", divided if divided else own),
        MemoryTerm("logits", _logits(work, _FP32)),
    )
    return Peak("gradients are reduced", terms)


def _optimizer_moment(work: Work) -> Peak:
    """Return Adam's update of the largest matrix: two temporaries of its size; the logits are still held."""
    largest = max(work.facts.embedding_params, work.facts.hidden * work.facts.ffn) / work.tp / work.shards
    terms = (
        *_state_terms(work, gradients=True),
        MemoryTerm("optimizer temporaries", 0.0 if work.cpu_offload else 2 * _FP32 * largest / GIB),
        MemoryTerm("logits", _logits(work, _FP32)),
    )
    return Peak("the optimizer steps", terms)


def _state_terms(work: Work, *, gradients: bool, gradients_less: float = 0.0) -> tuple[MemoryTerm, ...]:
    """Weights, Adam and gradients that lie on the GPU; with `cpu_offload` they lie in host memory."""
    if work.cpu_offload:
        return (MemoryTerm("weights", 0.0), MemoryTerm("gradients", 0.0), MemoryTerm("Adam", 0.0))
    grads = max(_states(work, _FP32) - gradients_less, 0.0) if gradients else 0.0
    return (
        MemoryTerm("weights", _states(work, _FP32)),
        MemoryTerm("gradients", grads),
        MemoryTerm("Adam", _states(work, _ADAM)),
    )


def activations(work: Work) -> float:
    """GiB of activations that are kept for the backward pass.

    With checkpointing, the inputs of a layer's two norms, its attention and its MLP, in bf16. Without, per
    norm its fp32 copy and its bf16 result, per attention queries, keys, values and output, and four
    tensors of the MLP's width.
    """
    facts = work.facts
    if work.checkpointing:
        per_layer = 4.0 * facts.hidden
    else:
        split = 2 * facts.attention_width + 2 * facts.kv_width + 4 * facts.ffn * max(facts.experts and 8, 1)
        if facts.qk_norm:
            split += 3 * (facts.attention_width + facts.kv_width)
        per_layer = 8 * facts.hidden + split / work.tp
    # The last norm is not recomputed: its fp32 copy, its bf16 result, and what the head reads.
    per_token = facts.layers / work.pp * per_layer + 4 * facts.hidden
    return per_token * _BF16 * work.local_tokens / GIB


def _states(work: Work, bytes_each: int) -> float:
    return bytes_each * work.params / work.gpus * (work.cp if work.megatron else 1) / GIB


def _root_params(work: Work) -> float:
    """Parameters of embedding and head on one tensor-parallel rank: FSDP gathers them for the whole pass."""
    return work.facts.matrices(untied=work.untied) * work.facts.embedding_params / work.tp


def _gathered_root(work: Work) -> float:
    return _root_params(work) * _BF16 / GIB


def _gathered_layer(work: Work) -> float:
    """Return the next layer's weights, which arrive early; alone, a rank has nothing to gather."""
    return 0.0 if work.shards == 1 else work.facts.layer_params * _BF16 / work.tp / GIB


def _logits(work: Work, bytes_each: int) -> float:
    return work.local_tokens * work.facts.vocab / work.tp * bytes_each / GIB
