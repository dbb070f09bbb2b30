"""Findings about a draft, and the one level that each field, step and the whole draft has. Pure.

The step list, the notes beside the fields, the review and the question before a submission all read these
findings, so that a mark in one place never contradicts another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from launcher.fields import FIELDS
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    WizardState,
    field_with_key,
    fields_of,
    lacks_gpu_memory,
    text_of,
)
from tui.screens.wizard.validation import error_in, warning_in

if TYPE_CHECKING:
    from launcher.fields import Field
    from recipes.checks import Result
    from recipes.errors import ExplainedError

Level = Literal["", "warn", "error"]
MARKS: dict[Level, tuple[str, str]] = {
    "": ("✓", "$text-success"),
    "warn": ("!", "$text-warning"),
    "error": ("✗", "$text-error"),
}
"""Glyph and style of each level."""
_ORDER: tuple[Level, ...] = ("error", "warn", "")


@dataclass(frozen=True, slots=True)
class DraftFinding:
    """Something that prevents a run, will make it fail, or that the site has to judge."""

    level: Literal["warn", "error"]
    message: str
    step: str
    """Id of the step that it belongs to."""
    field: str = ""
    """Name of the field that it belongs to; empty for none that is shown."""
    check: str = ""
    """Id of the check, where it is a check's."""
    skipped: bool = False
    """Whether it is a failing check that the user skips: a warning then."""
    prevents: bool = False
    """Whether there is no request, or no plan, with it."""

    @property
    def text(self) -> str:
        """The message with the check's id."""
        skipped = " (skipped)" if self.skipped else ""
        return f"{self.check}{skipped} {self.message}" if self.check else self.message


@dataclass(frozen=True, slots=True)
class Assessment:
    """All findings about a draft, worst first."""

    findings: tuple[DraftFinding, ...] = ()

    @property
    def level(self) -> Level:
        """The level of the whole draft."""
        return worst(self.findings)

    def on_field(self, name: str) -> tuple[DraftFinding, ...]:
        """Return a field's findings, worst first."""
        return tuple(item for item in self.findings if item.field == name)

    def on_step(self, step: str) -> tuple[DraftFinding, ...]:
        """Return a step's findings, worst first; the review has all of them."""
        return tuple(item for item in self.findings if step in (item.step, "review"))

    def level_of_field(self, name: str) -> Level:
        """Return a field's level."""
        return worst(self.on_field(name))

    def level_of_step(self, step: str) -> Level:
        """Return a step's level; the review's is that of the whole draft."""
        return worst(self.on_step(step))

    @property
    def preventing(self) -> tuple[DraftFinding, ...]:
        """The findings without which there would be a plan."""
        return tuple(item for item in self.findings if item.prevents)


def worst(findings: Iterable[DraftFinding]) -> Level:
    """Return the worst level; empty without findings."""
    levels = {item.level for item in findings}
    return next((level for level in _ORDER if level in levels), "")


def assess(state: WizardState, status: DraftStatus) -> Assessment:
    """Return the findings about a draft; none before anything is resolved."""
    if not status.resolved:
        return Assessment()
    fields = {step.id: fields_of(step, state, status) for step in STEPS}
    steps = {item.name: step for step, items in fields.items() for item in items}
    findings = (
        *_on_fields(fields, state, status),
        *_of_checks(state, status, steps),
        *_of_memory(state, status),
        *_of_plan(state, status, steps),
    )
    return Assessment(tuple(sorted(dict.fromkeys(findings), key=lambda item: _ORDER.index(item.level))))


def _on_fields(
    fields: Mapping[str, Iterable[Field]], state: WizardState, status: DraftStatus
) -> Iterator[DraftFinding]:
    for step, items in fields.items():
        for item in items:
            if error := error_in(item, state, status):
                yield DraftFinding("error", error, step, item.name, prevents=True)
            elif warning := warning_in(item, state, status):
                yield DraftFinding("warn", warning, step, item.name)


def _of_checks(state: WizardState, status: DraftStatus, steps: dict[str, str]) -> Iterator[DraftFinding]:
    if status.report is None:
        return
    from recipes.checks import is_skipped

    for result in status.report.results:
        if result.outcome not in ("fail", "warn"):
            continue
        skipped = result.outcome == "fail" and is_skipped(result, state.skipped)
        name = _field_of(result, status)
        yield DraftFinding(
            "error" if result.outcome == "fail" and not skipped else "warn",
            result.message,
            steps.get(name, "models"),
            name if name in steps else "",
            result.id,
            skipped,
        )


def _field_of(result: Result, status: DraftStatus) -> str:
    """Return the field of a check: that of the first key that has one."""
    names = (field_with_key(item.key, status) for item in result.where)
    return next((name for name in names if name is not None), "")


def _of_memory(state: WizardState, status: DraftStatus) -> Iterator[DraftFinding]:
    """Report phases that do not fit; the submission asks about them."""
    memory = status.memory
    if memory is not None:
        for phase in memory.phases:
            if not phase.fits:
                text = f"{phase.id} needs about {phase.needed:.1f} of {memory.gpu_gib:g} GiB of GPU memory"
                yield DraftFinding("error", text, "parallelism")
    elif lacks_gpu_memory(state, status):
        text = "unknown at this site: give GiB, so that the memory of the run is checked"
        yield DraftFinding("warn", text, "job", "gpu_memory")


def _of_plan(state: WizardState, status: DraftStatus, steps: dict[str, str]) -> Iterator[DraftFinding]:
    """Report why there is no plan, and a checkout that cannot run one."""
    error = status.slurm_error or status.plan_error or (status.plan.obstacle if status.plan else None)
    checkout = status.checkout
    if error is not None:
        name = _field_of_error(error, state, status)
        name = name if name in steps else ""
        step = "cluster" if status.slurm_error is not None else steps.get(name, "review")
        yield DraftFinding("error", error.what, step, name, prevents=True)
    elif checkout is not None and checkout.python is None and status.plan is None and "checkout" in steps:
        yield DraftFinding("warn", "no Python environment (.venv)", "models", "checkout")


def _field_of_error(error: ExplainedError, state: WizardState, status: DraftStatus) -> str:
    """Return the field that an error is about: by its option, or by the file that it names."""
    flag = re.split(r"[: =]", error.what, maxsplit=1)[0]
    by_flag = next((item.name for item in FIELDS if item.flag == flag), "")
    where, checkout = str(error.where or ""), status.checkout
    env_file = text_of("env_file", state, status)
    if not by_flag and env_file and env_file in (where, *error.what.replace(":", " ").split()):
        return "env_file"
    if not by_flag and checkout is not None and where.startswith(f"{checkout.path}/"):
        return "checkout"
    return by_flag
