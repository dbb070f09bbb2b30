"""Lines of NeMo-RL's distillation driver (nemo_rl/algorithms/distillation.py and what it calls).

The printed strings have not changed since v0.4.0. A step's banner counts within the epoch, so the step of
the whole run is taken from the file that each finished step writes (`train_data_step<n>.jsonl`); its loss and
times follow that line. Text between `│` is a model's output and is never matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from launcher.logs.events import (
    CheckpointSaving,
    Event,
    MetricRecorded,
    MilestoneReached,
    PhaseBegan,
    PlanSeen,
    ProcessSignalled,
    Recovered,
    Role,
    StepBegan,
    StoppedToSave,
    TrackerDirFound,
    TrackerFound,
)
from launcher.logs.rules import LineRule, MatchedLine, RuleReader, rule


@dataclass(slots=True)
class DriverProgress:
    """State that later lines of a driver's log need from earlier ones."""

    starting: str = ""
    """Worker group that is being started: teacher, vllm_policy, student …"""
    step: int = 0
    """Finished steps of the whole run."""
    validating: int | None = None
    """Step of the validation whose results follow."""
    began: int = 0
    """Step that began last."""


_Meaning = Callable[[DriverProgress, MatchedLine], Iterable[Event]]


def _milestone(identity: str) -> _Meaning:
    def meaning(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
        return (MilestoneReached(identity, line.source, line.time),)

    return meaning


def _metric(name: str) -> _Meaning:
    def meaning(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
        value = float(line.match["value"])
        return (MetricRecorded(name, progress.step, value, line.source, line.time),)

    return meaning


def _validation_metric(name: str) -> _Meaning:
    def meaning(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
        if progress.validating is not None:
            yield MetricRecorded(
                name, progress.validating, float(line.match["value"]), line.source, line.time
            )

    return meaning


def _samples(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    if line.match["split"] == "Training":
        yield MilestoneReached("data-loaded", line.source, line.time)
        yield PlanSeen(line.source, samples=int(line.match["samples"]))


def _group_starting(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    progress.starting = line.match["group"]
    return ()


def _tracker_directory(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield TrackerDirFound(line.match["path"], line.source)


def _offline_directory(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    path = PurePosixPath(line.match["path"])
    if path.is_absolute():
        yield TrackerFound("wandb-offline", str(path))
    else:  # searched for, from the driver's working directory
        yield TrackerDirFound(str(path.parent), line.source)


def _max_steps(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield PlanSeen(line.source, max_steps=int(line.match["steps"]))


def _signalled(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield ProcessSignalled("SIGTERM", line.source, line.time)


def _phase(identity: str) -> _Meaning:
    def meaning(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
        return (PhaseBegan(identity, max(progress.began, progress.step), line.source, line.time),)

    return meaning


def _initial_validation(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield PhaseBegan("validation", progress.step, line.source, line.time)


def _phase_time(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    phase = PHASE_OF_TIMING[line.match["label"]]
    value = float(line.match["value"])
    return (MetricRecorded(f"{phase}_time_s", progress.step, value, line.source, line.time),)


def _recovered(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield Recovered(line.source)


def _group_started(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield Recovered(line.source)
    if progress.starting in ("teacher", "student"):
        yield MilestoneReached(f"{progress.starting}-ready", line.source, line.time)


def _resumed(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    progress.step = max(progress.step, int(line.match["step"]))
    yield PlanSeen(line.source, resumed=int(line.match["step"]))


def _epoch(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield PlanSeen(line.source, epochs=int(line.match["of"]), epoch=int(line.match["epoch"]))


def _step(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    progress.began = progress.step + 1
    yield PlanSeen(line.source, steps_per_epoch=int(line.match["of"]), epoch_step=int(line.match["step"]))
    yield StepBegan(progress.began, line.source, line.time)


def _generating(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield PlanSeen(line.source, batch=int(line.match["batch"]))
    yield from _phase("generation")(progress, line)


def _validating(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    progress.validating = int(line.match["step"])
    yield PhaseBegan("validation", progress.validating, line.source, line.time)


def _validated(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield MilestoneReached("first-validation", line.source, line.time)
    yield from _phase("results")(progress, line)


def _saving(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    step = int(line.match["step"])
    yield MilestoneReached("first-checkpoint", line.source, line.time)
    yield CheckpointSaving(step, line.source, line.time)
    yield PhaseBegan("checkpoint", step, line.source, line.time)


def _step_done(progress: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    progress.step = int(line.match["step"])
    yield MilestoneReached("first-step", line.source, line.time)
    yield PhaseBegan("results", progress.step, line.source, line.time)


def _stopped_to_save(_: DriverProgress, line: MatchedLine) -> Iterable[Event]:
    yield StoppedToSave(line.source, line.time)


PHASE_OF_TIMING = {
    "generation": "generation",
    "teacher_logprob_inference": "teacher",
    "policy_training": "training",
    "checkpointing": "checkpoint",
}
"""Label of a step's timing (nemo_rl/algorithms/distillation.py) -> phase; validations print theirs apart."""
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
    rule(
        "Initialized TensorboardLogger",
        r"Initialized TensorboardLogger at (?P<path>\S.*)$",
        _tracker_directory,
    ),
    rule("/offline-run-", r"wandb: .*?(?P<path>[^\s`']*/offline-run-[\w.-]+)", _offline_directory, own=False),
    rule("workers:   0%", r"Initializing (?P<group>\w+) workers: ", _group_starting),
    rule("workers initialized in", r"\s*✓ \d+ workers initialized in [\d.]+s$", _group_started),
    rule(
        "backend for generation with",
        r"\s*✓ Using \S+ backend for generation with ",
        _milestone("generation-ready"),
    ),
    rule(
        "/policy/weights", r"Loading weights from .+/step_(?P<step>\d+)/policy/weights$", _resumed, own=False
    ),
    rule("SETUP COMPLETE", r"\s+SETUP COMPLETE$", _milestone("setup-complete")),
    rule("max_num_steps", r".*\bmax_num_steps['\"]?\s*[:=]\s*(?P<steps>\d+)\b", _max_steps),
    rule("Running initial validation", r"\S*\s*Running initial validation\.\.\.$", _initial_validation),
    rule("= Epoch ", r"=+ Epoch (?P<epoch>\d+)/(?P<of>\d+) =+$", _epoch),
    rule("===== Step ", r"=+ Step (?P<step>\d+)/(?P<of>\d+) =+$", _step),
    rule("for batch of size", r"▶ Generating responses for batch of size (?P<batch>\d+)\.\.\.$", _generating),
    rule("teacher logprob", r"▶ (?:Preparing for|Computing) teacher logprob", _phase("teacher")),
    rule("Training policy...", r"▶ Training policy\.\.\.$", _phase("training")),
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
    *(
        rule(f"• {label}: ", rf"\s*• (?P<label>{label}): {_NUMBER}s \(", _phase_time)
        for label in PHASE_OF_TIMING
    ),
    rule(
        "Max number of steps has been reached",
        r"Max number of steps has been reached, stopping training early$",
        _milestone("completed"),
    ),
    rule(
        "Timeout has been reached",
        r"Timeout has been reached, stopping training early$",
        _stopped_to_save,
    ),
    # Ray's and abseil's handlers, torchrun, bash, srun: whoever was told to end says so in its own words.
    rule(" SIGTERM", r"(?:.*\*\*\* SIGTERM received|(?:.* )?[Rr]eceived SIGTERM)", _signalled),
    rule("Signals.SIGTERM", r"(?:.* )?[Rr]eceived Signals\.SIGTERM", _signalled),
    rule("got signal: 15", r".*Process \d+ got signal: 15", _signalled),
    rule(
        "Terminated",
        r"(?:\S+: line \d+:\s+\d+ Terminated\b|Terminated$|srun: error: \S+: tasks? [\d,-]+: Terminated)",
        _signalled,
    ),
)


class DriverReader(RuleReader[DriverProgress]):
    """Reader of a driver's log."""

    def __init__(self, log: str) -> None:
        super().__init__(log, Role.DRIVER, RULES, DriverProgress())
