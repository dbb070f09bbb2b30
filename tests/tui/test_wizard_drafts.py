"""Drafts of runs: written with each key, offered when their wizard is gone, removed by a submission."""

# ruff: noqa: F811 - the fixture `node`
from __future__ import annotations

import asyncio
import json

import pytest

from launcher.storage.wizard_drafts import RunDraft, RunDrafts
from tests.tui.fakeslurm import LoginNode
from tests.tui.pilot import shown
from tests.tui.test_wizard import node, on_review, page, retype, to_step, wizard  # noqa: F401 - a fixture
from tui.screens.monitor import MonitorScreen
from tui.screens.wizard.draft_keeping import DraftKeeper, draft_text
from tui.screens.wizard.wizard_state import WizardState


@pytest.fixture(autouse=True)
def _own_state(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(node.root / "state"))


def written() -> list[dict[str, object]]:
    """Return what is on disk, also of a wizard that is open."""
    directory = RunDrafts.of()._store.directory
    files = sorted(directory.iterdir()) if directory.exists() else []
    return [json.loads(file.read_text().partition("\n")[2]) for file in files]


async def offered() -> tuple[RunDraft, ...]:
    return await asyncio.to_thread(RunDrafts.of().offered)


def texts_of(draft: RunDraft | dict[str, object]) -> dict[str, str]:
    state = draft.state if isinstance(draft, RunDraft) else str(draft["state"])
    return dict(WizardState.from_json(state).texts)


def test_nothing_is_written_before_something_is_changed(node: LoginNode) -> None:
    first = WizardState({"recipe": "r.yaml"})
    keeper = DraftKeeper(first)
    keeper.keep(first, "models", "r.yaml")
    assert (keeper.kept, keeper.failed, written()) == (False, False, [])


@pytest.mark.long
async def test_a_draft_survives_its_wizard_and_goes_on_at_its_step(node: LoginNode) -> None:
    async with wizard(node) as screen:
        await to_step(screen, "batches")
        await retype(screen, "prompts", "32")
        await screen.until(lambda: written() and texts_of(written()[0])["prompts"] == "32", "on disk")
        assert await offered() == ()  # its wizard is open
        await screen.press("ctrl+c")
    (draft,) = RunDrafts.of().offered()
    assert "student from teacher" in draft_text(draft)
    async with shown(node.runs) as screen:
        await screen.see("No runs yet")
        await screen.press("n")
        await screen.see("There is a draft of a run.", "student from teacher", "start over", "discard")
        await screen.press("g")
        await screen.see("4 Batches and lengths", "● Prompts per step")
        assert page(screen).wizard_state.texts["prompts"] == "32"
        await screen.until(lambda: len(written()) == 1, "one draft")


@pytest.mark.slow
async def test_a_submission_removes_the_draft_and_discarding_all(node: LoginNode) -> None:
    async with wizard(node, time="30", partition="devel") as screen:
        await to_step(screen, "batches")
        await retype(screen, "prompts", "32")
        await on_review(screen)
        await screen.press("s", "y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        await screen.until(lambda: not written(), "removed")
    RunDrafts.of().writer().put(RunDraft(WizardState({"nodes": "7"}).as_json(), "job", "one"))
    for nodes in ("8", "9"):
        writer = RunDrafts.of().writer()
        writer.put(RunDraft(WizardState({"nodes": nodes}).as_json(), "job", f"run {nodes}"))
        writer.leave()
    async with shown(node.runs) as screen:
        await screen.press("n")
        await screen.see("There are 2 drafts of runs.", "run 8", "run 9")
        await screen.press("x")
        await screen.see("1 Cluster", "booster")
        assert await offered() == ()
