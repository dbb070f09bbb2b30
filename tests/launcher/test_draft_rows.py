"""Drafts as rows of the list: of recipes with unsaved edits, and of runs that are being prepared."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.overview.arrangement import Arrangement, GroupHeading, arranged, merged
from launcher.overview.draft_rows import discard_draft, draft_rows, run_draft
from launcher.overview.rows import RunRow
from launcher.storage.drafts import DraftStore
from launcher.storage.wizard_drafts import RunDraft, RunDrafts


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def recipe_draft(environment: dict[str, str], path: Path, *, closed: bool = True) -> Path:
    return DraftStore.of(environment).save("token", path, "a: 1\n", b"", closed=closed)


def left_run(environment: dict[str, str], title: str) -> None:
    writer = RunDrafts.of(environment).writer()
    writer.put(RunDraft("{}", "batches", title))
    writer.leave()


def test_drafts_that_are_open_nowhere_are_rows(environment: dict[str, str], tmp_path: Path) -> None:
    assert draft_rows(environment) == ()
    recipe_draft(environment, tmp_path / "mine\x1b[31m.yaml")
    recipe_draft(environment, tmp_path / "open.yaml", closed=False)
    left_run(environment, "distillation.yaml, 2 nodes")
    RunDrafts.of(environment).writer().put(RunDraft("{}", "models", "open"))
    first, second = draft_rows(environment)
    assert (first.name, first.state_word, first.reason) == (
        "mine.yaml", "draft", "unsaved edits of this recipe",
    )  # fmt: skip
    assert first.recipe.endswith("mine\x1b[31m.yaml")
    assert (second.name, second.recipe) == ("distillation.yaml, 2 nodes", "")
    assert second.reason == "being prepared, at step Batches and lengths; not submitted"
    assert not any((row.is_run, row.is_job, row.live) for row in (first, second) if row.is_run)
    assert {row.key for row in (first, second)} == {first.draft, second.draft}


def test_the_draft_of_a_row_is_found_again_and_discarded(environment: dict[str, str]) -> None:
    left_run(environment, "one")
    (row,) = draft_rows(environment)
    draft = run_draft(row, environment)
    assert draft is not None
    assert (draft.title, draft.step) == ("one", "batches")
    discard_draft(row)
    discard_draft(row)
    assert draft_rows(environment) == ()
    assert run_draft(row, environment) is None


def test_drafts_stand_among_runs_by_time_and_under_their_recipe() -> None:
    runs = [RunRow(f"r{number}", f"r{number}", f"/r/{number}", started=10.0 - number) for number in range(2)]
    runs = [RunRow(row.id, row.name, row.directory, started=row.started, recipe="/x/a.yaml") for row in runs]
    draft = RunRow("a.yaml", "a.yaml", "", draft="/d/1", recipe="/y/a.yaml", started=9.5)
    prepared = RunRow("new", "new", "", draft="/d/2", started=99.0)
    rows = merged(runs, (draft, prepared))
    assert [row.name for row in rows] == ["new", "r0", "a.yaml", "r1"]
    headings = [item for item in arranged(rows, Arrangement(grouped=True)) if isinstance(item, GroupHeading)]
    assert [(item.title, item.rows, item.noun) for item in headings] == [
        ("drafts", 1, "draft"),
        ("a.yaml", 3, "entry"),
    ]
    assert [row.name for row in arranged(rows, Arrangement(text="draft")) if isinstance(row, RunRow)] == [
        "new",
        "a.yaml",
    ]
