"""Lines of NeMo-RL's distillation driver (nemo_rl/algorithms/distillation.py and what it calls).

The printed strings have not changed from v0.4.0 on. A step's banner counts within the epoch, so the step of
the whole run is taken from the file each finished step writes (`train_data_step<n>.jsonl`); its loss and
times follow that line. Text between `│` is what a model wrote and never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.logs.events import (
    CheckpointSaving,
    Event,
    MetricRecorded,
    MilestoneReached,
    PlanSeen,
    Recovered,
    Role,
    StepBegan,
    TrackerDirFound,
)
from launcher.logs.rules import LineRule, MatchedLine, RuleReader, rule


@dataclass(slots=True)
class DriverProgress:
    """What later lines of a driver's log need to know of earlier ones."""

    starting: str = ""
    """Whose workers are being started: teacher, vllm_policy, student …"""
    step: int = 0
    """Steps of the whole run that are done."""
    validating: int | None = None
    """Step of the validation whose results are awaited."""


_Meaning = Callable[[DriverProgress, MatchedLine], Iterator[Event]]


def _milestone(identity: str) -> _Meaning:
    def meaning(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
        yield MilestoneReached(identity, seen.source, seen.time)

    return meaning


def _metric(name: str) -> _Meaning:
    def meaning(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
        yield MetricRecorded(name, progress.step, float(seen.match["value"]), seen.source, seen.time)

    return meaning


def _validation_metric(name: str) -> _Meaning:
    def meaning(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
        if progress.validating is not None:
            yield MetricRecorded(
                name, progress.validating, float(seen.match["value"]), seen.source, seen.time
            )

    return meaning


def _samples(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    if seen.match["split"] == "Training":
        yield MilestoneReached("data-loaded", seen.source, seen.time)
        yield PlanSeen(seen.source, samples=int(seen.match["samples"]))


def _starting(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    progress.starting = seen.match["group"]
    return iter(())


def _tracked(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield TrackerDirFound(seen.match["path"], seen.source)


def _recovered(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield Recovered(seen.source)


def _started(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield Recovered(seen.source)
    if progress.starting in ("teacher", "student"):
        yield MilestoneReached(f"{progress.starting}-ready", seen.source, seen.time)


def _resumed(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    progress.step = max(progress.step, int(seen.match["step"]))
    return iter(())


def _epoch(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield PlanSeen(seen.source, epochs=int(seen.match["of"]))


def _step(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield PlanSeen(seen.source, steps_per_epoch=int(seen.match["of"]))
    yield StepBegan(progress.step + 1, seen.source, seen.time)


def _batch(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield PlanSeen(seen.source, batch=int(seen.match["batch"]))


def _validating(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    progress.validating = int(seen.match["step"])
    return iter(())


def _validated(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield MilestoneReached("first-validation", seen.source, seen.time)


def _saving(_: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    yield MilestoneReached("first-checkpoint", seen.source, seen.time)
    yield CheckpointSaving(int(seen.match["step"]), seen.source, seen.time)


def _step_done(progress: DriverProgress, seen: MatchedLine) -> Iterator[Event]:
    progress.step = int(seen.match["step"])
    yield MilestoneReached("first-step", seen.source, seen.time)


_NUMBER = r"(?P<value>[-+]?(?:\d+(?:\.\d+)?|nan|inf))"

RULES: tuple[LineRule[DriverProgress], ...] = (
    rule(
        "Connected to existing Ray cluster",
        r"(?:\w+:\S+: )?Connected to existing Ray cluster",
        _milestone("ray-attached"),
    ),
    rule(
        "dataloader loaded with",
        r"\s*✓ (?P<split>Training|Validation) dataloader loaded with (?P<samples>\d+) samples$",
        _samples,
    ),
    rule("Ray cluster initialized with", r"\s*✓ Ray cluster initialized with \d+ nodes$", _recovered),
    rule("Connected to Ray cluster", r"\S+ \S+\s+INFO \S+ -- Connected to Ray cluster", _recovered),
    rule("Initialized TensorboardLogger", r"Initialized TensorboardLogger at (?P<path>/\S.*)$", _tracked),
    rule("workers: ", r"Initializing (?P<group>\w+) workers: ", _starting),
    rule("workers initialized in", r"\s*✓ \d+ workers initialized in [\d.]+s$", _started),
    rule(
        "backend for generation with",
        r"\s*✓ Using \S+ backend for generation with ",
        _milestone("generation-ready"),
    ),
    rule(
        "/policy/weights", r"Loading weights from .+/step_(?P<step>\d+)/policy/weights$", _resumed, own=False
    ),
    rule("SETUP COMPLETE", r"\s+SETUP COMPLETE$", _milestone("setup-complete")),
    rule("= Epoch ", r"=+ Epoch \d+/(?P<of>\d+) =+$", _epoch),
    rule("===== Step ", r"=+ Step \d+/(?P<of>\d+) =+$", _step),
    rule("for batch of size", r"▶ Generating responses for batch of size (?P<batch>\d+)\.\.\.$", _batch),
    rule("Starting validation at step", r"▶ Starting validation at step (?P<step>\d+)\.\.\.$", _validating),
    rule("Validation Results:", r"\S+\s+Validation Results:$", _validated),
    rule("• Accuracy: ", rf"\s*• Accuracy: {_NUMBER}$", _validation_metric("accuracy")),
    rule(
        "• Average response length: ",
        rf"\s*• Average response length: {_NUMBER} tokens$",
        _validation_metric("validation_length"),
    ),
    rule(
        "• Total validation time: ",
        rf"\s*• Total validation time: {_NUMBER}s$",
        _validation_metric("validation_time_s"),
    ),
    rule("Saving checkpoint for step", r"Saving checkpoint for step (?P<step>\d+)\.\.\.$", _saving),
    rule("/train_data_step", r"Logged data to .*/train_data_step(?P<step>\d+)\.jsonl$", _step_done),
    rule("• Loss: ", rf"\s*• Loss: {_NUMBER}$", _metric("loss")),
    rule(
        "• Mean Generation Length: ",
        rf"\s*• Mean Generation Length: {_NUMBER}$",
        _metric("generation_length"),
    ),
    rule("• Training FLOPS: ", rf"\s*• Training FLOPS: {_NUMBER} TFLOPS", _metric("tflops")),
    rule("• Total step time: ", rf"\s*• Total step time: {_NUMBER}s$", _metric("step_time_s")),
    rule(
        "stopping training early",
        r"(?:Max number of steps|Timeout) has been reached, stopping training early$",
        _milestone("completed"),
    ),
)


class DriverReader(RuleReader[DriverProgress]):
    """Reads a driver's log."""

    def __init__(self, log: str) -> None:
        super().__init__(log, Role.DRIVER, RULES, DriverProgress())
