"""Verdict on a driver that ended without an error: whether it did what its recipe asks for.

NeMo-RL trains until `max_num_steps` or `max_num_epochs` is reached, whichever comes first, or until it has
saved before `checkpoint_must_save_by` (nemo_rl/algorithms/distillation.py:758-1165). All three ends have exit
code 0; the end of the epochs, and a start with nothing left to do, print no line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from launcher.logs.events import JobState

RESUME_HINT = "a job with the same checkpoint directory continues there"


class RunStatus(NamedTuple):
    """State of a run, and its reason in words; empty where there is nothing to add."""

    state: JobState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """One attempt of a run, and how it ended."""

    job: str
    """Id of its job; empty where unknown."""
    requeue: int
    """Number of requeues of the job before it."""
    state: JobState
    reason: str = ""
    step: int = 0
    """Last step that it finished; 0 for none."""
    resumed: int | None = None
    """Step of the checkpoint that it began with."""
    began: float | None = None
    ended: float | None = None

    def in_words(self) -> str:
        """Return the attempt as one line."""
        name = f"job {self.job}" + f", requeue {self.requeue}" * bool(self.requeue)
        resumed = f", from step {self.resumed}" if self.resumed is not None else ""
        if self.state is JobState.STOPPED:  # how to resume is told of the run, once
            return f"{name}{resumed}: {self.reason.partition(';')[0] or self.state.value}"
        step = f" at step {self.step}" if self.step else ""
        return f"{name}{resumed}: {self.state.value}{step}" + f" ({self.reason})" * bool(self.reason)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Progress of a run by its logs, and its length by its recipe; unknown parts are None."""

    step: int = 0
    """Finished steps of the whole run."""
    max_steps: int | None = None
    epoch: int | None = None
    """Epoch that began last."""
    epochs: int | None = None
    epoch_step: int | None = None
    """Step within the epoch that began last."""
    steps_per_epoch: int | None = None
    resumed: int | None = None
    """Step of the checkpoint that was loaded."""
    current: int | None = None
    """Step that began last."""
    samples: int | None = None
    """Samples in the training set."""
    bounded_by_data: bool = False
    """An epoch ends with its data, not with the steps of the run."""
    set_up: bool = False
    """The driver finished its set-up."""
    said_completed: bool = False
    """The driver printed that all steps are done."""
    said_saved: bool = False
    """The driver printed that it saved and stopped before its time limit."""
    resume_hint: str = RESUME_HINT
    """How the run is resumed, in words."""

    @property
    def reached_steps(self) -> bool:
        """True if every step that the recipe asks for is done."""
        return self.max_steps is not None and max(self.step, self.resumed or 0) >= self.max_steps

    @property
    def used_epochs(self) -> bool:
        """True if the last step of the last epoch is done."""
        return (
            None not in (self.epoch, self.epochs, self.epoch_step, self.steps_per_epoch)
            and self.epoch == self.epochs
            and self.epoch_step == self.steps_per_epoch
            and self.step >= (self.current or 0)
        )


def clean_end(progress: RunProgress) -> RunStatus:
    """Return the status of a run whose driver ended without an error."""
    if progress.said_saved and not progress.reached_steps:
        of = f" of {progress.max_steps}" if progress.max_steps is not None else ""
        return RunStatus(
            JobState.STOPPED,
            f"stopped at step {progress.step}{of} to save before its time limit; {progress.resume_hint}",
        )
    if progress.said_completed or progress.reached_steps:
        if progress.set_up and progress.current is None and progress.resumed is not None:
            return RunStatus(
                JobState.COMPLETED, f"nothing was left to do after the checkpoint of step {progress.resumed}"
            )
        return RunStatus(JobState.COMPLETED)
    if progress.used_epochs:
        return RunStatus(JobState.COMPLETED, _epochs_used(progress))
    if progress.current is None:
        return _without_steps(progress)
    if progress.max_steps is None:
        return RunStatus(JobState.COMPLETED)
    return RunStatus(
        JobState.FAILED,
        f"its driver ended without an error at step {progress.step} of {progress.max_steps}; no log says why",
    )


def _epochs_used(progress: RunProgress) -> str:
    if progress.max_steps is None or progress.step >= progress.max_steps:
        return ""
    epochs = "its only epoch is" if progress.epochs == 1 else f"all {progress.epochs} epochs are"
    return f"{epochs} used up at step {progress.step}, before max_num_steps ({progress.max_steps})"


def _without_steps(progress: RunProgress) -> RunStatus:
    """Return the status of a driver that began no step."""
    if not progress.set_up:  # not a training as far as the logs show
        return RunStatus(JobState.COMPLETED)
    if progress.epoch is not None and progress.resumed is None:
        samples = f" ({progress.samples})" if progress.samples is not None else ""
        return RunStatus(
            JobState.FAILED,
            f"its epochs held no step: the training set has fewer samples{samples} than "
            "distillation.num_prompts_per_step",
        )
    after = f" after the checkpoint of step {progress.resumed}" if progress.resumed is not None else ""
    return RunStatus(JobState.COMPLETED, f"nothing was left to do{after}")
