"""Errors and warnings about the texts of fields. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launcher.durations import DurationError, format_time_limit, parse_time_limit
from launcher.fields import Field
from launcher.fields.field_values import value_error
from launcher.text import clean
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    WizardState,
    count_of,
    fields_of,
    kind_of,
    partition_of,
    text_of,
    time_s,
    words_of,
)

if TYPE_CHECKING:
    from launcher.clusters.inventory import Detection, DetectionProblem


def error_in(item: Field, state: WizardState, status: DraftStatus) -> str:
    """Return why a field's text cannot be part of a request; empty where it can."""
    text = text_of(item.name, state, status)
    if not text and item.name == "partition" and status.detection is None:
        return ""  # an unreachable Slurm is reported elsewhere
    if not text and item.name == "partition" and (problem := no_partitions(status.detection)) is not None:
        return f"{clean(problem.what)}; F5 asks again"
    if not text:
        required = not item.optional and (not item.of_recipe or item.name in state.texts)
        return "required" if required else ""
    if item.of_recipe:
        return value_error(item, text) if item.name in state.texts else ""
    if item.kind == "whole" and count_of(item.name, state, status) is None:
        return "must be a whole number >= 1"
    if item.kind == "time":
        return _time_error(text)
    if item.repeatable and words_of(text) is None:
        return "a quote is not closed"
    if item.name == "recipe" and status.recipe_error:
        return _recipe_error(text, status)
    if item.name == "checkout" and status.checkout_error:
        return status.checkout_error
    return ""


def no_partitions(detection: Detection | None) -> DetectionProblem | None:
    """Return why no partition is known; None where some are, or Slurm lists none."""
    if detection is None or detection.partitions:
        return None
    return next(iter(detection.problems), None)


def _recipe_error(text: str, status: DraftStatus) -> str:
    """Return why a recipe cannot be read; where a part of its name was typed, how many have it."""
    matches = [item for item in status.recipes if text.casefold() in item.path.name.casefold()]
    if status.recipe_file_exists or not matches:
        return status.recipe_error
    return f"{len(matches)} match (tab)"


def _time_error(text: str) -> str:
    try:
        parse_time_limit(text)
    except DurationError as error:
        return clean(str(error))
    return ""


_JUDGED_BY_SITE = ("partition", "account", "time", "nodes")


def warning_in(item: Field, state: WizardState, status: DraftStatus) -> str:
    """Return why the site may refuse a field's text; only the site can decide."""
    partition = partition_of(state, status) if item.name in _JUDGED_BY_SITE else None
    if partition is None:
        return ""
    text = text_of(item.name, state, status)
    if item.name == "partition" and partition.state != "up":
        return f"is {partition.state}"
    if item.name == "account" and status.detection is not None:
        usable = status.detection.accounts_in(partition)
        if usable is not None and text and text not in usable:
            return f"may not use {partition.name}"
    if item.name == "time":
        limit = time_s(state, status)
        if limit and partition.max_time_s and limit > partition.max_time_s:
            return f"{partition.name}: {format_time_limit(partition.max_time_s)} at most"
    if item.name == "nodes":
        nodes = count_of("nodes", state, status)
        there = partition.nodes if kind_of(state) == "rehearsal" else partition.gpu_nodes
        max_nodes = min(there, partition.max_nodes or there)
        if nodes and nodes > max_nodes:
            return f"{partition.name} allows at most {max_nodes}"
        if nodes and nodes < (partition.min_nodes or 0):
            return f"{partition.name} takes jobs of {partition.min_nodes} and more"
    return ""


def errors(state: WizardState, status: DraftStatus) -> dict[str, str]:
    """Return the errors that prevent a request, by field."""
    texts = {
        item.name: error_in(item, state, status)
        for step in STEPS
        for item in fields_of(step, state, status)
    }  # fmt: skip
    return {name: text for name, text in texts.items() if text}
