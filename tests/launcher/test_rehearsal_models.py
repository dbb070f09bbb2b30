"""The stand-ins' mathematics: teacher, student, divergences, sampling, optimizer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.scripts.rehearsal_lib import language
from launcher.scripts.rehearsal_lib.language import (
    CONTEXT,
    PROMPT_LENGTH,
    STOP,
    TEXT,
    VOCABULARY,
    Floats,
    Ints,
    decode,
    encode,
    log_softmax,
    teacher_log_probabilities,
    top_logits,
)
from launcher.scripts.rehearsal_lib.student import Adam, Divergence, backward, forward, initial_weights
from launcher.scripts.rehearsal_lib.worker import rows_of, sample

SIZE = len(VOCABULARY)
KINDS = [
    Divergence(kind, 0.3, zero_outside_topk=zero)
    for kind in ("forward", "reverse", "mixed")
    for zero in (False, True)
]


def some_logits(seed: int, rows: int = 3, k: int = 5) -> tuple[Floats, Floats, Ints]:
    """Return student logits, and the teacher's top logits with their indices."""
    rng = np.random.default_rng(seed)
    student, teacher = rng.normal(0, 2, (2, rows, SIZE))
    indices = np.argsort(-teacher, axis=-1)[:, :k]
    return student, np.take_along_axis(teacher, indices, axis=-1), indices


def test_the_teacher_predicts_its_text() -> None:
    teacher = teacher_log_probabilities()
    assert teacher.shape == (SIZE,) * (CONTEXT + 1)
    assert np.allclose(np.exp(teacher).sum(axis=-1), 1)
    followers = Counter(
        TEXT[at + CONTEXT] for at in range(len(TEXT) - CONTEXT) if TEXT[at:].startswith("the")
    )
    best = teacher[tuple(encode("the"))].argmax()
    assert VOCABULARY[best] == followers.most_common(1)[0][0]
    codes = encode(TEXT)
    windows = np.lib.stride_tricks.sliding_window_view(codes, CONTEXT + 1)
    assert teacher[tuple(windows.T)].mean() > np.log(0.5)


def test_top_logits_are_the_largest_in_order() -> None:
    teacher = teacher_log_probabilities()
    contexts = np.stack([encode("the"), encode("boa"), encode("qqq")])
    values, indices = top_logits(teacher, contexts, 4)
    for context, value, index in zip(contexts, values, indices, strict=True):
        row = teacher[tuple(context)]
        assert list(value) == sorted(row, reverse=True)[:4]
        assert list(row[index]) == list(value)


def test_prompts_are_pieces_of_the_text_and_the_held_out_ones_are_not_trained_on() -> None:
    train, validation = language.prompts()
    texts = [decode(row) for row in train], [decode(row) for row in validation]
    assert all(text in TEXT and len(text) == PROMPT_LENGTH for part in texts for text in part)
    assert not set(texts[0]) & set(texts[1])
    assert len(set(texts[0] + texts[1])) == len(train) + len(validation)
    assert 4 * len(validation) == pytest.approx(len(train), rel=0.05)


