"""Rows of drafts: recipes with unsaved edits, and runs that are being prepared, whose editor is gone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.base_directories import DRAFTS, RUN_DRAFTS, state_root
from launcher.overview.rows import RunRow
from launcher.text import clean

if TYPE_CHECKING:
    from launcher.storage.drafts import Draft
    from launcher.storage.wizard_drafts import RunDraft


def draft_rows(environment: Mapping[str, str] = os.environ) -> tuple[RunRow, ...]:
    """Return the drafts that no editor and no wizard is open with; damaged ones are left out."""
    root = state_root(environment)
    if not any(_has_files(root / name) for name in (DRAFTS, RUN_DRAFTS)):
        return ()
    # Imported late: with pydantic, which takes 0.1 s, and is not needed for a list without drafts.
    from launcher.storage.drafts import DraftStore
    from launcher.storage.wizard_drafts import RunDrafts

    recipes = map(_of_recipe, DraftStore.of(environment).orphans(None))
    runs = (_of_run(draft) for draft in RunDrafts.of(environment).offered())
    return (*recipes, *(row for row in runs if row is not None))


def run_draft(row: RunRow, environment: Mapping[str, str] = os.environ) -> RunDraft | None:
    """Return the draft of a run by its row; None where another wizard has it, or it is gone."""
    from launcher.storage.wizard_drafts import RunDrafts

    drafts = RunDrafts.of(environment).offered()
    return next((draft for draft in drafts if str(draft.file) == row.draft), None)


def discard_draft(row: RunRow) -> None:
    """Remove a draft; without effect where it is gone."""
    with suppress(OSError):
        Path(row.draft).unlink()


def _has_files(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def _of_recipe(draft: Draft) -> RunRow:
    name = clean(draft.path.name)
    return RunRow(
        name,
        name,
        "",
        draft=str(draft.file),
        reason="unsaved edits of this recipe",
        detail=clean(str(draft.path)),
        recipe=str(draft.path),
        started=draft.saved_at,
        host=clean(draft.machine),
    )


def _of_run(draft: RunDraft) -> RunRow | None:
    if draft.file is None:
        return None
    from launcher.fields import STEPS  # only where there is a draft

    name = clean(draft.title) or "new run"
    titles = {item.id: item.title for item in STEPS}
    step = f", at step {titles[draft.step]}" if draft.step in titles else ""
    return RunRow(
        name,
        name,
        "",
        draft=str(draft.file),
        reason=f"being prepared{step}; not submitted",
        detail="a run that is being prepared",
        started=draft.saved_at,
        host=clean(draft.host),
    )
