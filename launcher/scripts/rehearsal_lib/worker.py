"""Worker: the student generates, the teacher scores, the student's gradient is computed.

A worker keeps its share of the sequences between the phases of a step, so only prompts, weights, texts and
gradients travel. Random numbers depend on a sequence's index in the whole batch: the number of workers
changes which worker generates a sequence, not the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .language import (
    CONTEXT,
    PROMPT_LENGTH,
    STOP,
    VOCABULARY,
    Floats,
    Ints,
    decode,
    log_softmax,
    teacher_log_probabilities,
    top_logits,
)
from .report import Sample
from .student import Divergence, Weights, backward, forward


def rows_of(rank: int, workers: int, total: int, batch: int) -> Ints:
    """Return the indices of a worker's sequences among `total`: its share of the `batch` of each update."""
    batches = np.arange(total).reshape(-1, batch)
    return np.concatenate([np.array_split(one, workers)[rank] for one in batches])


def sample(weights: Weights, prompts: Ints, draws: Floats) -> tuple[Ints, Ints]:
    """Generate from each prompt until a full stop or until `draws` (0..1) are used up.

    Return the sequences (prompt and answer, padded with STOP) and the lengths of the answers.
    """
    count, longest = draws.shape
    width = prompts.shape[1]
    sequences = np.concatenate([prompts, np.full((count, longest), STOP)], axis=1)
    lengths = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    for at in range(longest):
        if not len(alive):
            break
        logits = forward(weights, sequences[alive, width + at - CONTEXT : width + at]).logits
        reached = np.exp(log_softmax(logits)).cumsum(axis=-1)
        chosen = (reached < draws[alive, at, None]).sum(axis=-1).clip(max=len(VOCABULARY) - 1)
        sequences[alive, width + at] = chosen
        lengths[alive] += 1
        alive = alive[chosen != STOP]
    return sequences, lengths


@dataclass(frozen=True, slots=True)
class Task:
    """Parts of the recipe that a worker needs."""

    teacher: str
    student: str
    seed: int
    divergence: Divergence
    top_k: int
    batch: int
    longest: int
    """Maximum length of an answer, in characters."""


class Gradient(NamedTuple):
    """Sums over a worker's share of one update; dividing by all workers' tokens gives the mean."""

    loss: float
    tokens: int
    weights: Weights


class RehearsalWorker:
    """One of the equal workers; runs as a Ray actor, or as a plain object."""

    def __init__(self, rank: int, workers: int, task: Task) -> None:
        self.rank, self.workers, self.task = rank, workers, task
        self.weights: Weights = {}
        self.owners = np.zeros(0, dtype=np.int64)
        self.contexts = np.zeros((0, CONTEXT), dtype=np.int64)
        self.scores: tuple[Floats, Ints] = (np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64))
        self.teacher: Floats = np.zeros(0)
        self.prompts: dict[str, Ints] = {}
        print(f"Initializing RehearsalWorker with a vocabulary of {len(VOCABULARY)} characters", flush=True)

    def __repr__(self) -> str:
        """Return the name that Ray prefixes to this worker's lines."""
        return f"RehearsalWorker[rank={self.rank}]"

    def load_teacher(self) -> None:
        """Build the teacher from its text."""
        print(f"[Rank {self.rank}] Loading model {self.task.teacher} on CPU...", flush=True)
        self.teacher = teacher_log_probabilities()

    def load_prompts(self, train: Ints, validation: Ints) -> None:
        """Store the prompts; later calls refer to them by index."""
        self.prompts = {"train": train, "validation": validation}

    def load_student(self, weights: Weights, source: str) -> None:
        """Set the student's weights; `source`: their checkpoint, empty for a new student."""
        print(f"[Rank {self.rank}] Loading model {self.task.student} on CPU...", flush=True)
        if source:
            print(f"Loading weights from {source}/policy/weights", flush=True)
        else:
            print("No weights path provided. Starting from scratch (default policy init)", flush=True)
        self.weights = weights

    def update_weights(self, weights: Weights) -> None:
        """Set the weights after an update."""
        self.weights = weights

    def write(self, split: str, chosen: Ints, step: int) -> list[Sample]:
        """Answer this worker's share of the `chosen` prompts of a split; keeps the sequences for `score`.

        The reward is 1 where teacher and student, both greedy, go on from the prompt with the same character.
        """
        batch = self.task.batch if split == "train" else len(chosen)
        rows = rows_of(self.rank, self.workers, len(chosen), batch)
        prompts = self.prompts[split][chosen[rows]]
        stream = 1 if split == "train" else 2
        draws = np.random.default_rng([self.task.seed, stream, step]).random((len(chosen), self.task.longest))
        sequences, lengths = sample(self.weights, prompts, draws[rows])
        windows = sliding_window_view(sequences, CONTEXT, axis=1)[:, PROMPT_LENGTH - CONTEXT :]
        written = np.arange(self.task.longest) < lengths[:, None]
        self.contexts = np.asarray(windows[:, : self.task.longest][written], dtype=np.int64)
        self.owners = np.repeat(rows, lengths)
        last = prompts[:, -CONTEXT:]
        expected = self.teacher[tuple(last.T)].argmax(axis=-1)
        given = forward(self.weights, last).logits.argmax(axis=-1)
        answers = [
            decode(row[PROMPT_LENGTH : PROMPT_LENGTH + n]) for row, n in zip(sequences, lengths, strict=True)
        ]
        return [
            Sample(decode(prompt), answer, _verdict(VOCABULARY[want], VOCABULARY[got]), float(want == got))
            for prompt, answer, want, got in zip(prompts, answers, expected, given, strict=True)
        ]

    def score(self) -> int:
        """Compute the teacher's top-k logits of all generated characters; return the number of these."""
        self.scores = top_logits(self.teacher, self.contexts, self.task.top_k)
        return len(self.contexts)

    def gradient(self, update: int) -> Gradient:
        """Return loss and gradient of this worker's share of the step's n-th update (from 0)."""
        mine = self.owners // self.task.batch == update
        contexts = self.contexts[mine]
        done = forward(self.weights, contexts)
        losses, by_logits = self.task.divergence.loss(done.logits, self.scores[0][mine], self.scores[1][mine])
        by_weights = backward(self.weights, contexts, done, by_logits)
        return Gradient(float(losses.sum()), len(contexts), by_weights)


def _verdict(want: str, got: str) -> str:
    if want == got:
        return f"Environment: correct (both go on with '{want}')"
    return f"Environment: incorrect (the teacher goes on with '{want}', the student with '{got}')"
