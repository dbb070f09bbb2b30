"""The student: a small neural language model, its distillation loss with gradients, and its optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .language import CONTEXT, VOCABULARY, Floats, Ints, log_softmax

Weights = dict[str, Floats]

EMBEDDING = 24
HIDDEN = 128
OUTSIDE_TOP_K = -100.0
"""Log probability that NeMo-RL gives the teacher's other tokens with `zero_outside_topk`."""


class Activations(NamedTuple):
    """Results of a forward pass that the backward pass needs."""

    inputs: Floats
    hidden: Floats
    logits: Floats


def initial_weights(seed: int) -> Weights:
    """Return an untrained student; equal seeds give equal students."""
    rng = np.random.default_rng([seed, 0])
    size = len(VOCABULARY)
    return {
        "embedding": rng.normal(0.0, 0.3, (size, EMBEDDING)),
        "hidden": rng.normal(0.0, (CONTEXT * EMBEDDING) ** -0.5, (CONTEXT * EMBEDDING, HIDDEN)),
        "hidden_bias": np.zeros(HIDDEN),
        "output": rng.normal(0.0, 0.1 * HIDDEN**-0.5, (HIDDEN, size)),
        "output_bias": np.zeros(size),
    }


def forward(weights: Weights, contexts: Ints) -> Activations:
    """Predict the character after each row of CONTEXT characters."""
    inputs = weights["embedding"][contexts].reshape(len(contexts), -1)
    hidden = np.tanh(inputs @ weights["hidden"] + weights["hidden_bias"])
    return Activations(inputs, hidden, hidden @ weights["output"] + weights["output_bias"])


def backward(weights: Weights, contexts: Ints, done: Activations, by_logits: Floats) -> Weights:
    """Return the gradient by every weight, given the gradient by the logits of `forward`."""
    by_hidden = (by_logits @ weights["output"].T) * (1.0 - done.hidden**2)
    by_inputs = (by_hidden @ weights["hidden"].T).reshape(-1, EMBEDDING)
    by_embedding = np.zeros_like(weights["embedding"])
    np.add.at(by_embedding, contexts.reshape(-1), by_inputs)
    return {
        "embedding": by_embedding,
        "hidden": done.inputs.T @ by_hidden,
        "hidden_bias": by_hidden.sum(axis=0),
        "output": done.hidden.T @ by_logits,
        "output_bias": by_logits.sum(axis=0),
    }


@dataclass(frozen=True, slots=True)
class Divergence:
    """The recipe's `loss_fn` with NeMo-RL's meaning (DistillationLossFn).

    Both sides are renormalised over the teacher's top-k. With `zero_outside_topk` the student keeps its whole
    vocabulary and the teacher's other tokens count as e^-100. Mixed is w * forward + (1 - w) * reverse.
    """

    kind: str
    mixed_weight: float = 0.5
    zero_outside_topk: bool = False

    @property
    def forward_weight(self) -> float:
        """Share of the forward divergence."""
        return {"forward": 1.0, "reverse": 0.0}.get(self.kind, self.mixed_weight)

    def loss(self, logits: Floats, top_logits: Floats, top_indices: Ints) -> tuple[Floats, Floats]:
        """Return the loss of every row and its gradient by that row's student logits."""
        teacher_log = log_softmax(top_logits)
        if self.zero_outside_topk:
            chosen = logits
            target_log = np.full_like(logits, OUTSIDE_TOP_K)
            np.put_along_axis(target_log, top_indices, teacher_log, axis=-1)
            target = np.zeros_like(logits)
            np.put_along_axis(target, top_indices, np.exp(teacher_log), axis=-1)
        else:
            chosen = np.take_along_axis(logits, top_indices, axis=-1)
            target_log, target = teacher_log, np.exp(teacher_log)
        student_log = log_softmax(chosen)
        student = np.exp(student_log)
        share = self.forward_weight
        forward_kl = (target * (target_log - student_log)).sum(axis=-1)
        reverse_kl = (student * (student_log - target_log)).sum(axis=-1)
        by_chosen = share * (student - target)
        by_chosen += (1.0 - share) * student * (student_log - target_log - reverse_kl[:, None])
        if self.zero_outside_topk:
            return share * forward_kl + (1.0 - share) * reverse_kl, by_chosen
        by_logits = np.zeros_like(logits)
        np.put_along_axis(by_logits, top_indices, by_chosen, axis=-1)
        return share * forward_kl + (1.0 - share) * reverse_kl, by_logits


@dataclass(slots=True)
class Adam:
    """Adam without weight decay; its state makes a resumed run continue exactly."""

    rate: float
    mean: Weights
    square: Weights
    updates: int = 0

    @classmethod
    def fresh(cls, rate: float, weights: Weights) -> Adam:
        """Return an optimizer without any updates."""
        zeros = {name: np.zeros_like(value) for name, value in weights.items()}
        return cls(rate, zeros, {name: value.copy() for name, value in zeros.items()})

    def step(self, weights: Weights, gradient: Weights) -> Weights:
        """Return the weights after one update."""
        self.updates += 1
        first, second = 0.9, 0.999
        updated = {}
        for name, value in gradient.items():
            self.mean[name] = first * self.mean[name] + (1 - first) * value
            self.square[name] = second * self.square[name] + (1 - second) * value**2
            mean = self.mean[name] / (1 - first**self.updates)
            square = self.square[name] / (1 - second**self.updates)
            updated[name] = weights[name] - self.rate * mean / (np.sqrt(square) + 1e-8)
        return updated
