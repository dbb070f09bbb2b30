"""Dialogs: what they ask and what can be answered is on the screen, whatever the text's length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pilot import NARROW, shown
from tui.screens.dialogs import ChoiceDialog, DialogChoice
from tui.widgets.entry_dialog import EntryDialog, EntryRequest

CHOICES = [DialogChoice("y", "submit", "yes"), DialogChoice("n", "cancel", "no")]


@pytest.mark.long
async def test_the_answers_of_a_long_question_are_on_the_screen(tmp_path: Path) -> None:
    lines = [f"line {number}: {'word ' * number}." for number in range(20)]
    async with shown(tmp_path, (60, 20)) as screen:
        await screen.see("No runs yet")
        screen.app.push_screen(ChoiceDialog("Submit?", "\n".join(lines), CHOICES))
        await screen.see("Submit?", "line 0:", "y  submit", "n  cancel", "PgUp PgDn scroll")
        await screen.press("pagedown")
        await screen.until(lambda: "line 0:" not in screen.text, "the next page")
        for _ in range(5):
            await screen.press("pagedown")
        await screen.see("line 19:", "y  submit", "n  cancel")
        await screen.press("n")
        await screen.until(lambda: "Submit?" not in screen.text, "the dialog is closed")


async def test_a_short_question_does_not_scroll(tmp_path: Path) -> None:
    async with shown(tmp_path, NARROW) as screen:
        await screen.see("No runs yet")
        screen.app.push_screen(ChoiceDialog("Submit?", "a short\nquestion", CHOICES))
        await screen.see("question", "y  submit", "n  cancel")
        assert "scroll" not in screen.text


async def test_a_field_whose_text_is_longer_shows_its_end_where_the_cursor_is(tmp_path: Path) -> None:
    path = "/scratch/" + "project/" * 12 + "recipe.yaml"
    async with shown(tmp_path, NARROW) as screen:
        await screen.see("No runs yet")
        screen.app.push_screen(EntryDialog(EntryRequest("New recipe", path, "a path", select=False)))
        await screen.see("New recipe", "project/recipe.yaml")
