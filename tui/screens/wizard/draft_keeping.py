"""The draft of a run on disk: written after each change, offered when no wizard has it open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App

from launcher.text import clean
from tui.formatting import duration
from tui.screens.dialogs import ChoiceDialog, DialogChoice
from tui.screens.wizard.wizard_state import WizardState

if TYPE_CHECKING:
    from launcher.storage.wizard_drafts import RunDraft, RunDrafts, RunDraftWriter

_ANSWER_S = 2.0
"""Longest wait for the directory of drafts: one that hangs must not hold up the keys."""
_MOST_OFFERED = 8


class DraftKeeper:
    """Keeps the draft of one wizard."""

    def __init__(self, state: WizardState, writer: RunDraftWriter | None = None, host: str = "") -> None:
        self._first = state
        self._host = host
        self._writer = writer
        """None until there is something to keep."""
        self._ended = False

    def keep(self, state: WizardState, step: str, title: str) -> None:
        """Have the state written; returns at once. Nothing is written before something was changed."""
        if self._ended or (self._writer is None and (state == self._first or not state.touched)):
            return
        from launcher.storage.wizard_drafts import RunDraft, RunDrafts

        if self._writer is None:
            self._writer = RunDrafts.of(os.environ).writer()
        self._writer.put(RunDraft(state.as_json(), step, title, host=self._host))

    @property
    def kept(self) -> bool:
        """Whether there is a draft, as far as it could be written."""
        return self._writer is not None and self._writer.error is None and not self._ended

    @property
    def failed(self) -> bool:
        """Whether the draft could not be written."""
        return self._writer is not None and self._writer.error is not None

    async def leave(self) -> None:
        """Keep the draft for later."""
        if self._writer is not None and not self._ended:
            self._ended = True
            await asyncio.to_thread(self._writer.leave)

    async def discard(self) -> None:
        """Remove the draft: the run was submitted."""
        self._ended = True
        if self._writer is not None:
            await asyncio.to_thread(self._writer.discard)


async def offered_drafts() -> tuple[RunDraft, ...]:
    """Return the drafts that no wizard has open; none where their directory does not answer in time."""
    from launcher.storage.wizard_drafts import RunDrafts

    drafts = RunDrafts.of(os.environ)
    try:
        return await asyncio.wait_for(asyncio.to_thread(drafts.offered), _ANSWER_S)
    except TimeoutError:
        return ()


OpenDraft = Callable[[WizardState | None, str, "RunDraftWriter | None", str], None]
"""Opens the wizard: with a state, at a step, going on with a draft, for a host (empty: this machine)."""


def offer(app: App[None], drafts: tuple[RunDraft, ...], open_wizard: OpenDraft, host: str = "") -> None:
    """Ask whether to go on with a draft or to start over, on a host or on this machine."""
    from launcher.storage.wizard_drafts import RunDrafts

    shown = drafts[:_MOST_OFFERED]
    store = RunDrafts.of(os.environ)
    choices = [
        DialogChoice("g" if index == 0 else str(index + 1), draft_text(draft), str(index))
        for index, draft in enumerate(shown)
    ]
    choices += [
        DialogChoice("n", "start over; drafts are kept", "new"),
        DialogChoice("x", "discard the draft" if len(drafts) == 1 else "discard all drafts", "discard"),
    ]

    async def answered(answer: str | None) -> None:
        if answer is None:
            return
        if answer == "discard":
            await asyncio.to_thread(_discard, store, drafts)
        if answer in ("new", "discard"):
            open_wizard(None, "", None, host)
            return
        await go_on(app, shown[int(answer)], open_wizard)

    text = "There is a draft of a run." if len(drafts) == 1 else f"There are {len(drafts)} drafts of runs."
    app.push_screen(ChoiceDialog("New run", text, choices), answered)


async def go_on(app: App[None], draft: RunDraft, open_wizard: OpenDraft) -> None:
    """Open the wizard with a draft, at its step."""
    from launcher.storage.wizard_drafts import RunDrafts

    try:
        state = WizardState.from_json(draft.state)
    except ValueError:
        app.notify("This draft is of another version, and cannot be read.", severity="warning")
        return
    writer = await asyncio.to_thread(RunDrafts.of(os.environ).take, draft)
    open_wizard(state, draft.step, writer, draft.host)


def _discard(store: RunDrafts, drafts: tuple[RunDraft, ...]) -> None:
    for draft in drafts:
        store.discard(draft)


def draft_text(draft: RunDraft) -> str:
    """Return a draft on one line: what it is of, and its age."""
    on_host = f"{clean(draft.host)}: " if draft.host else ""
    title = f"{on_host}{clean(draft.title) or 'a run'}"
    return f"continue the draft: {title} ({duration(draft.age_s, tenths=False)} ago)"
