"""The submit request that a wizard state produces. No I/O."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.fields import FIELDS
from recipes.planning.edits import hydra
from tui.screens.wizard.model import (
    DraftStatus,
    WizardState,
    count_of,
    key_of,
    kind_of,
    profile_answer,
    text_of,
    words_of,
)

if TYPE_CHECKING:
    from launcher.request import SubmitRequest


def recipe_overrides(state: WizardState, status: DraftStatus) -> tuple[str, ...]:
    """Return the overrides that the recipe's fields produce; invalid values are left out."""
    overrides = []
    for item in FIELDS:
        if not item.key or not state.texts.get(item.name):
            continue
        value: object = state.texts[item.name]
        if item.kind == "whole":
            value = count_of(item.name, state, status)
            if value is None:
                continue
        overrides.append(f"++{key_of(item, status)}={hydra(value)}")
    return tuple(overrides)


_OPEN_IN_SMOKE = ("nodes", "partition", "reservation", "account")
"""Fields that a smoke run leaves open where nothing is given: its fewest nodes decide what takes the job."""


def request_of(state: WizardState, status: DraftStatus) -> SubmitRequest:
    """Return the submit request of a state without errors."""
    from launcher.request import SubmitRequest

    assert status.path is not None
    asked = [row for row in FIELDS if row.step and not row.key]
    values: dict[str, Any] = {row.name: text_of(row.name, state, status) or None for row in asked}
    values |= {row.name: words_of(values[row.name] or "") or () for row in asked if row.repeatable}
    kind = kind_of(state)
    smoke_fields = _OPEN_IN_SMOKE if kind == "smoke" else ()
    open_fields = [
        name for name in smoke_fields if not (state.texts.get(name) or profile_answer(name, state, status))
    ]
    return SubmitRequest.of(
        {
            **state.carried,
            **values,
            "recipe": status.path,
            "kind": kind,
            "nodes": count_of("nodes", state, status) or 1,
            **dict.fromkeys(open_fields),
            "gpu_memory": count_of("gpu_memory", state, status),
            # Only what was typed: the site's own are no request, and are not to be remembered.
            "modules": state.texts.get("modules") or None,
            "env_file": Path(values["env_file"]).expanduser() if values["env_file"] else None,
            "chain": count_of("chain", state, status) or 1,
            "checkout": None if kind == "rehearsal" else values["checkout"],
            "overrides": (*state.overrides, *recipe_overrides(state, status)),
            "skip_checks": state.skipped,
        }
    )