@pytest.mark.parametrize("divergence", KINDS, ids=str)
def test_divergence_gradient_equals_finite_differences(divergence: Divergence) -> None:
    student, top, indices = some_logits(7)
    _, gradient = divergence.loss(student, top, indices)
    step = 1e-6
    for row in range(len(student)):
        for column in range(SIZE):
            moved = student.copy()
            moved[row, column] += step
            above = divergence.loss(moved, top, indices)[0][row]
            moved[row, column] -= 2 * step
            below = divergence.loss(moved, top, indices)[0][row]
            assert gradient[row, column] == pytest.approx((above - below) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("divergence", KINDS, ids=str)
def test_student_gradient_equals_finite_differences(divergence: Divergence) -> None:
    weights = initial_weights(3)
    rng = np.random.default_rng(4)
    contexts = rng.integers(0, SIZE, (6, CONTEXT))
    _, top, indices = some_logits(5, rows=6)

    def loss() -> float:
        return float(divergence.loss(forward(weights, contexts).logits, top, indices)[0].sum())

    done = forward(weights, contexts)
    gradient = backward(weights, contexts, done, divergence.loss(done.logits, top, indices)[1])
    assert gradient.keys() == weights.keys()
    for name, value in weights.items():
        for place in rng.permutation(value.size)[:8]:
            at = np.unravel_index(place, value.shape)
            kept = value[at]
            value[at] = kept + 1e-5
            above = loss()
            value[at] = kept - 1e-5
            below = loss()
            value[at] = kept
            assert gradient[name][at] == pytest.approx((above - below) / 2e-5, abs=1e-4, rel=1e-4), name


@given(st.integers(0, 10**6), st.integers(1, SIZE), st.floats(0, 1))
def test_divergence_is_what_its_definition_says(seed: int, k: int, weight: float) -> None:
    student, top, indices = some_logits(seed, rows=2, k=k)
    s_log = log_softmax(np.take_along_axis(student, indices, axis=-1))
    t_log = log_softmax(top)
    forward_kl = (np.exp(t_log) * (t_log - s_log)).sum(axis=-1)
    reverse_kl = (np.exp(s_log) * (s_log - t_log)).sum(axis=-1)
    assert np.all(forward_kl >= -1e-12)
    assert np.allclose(Divergence("forward", weight).loss(student, top, indices)[0], forward_kl)
    assert np.allclose(Divergence("reverse", weight).loss(student, top, indices)[0], reverse_kl)
    mixed, gradient = Divergence("mixed", weight).loss(student, top, indices)
    assert np.allclose(mixed, weight * forward_kl + (1 - weight) * reverse_kl)
    assert np.allclose(gradient.sum(axis=-1), 0), "a common shift of all logits changes nothing"
    assert np.count_nonzero(gradient, axis=-1).max() <= k, "only the teacher's top k are learnt from"


@given(st.integers(0, 10**6), st.integers(1, SIZE - 1))
def test_mass_outside_the_top_k_is_charged_as_nemo_rl_does(seed: int, k: int) -> None:
    student, top, indices = some_logits(seed, rows=2, k=k)
    every_log = log_softmax(student)
    s_log, t_log = np.take_along_axis(every_log, indices, axis=-1), log_softmax(top)
    inside = np.exp(s_log)
    rest_entropy = (np.exp(every_log) * every_log).sum(axis=-1) - (inside * s_log).sum(axis=-1)
    rest_mass = 1 - inside.sum(axis=-1)
    expected = (inside * (s_log - t_log)).sum(axis=-1) + rest_entropy + 100 * rest_mass
    reverse = Divergence("reverse", zero_outside_topk=True)
    assert np.allclose(reverse.loss(student, top, indices)[0], expected)
    forward_kl = (np.exp(t_log) * (t_log - s_log)).sum(axis=-1)
    mixed = Divergence("mixed", 0.25, zero_outside_topk=True)
    assert np.allclose(mixed.loss(student, top, indices)[0], 0.25 * forward_kl + 0.75 * expected)


@pytest.mark.parametrize("kind", ["forward", "reverse", "mixed"])
def test_equal_models_do_not_diverge(kind: str) -> None:
    _, top, indices = some_logits(1)
    student = np.full((len(top), SIZE), -9.0)
    np.put_along_axis(student, indices, top + 3, axis=-1)
    losses, gradient = Divergence(kind).loss(student, top, indices)
    assert np.allclose(losses, 0)
    assert np.allclose(gradient, 0)


def test_answers_end_with_a_full_stop_or_at_the_longest() -> None:
    weights = initial_weights(0)
    prompts = language.prompts()[0][:100]
    draws = np.random.default_rng(0).random((100, 30))
    sequences, lengths = sample(weights, prompts, draws)
    assert np.array_equal(sequences[:, :PROMPT_LENGTH], prompts)
    assert lengths.min() >= 1
    assert lengths.max() == 30
    for row, length in zip(sequences[:, PROMPT_LENGTH:], lengths, strict=True):
        answer = list(row[:length])
        assert STOP not in answer[:-1]
        assert answer[-1] == STOP or length == 30
        assert set(row[length:]) <= {STOP}


def test_the_student_writes_what_it_predicts() -> None:
    weights = initial_weights(2)
    weights["output"] *= 30
    prompt = language.prompts()[0][:1]
    draws = np.random.default_rng(1).random((20_000, 1))
    sequences, _ = sample(weights, np.repeat(prompt, len(draws), axis=0), draws)
    counted = np.bincount(sequences[:, -1], minlength=SIZE) / len(draws)
    predicted = np.exp(log_softmax(forward(weights, prompt[:, -CONTEXT:]).logits))[0]
    assert np.abs(counted - predicted).max() < 4 * np.sqrt(0.25 / len(draws))
    assert predicted.max() > 2 / SIZE


def test_an_answer_depends_on_its_own_row_alone() -> None:
    weights = initial_weights(1)
    prompts = language.prompts()[0][:20]
    draws = np.random.default_rng(3).random((20, 25))
    whole, lengths = sample(weights, prompts, draws)
    some = np.array([3, 17, 4])
    part, part_lengths = sample(weights, prompts[some], draws[some])
    assert np.array_equal(part, whole[some])
    assert np.array_equal(part_lengths, lengths[some])


@given(st.integers(1, 7), st.integers(1, 20), st.integers(1, 5))
def test_every_sequence_has_one_worker_and_every_update_is_shared(
    workers: int, batch: int, updates: int
) -> None:
    shares = [rows_of(rank, workers, batch * updates, batch) for rank in range(workers)]
    assert sorted(np.concatenate(shares)) == list(range(batch * updates))
    for update in range(updates):
        sizes = [int((share // batch == update).sum()) for share in shares]
        assert max(sizes) - min(sizes) <= 1


def test_adam_takes_the_known_steps() -> None:
    weights = {"w": np.array([1.0, -2.0])}
    adam = Adam.fresh(0.1, weights)
    first = adam.step(weights, {"w": np.array([0.5, -4.0])})
    assert np.allclose(first["w"], [0.9, -1.9]), "the first step is the rate, whatever the gradient's size"
    second = adam.step(first, {"w": np.array([0.5, 0.0])})
    mean, square = 0.9 * 0.1 * -4.0 / (1 - 0.9**2), 0.999 * 0.001 * 16.0 / (1 - 0.999**2)
    assert np.allclose(second["w"], [0.8, -1.9 - 0.1 * mean / np.sqrt(square)])
    assert np.array_equal(weights["w"], [1.0, -2.0])
    assert adam.updates == 2
