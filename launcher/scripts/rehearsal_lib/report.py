"""Output of the rehearsal: the printed lines and jsonl files of NeMo-RL's distillation."""

from __future__ import annotations

import json
import sys
import textwrap
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .settings import RehearsalSettings

WIDTH = 80
"""Columns of the panels; rich's default without a terminal."""
_WIDE = "🔥✨🟠"


class Sample(NamedTuple):
    """Prompt with the student's answer and the environment's verdict."""

    prompt: str
    answer: str
    verdict: str
    reward: float


def say(text: str = "") -> None:
    """Print to standard output and flush it."""
    print(text, flush=True)


class Timer:
    """Accumulated seconds by label."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def time(self, label: str) -> Iterator[None]:
        """Add the time that the block takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[label] = self.seconds.get(label, 0.0) + time.perf_counter() - start


class Bar:
    """Progress bar on standard error in tqdm's form, redrawn with a carriage return."""

    def __init__(self, title: str, total: int, unit: str) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.start = time.perf_counter()
        self.draw(0)

    @property
    def seconds(self) -> float:
        """Seconds since the bar appeared."""
        return time.perf_counter() - self.start

    def draw(self, done: int) -> None:
        """Draw the bar for `done` of the total."""
        share = done / self.total
        spent = f"{int(self.seconds) // 60:02d}:{int(self.seconds) % 60:02d}"
        pace = f"{self.seconds / done:.2f}s/{self.unit}" if done else f"?{self.unit}/s"
        left = self.seconds / done * (self.total - done) if done else 0.0
        rest = f"{int(left) // 60:02d}:{int(left) % 60:02d}" if done else "?"
        drawn = f"{share:4.0%}|{'█' * int(share * 10):<10}| {done}/{self.total} [{spent}<{rest}, {pace}]"
        print(f"\r{self.title}: {drawn}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the bar's line."""
        print(file=sys.stderr, flush=True)


def setup_lines(settings: RehearsalSettings, train: int, validation: int) -> None:
    """Print NeMo-RL's lines about the set-up of its data."""
    say("\n▶ Setting up envs...")
    say("\n▶ Setting up data...")
    for name, count in (("training", train), ("validation", validation)):
        if count:
            say(f"  - Loaded {name} dataset rehearsal-text with {count} samples.")
            say(f"  ✓ {name.capitalize()} dataset loaded with {count} samples.")
    say("No loggers initialized")
    for name, count in (("Training", train), ("Validation", validation)):
        if count:
            say(f"  ✓ {name} dataloader loaded with {count} samples")
    for note in settings.notes:
        say(f"  ⚠ Rehearsal: {note}")


def banner(title: str, number: int, total: int) -> None:
    """Print the rule above an epoch or a step."""
    say(f"\n{'=' * 25} {title} {number}/{total} {'=' * 25}")


def training_results(loss: float, length: float, timer: Timer) -> None:
    """Print a step's results and the times of its phases."""
    say("\n📊 Training Results:")
    say(f"  • Loss: {loss:.4f}")
    say(f"  • Mean Generation Length: {length:.4f}")
    total = timer.seconds["total_step_time"]
    say("\n⏱️  Timing:")
    say(f"  • Total step time: {total:.2f}s")
    for label, seconds in sorted(timer.seconds.items(), key=lambda item: -item[1]):
        if label != "total_step_time":
            say(f"  • {label}: {seconds:.2f}s ({100 * seconds / total:.1f}%)")


def validation_results(accuracy: float, length: float, samples: int, seconds: float) -> None:
    """Print a validation's results."""
    say("\n📊 Validation Results:")
    say(f"    • Accuracy: {accuracy:.4f}")
    say(f"    • Average response length: {length:.1f} tokens")
    say(f"    • Samples processed: {samples}")
    say("\n  ⏱️  Validation Timing:")
    say(f"    • Total validation time: {seconds:.2f}s")


def conversations(samples: Sequence[Sample], step: int, shown: int) -> None:
    """Print the statistics of the rewards and some of the samples, in panels."""
    if not samples or shown < 1:
        return
    rewards = [sample.reward for sample in samples]
    say(_rule(f"TRAINING STEP {step}"))
    lines = [
        "Batch Summary",
        f"Total Samples: {len(rewards)}",
        f"Avg Reward: {sum(rewards) / len(rewards):.4f}",
        f"Min: {min(rewards):.4f} | Max: {max(rewards):.4f}",
        "",
        "Discrete Reward Levels:",
    ]
    levels = sorted(set(rewards))
    most = max(rewards.count(level) for level in levels)
    for level in levels:
        count = rewards.count(level)
        bar = ("█" if level > 0 else "▒") * int(20 * count / most)
        lines.append(f"{_face(level)} Reward {level:.4f}: {bar} ({count} samples)")
    say(_panel("Reward Statistics", lines))
    say("\nSample Conversations")
    for number, sample in enumerate(choose(samples, shown), start=1):
        body = [
            f"USER: {sample.prompt}",
            "",
            f"ASSISTANT: {sample.answer}",
            "",
            f"ENVIRONMENT: {sample.verdict}",
        ]
        say(_panel(f"{_face(sample.reward)} Sample {number} | Reward: {sample.reward:.4f}", body) + "\n")
    say(_rule("End of Samples"))


def choose(samples: Sequence[Sample], shown: int) -> list[Sample]:
    """Return up to `shown` samples: the best, the worst and, for an odd number, one from the middle."""
    if len(samples) <= shown:
        return list(samples)
    ranked = sorted(samples, key=lambda sample: -sample.reward)
    half = shown // 2
    middle = [ranked[len(ranked) // 2]] if shown % 2 else []
    return [*ranked[:half], *ranked[len(ranked) - half :], *middle]


def _face(reward: float) -> str:
    return "🔥" if reward >= 0.7 else "✨" if reward >= 0.3 else "🟠"


def _cells(text: str) -> int:
    return len(text) + sum(text.count(face) for face in _WIDE)


def _rule(title: str) -> str:
    left = (WIDTH - _cells(title) - 2) // 2
    return f"{'─' * left} {title} {'─' * (WIDTH - _cells(title) - 2 - left)}"


def _panel(title: str, lines: list[str]) -> str:
    head = _rule(title)
    body = [part for line in lines for part in textwrap.wrap(line, WIDTH - 4) or [""]]
    rows = [f"│ {part}{' ' * (WIDTH - 4 - _cells(part))} │" for part in body]
    return "\n".join([f"╭{head[1:-1]}╮", *rows, f"╰{'─' * (WIDTH - 2)}╯"])


def log_training_data(folder: Path, step: int, samples: Sequence[Sample], prompt_length: int) -> None:
    """Write `train_data_step<n>.jsonl` as NeMo-RL does: every value in a list of one."""
    rows = [
        {
            "content": [[sample.prompt, sample.answer, sample.verdict]],
            "input_lengths": [prompt_length + len(sample.answer)],
            "idx": index,
        }
        for index, sample in enumerate(samples)
    ]
    _write_jsonl(folder / f"train_data_step{step}.jsonl", rows)


def log_validation_data(folder: Path, step: int, samples: Sequence[Sample]) -> None:
    """Write `val_data_step<n>.jsonl` as NeMo-RL does."""
    roles = ("user", "assistant", "environment")
    rows = [
        {
            "content": [
                [{"role": role, "content": text} for role, text in zip(roles, sample[:3], strict=True)]
            ],
            "rewards": [sample.reward],
            "idx": index,
        }
        for index, sample in enumerate(samples)
    ]
    _write_jsonl(folder / f"val_data_step{step}.jsonl", rows)


def _write_jsonl(file: Path, rows: Sequence[dict[str, object]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    say(f"Logged data to {file}")


def next_experiment(log_dir: Path) -> Path:
    """Return and make the next free `exp_NNN` below `log_dir`."""
    taken = [int(entry.name[4:]) for entry in log_dir.glob("exp_*") if entry.name[4:].isdecimal()]
    folder = log_dir / f"exp_{max(taken, default=0) + 1:03d}"
    folder.mkdir(parents=True)
    return folder
