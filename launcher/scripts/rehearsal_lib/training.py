"""Distillation loop, step by step as in NeMo-RL: generate, score, train, validate, save."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from . import checkpoints, report
from .language import PROMPT_LENGTH, Floats, Ints, prompts
from .report import Sample, Timer, say
from .settings import RehearsalError, RehearsalSettings
from .student import Adam, Weights, initial_weights
from .worker import Gradient, Task, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from .cluster import Pool


@dataclass(slots=True)
class Deadline:
    """`checkpoint_must_save_by`: true once when another step would end too late (as NeMo-RL's checker)."""

    limit_s: float
    start: float = field(default_factory=time.monotonic)
    steps: int = 0
    passed: bool = False

    def after_step(self) -> bool:
        """Count a step; return True if it must be the last."""
        self.steps += 1
        spent = time.monotonic() - self.start
        due = not self.passed and spent + spent / self.steps >= self.limit_s
        self.passed = self.passed or due
        return due


def mean_gradient(parts: list[Gradient]) -> tuple[float, Weights, float]:
    """Return mean loss, mean gradient and its norm over all tokens of all workers."""
    tokens = sum(part.tokens for part in parts)
    gradient: Weights = {}
    for name in parts[0].weights:
        total: Floats = np.sum([part.weights[name] for part in parts], axis=0)
        gradient[name] = total / tokens
    norm = math.sqrt(sum(float((value**2).sum()) for value in gradient.values()))
    return sum(part.loss for part in parts) / tokens, gradient, norm


def in_order(parts: list[list[Sample]], total: int, batch: int) -> list[Sample]:
    """Put the workers' samples into the order of the whole batch."""
    rows = np.concatenate([rows_of(rank, len(parts), total, batch) for rank in range(len(parts))])
    samples = [sample for part in parts for sample in part]
    return [samples[at] for at in np.argsort(rows)]


def mean_length(samples: list[Sample]) -> float:
    """Return the mean length of the answers, in characters."""
    return sum(len(sample.answer) for sample in samples) / len(samples)


class Distillation:
    """Distillation run: its models, its position in the data, its workers."""

    def __init__(self, settings: RehearsalSettings, pool: Pool, log_dir: Path) -> None:
        self.settings, self.pool, self.log_dir = settings, pool, log_dir
        train, validation = prompts()
        self.train_prompts: Ints = np.resize(train, (max(len(train), settings.prompts), PROMPT_LENGTH))
        self.val_prompts = validation[: settings.validation.samples]
        self.progress = checkpoints.TrainingProgress()
        self.weights = initial_weights(settings.seed)
        self.adam = Adam.fresh(settings.rate, self.weights)
        self.recipe = settings.recipe | {"logger": settings.recipe["logger"] | {"log_dir": str(log_dir)}}

    @property
    def steps_per_epoch(self) -> int:
        """Number of full batches of prompts in the data."""
        return len(self.train_prompts) // self.settings.prompts

    def set_up(self, nodes: int) -> None:
        """Start the workers, load the models, or the latest checkpoint, into them."""
        settings = self.settings
        report.setup_lines(settings, len(self.train_prompts), len(self.val_prompts))
        say("\n▶ Setting up compute cluster...")
        say(f"  ✓ Ray cluster initialized with {nodes} nodes")
        say("\n▶ Setting up teacher policy...")
        task = Task(
            settings.teacher,
            settings.student,
            settings.seed,
            settings.divergence,
            settings.top_k,
            settings.batch,
            settings.length - PROMPT_LENGTH,
        )
        bar = self._bar("teacher")
        self.pool.start(task, bar.draw)
        self._finish(bar)
        self.pool.call("load_teacher")
        bar = self._bar("vllm_policy")
        self.pool.call("load_prompts", self.train_prompts, self.val_prompts, ready=bar.draw)
        self._finish(bar)
        say(f"  ✓ Using vLLM backend for generation with {settings.student}")
        say("\n▶ Setting up student policy...")
        source = self._resume()
        bar = self._bar("student")
        self.pool.call("load_student", self.weights, source, ready=bar.draw)
        self._finish(bar)
        say(f"\n{'=' * 60}\n{' ' * 18}SETUP COMPLETE\n{'=' * 60}\n")

    def _bar(self, name: str) -> report.Bar:
        return report.Bar(f"Initializing {name} workers", self.pool.size, "worker")

    def _finish(self, bar: report.Bar) -> None:
        seconds = bar.seconds
        bar.close()
        say(f"  ✓ {self.pool.size} workers initialized in {seconds:.2f}s")

    def _resume(self) -> str:
        """Load the latest checkpoint; return its folder, empty if there is none."""
        saved = checkpoints.history(self.settings.saving.folder)
        if not saved:
            return ""
        self.progress, self.weights, self.adam = checkpoints.load(saved[-1], self.weights, self.adam)
        if self.adam.updates:
            say(f"Loading optimizer from {saved[-1].folder}/policy/optimizer")
        return str(saved[-1].folder)

    def train(self) -> None:
        """Run to the last step, the last epoch or the deadline, whichever comes first."""
        settings, progress = self.settings, self.progress
        deadline = Deadline(settings.saving.must_save_by_s)
        if settings.validation.at_start and progress.total_steps == 0:
            say("\n🔍 Running initial validation...")
            self.validate(0)
        while progress.total_steps < settings.steps and progress.current_epoch < settings.epochs:
            report.banner("Epoch", progress.current_epoch + 1, settings.epochs)
            order = self._order(progress.current_epoch)
            for chosen in order[progress.current_step :]:
                total = min(self.steps_per_epoch, settings.steps)
                report.banner("Step", progress.current_step + 1, total)
                if self._step(chosen, deadline):
                    say("Timeout has been reached, stopping training early")
                    return
                if progress.total_steps >= settings.steps:
                    say("Max number of steps has been reached, stopping training early")
                    return
            progress.current_epoch += 1
            progress.current_step = 0

    def _order(self, epoch: int) -> Ints:
        """Return the prompts of each step of an epoch; the same on every call."""
        order = np.arange(len(self.train_prompts))
        if self.settings.shuffle:
            order = np.random.default_rng([self.settings.seed, 3, epoch]).permutation(order)
        return order[: self.steps_per_epoch * self.settings.prompts].reshape(-1, self.settings.prompts)

    def _step(self, chosen: Ints, deadline: Deadline) -> bool:
        """Run one step; return True if the deadline makes it the last."""
        settings, timer = self.settings, Timer()
        step = self.progress.total_steps + 1
        with timer.time("total_step_time"):
            samples = self._write(chosen, step, timer)
            metrics = self._learn(timer)
            metrics["mean_gen_tokens_per_sample"] = mean_length(samples)
            self.progress.current_step += 1
            self.progress.total_steps = step
            self.progress.consumed_samples += settings.prompts
            self.progress.total_valid_tokens += metrics["global_valid_toks"]
            last = step >= settings.steps or (
                self.progress.current_epoch + 1 == settings.epochs
                and self.progress.current_step == self.steps_per_epoch
            )
            validates = (settings.validation.period > 0 and step % settings.validation.period == 0) or (
                settings.validation.at_end and last
            )
            val_metrics = self.validate(step) if validates else {}
            timeout = deadline.after_step()
            if settings.saving.enabled and (last or timeout or step % settings.saving.period == 0):
                self.progress.scores = self._scores(metrics, val_metrics)
                with timer.time("checkpointing"):
                    say(f"Saving checkpoint for step {step}...")
                    checkpoints.save(settings.saving, self.recipe, self.progress, self.weights, self.adam)
        report.log_training_data(self.log_dir, step, samples, PROMPT_LENGTH)
        report.training_results(metrics["loss"], metrics["mean_gen_tokens_per_sample"], timer)
        return timeout

    def _write(self, chosen: Ints, step: int, timer: Timer) -> list[Sample]:
        """Let the student answer the step's prompts and the teacher score the answers."""
        settings = self.settings
        say("▶ Preparing batch...")
        with timer.time("data_processing"):
            repeated = np.repeat(chosen, settings.generations)
        say(f"▶ Generating responses for batch of size {len(repeated)}...")
        with (
            timer.time("prepare_for_generation"),
            timer.time("prepare_for_generation/transfer_and_update_weights"),
        ):
            self.pool.call("update_weights", self.weights)
        with timer.time("generation"):
            parts = self.pool.call("write", "train", repeated, step)
        with timer.time("data_processing"):
            samples = in_order(parts, len(repeated), settings.batch)
        say("▶ Preparing for teacher logprob inference...")
        say("▶ Computing teacher logprobs...")
        with timer.time("teacher_logprob_inference"):
            self.pool.call("score")
        return samples

    def _learn(self, timer: Timer) -> dict[str, float]:
        """Run the step's updates; the loss is their sum, as NeMo-RL prints it."""
        settings = self.settings
        say("▶ Preparing for training...")
        say("▶ Training policy...")
        metrics = {"loss": 0.0, "grad_norm": 0.0, "lr": self.adam.rate, "global_valid_toks": 0.0}
        with timer.time("policy_training"):
            for update in range(settings.prompts * settings.generations // settings.batch):
                if update:
                    self.pool.call("update_weights", self.weights)
                parts: list[Gradient] = self.pool.call("gradient", update)
                loss, gradient, norm = mean_gradient(parts)
                self.weights = self.adam.step(self.weights, gradient)
                metrics["loss"] += loss
                metrics["grad_norm"] += norm
                metrics["global_valid_toks"] += sum(part.tokens for part in parts)
        return metrics

    def _scores(self, metrics: dict[str, float], val_metrics: dict[str, float]) -> dict[str, float]:
        """Return the scores by which checkpoints are ranked.

        Raises:
            RehearsalError: the recipe's metric does not exist.
        """
        scores = {"val_reward": val_metrics["accuracy"]} if val_metrics else {}
        metric = self.settings.saving.metric
        if metric is None:
            return scores
        kind, _, name = metric.partition(":")
        source = metrics if kind == "train" else val_metrics
        if not source:
            warnings.warn(
                f"You asked to save checkpoints based on {name} but no {kind} metrics were collected. "
                "This checkpoint will not be saved as top-k.",
                stacklevel=2,
            )
        elif name not in source:
            raise RehearsalError(
                f"ValueError: Metric {name} not found in {kind} metrics",
                f"checkpointing.metric_name: {metric}",
                f"Choose one of: {', '.join(source)}.",
            )
        return scores | ({metric: source[name]} if source else {})

    def validate(self, step: int) -> dict[str, float]:
        """Answer the held-out prompts, print and log the outcome, return accuracy and length."""
        timer = Timer()
        with timer.time("total_validation_time"):
            self.pool.call("update_weights", self.weights)
            say(f"▶ Starting validation at step {step}...")
            chosen = np.arange(len(self.val_prompts))
            samples = in_order(self.pool.call("write", "validation", chosen, step), len(chosen), len(chosen))
            accuracy = sum(sample.reward for sample in samples) / len(samples)
            length = mean_length(samples)
            report.conversations(samples, step, self.settings.validation.printed)
        report.log_validation_data(self.log_dir, step, samples)
        report.validation_results(accuracy, length, len(samples), timer.seconds["total_validation_time"])
        return {"accuracy": accuracy, "avg_length": length}
