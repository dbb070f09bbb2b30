"""The submit request that a wizard state produces. No I/O."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.fields import FIELDS
from launcher.fields.field_values import all_changes
from recipes.remote_path import on_machine_of
from tui.screens.wizard.model import (
    DraftStatus,
    WizardState,
    count_of,
    gpus_per_node_of,
    kind_of,
    profile_answer,
    text_of,
    words_of,
)

if TYPE_CHECKING:
    from launcher.fields.compound_fields import FieldChange
    from launcher.request import SubmitRequest


def field_changes(state: WizardState, status: DraftStatus) -> tuple[FieldChange, ...]:
    """Return the effects of the recipe's fields; invalid values have none."""
    if status.recipe is None:
        return ()
    return all_changes(
        state.texts,
        status.recipe,
        key_tree=status.key_tree,
        both=state.both,
        nodes=count_of("nodes", state, status),
        gpus_per_node=gpus_per_node_of(state, status),
    )


def recipe_overrides(state: WizardState, status: DraftStatus) -> tuple[str, ...]:
    """Return the overrides that the recipe's fields produce; invalid values are left out."""
    return tuple(text for change in field_changes(state, status) for text in change.overrides())


_OPEN_IN_SMOKE = ("nodes", "partition", "reservation", "account")
"""Fields that a smoke run leaves open where nothing is given: its fewest nodes decide what takes the job."""


def request_of(state: WizardState, status: DraftStatus) -> SubmitRequest:
    """Return the submit request of a state without errors."""
    from launcher.request import SubmitRequest

    assert status.path is not None
    asked = [row for row in FIELDS if row.step and not row.of_recipe]
    values: dict[str, Any] = {row.name: text_of(row.name, state, status) or None for row in asked}
    values |= {row.name: words_of(values[row.name] or "") or () for row in asked if row.repeatable}
    kind = kind_of(state)
    changes = field_changes(state, status) if kind == "training" else ()
    smoke_fields = _OPEN_IN_SMOKE if kind == "smoke" else ()
    open_fields = [
        name for name in smoke_fields if not (state.texts.get(name) or profile_answer(name, state, status))
    ]
    return SubmitRequest.of(
        {
            **values,
            "recipe": status.path,
            "profile": state.texts.get("profile"),  # not chosen: the default one, which may be refused
            "kind": kind,
            "nodes": count_of("nodes", state, status) or 1,
            **dict.fromkeys(open_fields),
            # Only what was typed: the site's own are no request, and are not to be remembered.
            "gpus_per_node": count_of("gpus_per_node", state, status)
            if "gpus_per_node" in state.texts
            else None,
            "gpu_memory": count_of("gpu_memory", state, status),
            "modules": state.texts.get("modules") or None,
            "env_file": _path_there(values["env_file"], status) if values["env_file"] else None,
            "env": (*values["env"], *(text for change in changes for text in change.env)),
            "mounts": tuple(mount for text in values["mounts"] for mount in text.split(",")),
            "container": state.texts.get("container") or None,
            "chain": count_of("chain", state, status) or 1,
            "checkout": None if kind == "rehearsal" else values["checkout"],
            "overrides": (*state.overrides, *recipe_overrides(state, status)),
            "skip_checks": state.skipped,
        }
    )


def _path_there(text: str, status: DraftStatus) -> Path:
    """Return a path on the machine of the recipe."""
    base = Path() if status.path is None else status.path
    return on_machine_of(base, text).expanduser()
