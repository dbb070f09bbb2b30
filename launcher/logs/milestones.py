"""Milestones that every run is expected to reach, and phases of a training step, with their words."""

from __future__ import annotations

from dataclasses import dataclass, field

PHASES = {
    "generation": "generating the responses of step {step}",
    "teacher": "scoring the responses of step {step} with the teacher",
    "training": "training the student in step {step}",
    "validation": "validating at step {step}",
    "checkpoint": "saving the checkpoint of step {step}",
    "results": "finishing step {step}",
}
"""Id of a driver's phase -> its activity in words; the times are metrics named `<id>_time_s`."""


@dataclass(frozen=True, slots=True)
class MilestoneKind:
    """Milestone that every run is expected to reach, in this order."""

    id: str
    title: str
    waiting: str = field(default="")
    """Activity while this milestone is awaited."""


MILESTONES: tuple[MilestoneKind, ...] = (
    MilestoneKind("head-up", "Ray head up", "starting the Ray head"),
    MilestoneKind("workers-connected", "All workers connected", "waiting for the workers"),
    MilestoneKind("driver-started", "Driver started", "starting the driver"),
    MilestoneKind("ray-attached", "Driver attached to Ray", "the driver is importing and attaching to Ray"),
    MilestoneKind("data-loaded", "Data loaded", "loading the data"),
    MilestoneKind("teacher-ready", "Teacher workers up", "starting the teacher"),
    MilestoneKind("generation-ready", "Generation engine ready", "starting the generation engine"),
    MilestoneKind("student-ready", "Student workers up", "starting the student"),
    MilestoneKind("setup-complete", "Setup complete", "finishing the set-up"),
    MilestoneKind("first-step", "First step done", "training, first step"),
    MilestoneKind("first-validation", "First validation done", "training"),
    MilestoneKind("first-checkpoint", "First checkpoint saving", "training"),
    MilestoneKind("completed", "Completed", "training"),
)
MILESTONE_TITLES = {kind.id: kind.title for kind in MILESTONES}
