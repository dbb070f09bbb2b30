"""What the review shows on request: the recipe's changes, the script, the environment, the command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.text import clean
from tui.background import call_on, in_background
from tui.clipboard import copy_to_tmux, fitting, in_tmux
from tui.formatting import plural
from tui.screens.wizard.review import environment_rows
from tui.widgets.text_screen import TextScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from launcher.submit.submit import SubmissionPlan
    from tui.screens.wizard.model import DraftStatus


class ReviewCommands:
    """Views of a planned submission; `said` gets a message for the user."""

    def __init__(self, screen: Screen[None], said: Callable[[str], None]) -> None:
        self._screen = screen
        self._said = said

    def show_environment(self, status: DraftStatus) -> None:
        """Show what becomes of each variable in the job."""
        rows = environment_rows(status)
        lines = [Content(row) for row in rows]
        self._show("The job's environment", plural(len(rows), "variable"), lines)

    def show_script(self, plan: SubmissionPlan) -> None:
        """Show the batch script as it would be written."""
        from launcher.submit.review_facts import batch_script

        text = batch_script(plan)
        lines = [Content(clean(line)) for line in text.splitlines()]
        self._show("The batch script", plural(len(lines), "line"), lines)

    def show_changes(self, status: DraftStatus) -> None:
        """Show the changes of the recipe by effective value."""
        from launcher.submit.review_facts import recipe_changes
        from recipes.compare import ABSENT
        from tui.screens.wizard.review import value_text

        recipe, base = status.effective, status.base_recipe
        if recipe is None or base is None:
            return
        lines = []
        for item in recipe_changes(base, recipe):
            if item.a is not ABSENT:
                lines.append(Content.assemble((f"- {clean(item.key)}: {value_text(item.a)}", "$text-error")))
            if item.b is not ABSENT:
                lines.append(
                    Content.assemble((f"+ {clean(item.key)}: {value_text(item.b)}", "$text-success"))
                )
        nothing = [Content("nothing: the run takes the recipe as it is").stylize("dim")]
        self._show("Recipe changes, by effective value", plural(len(lines), "line"), lines or nothing)

    def _show(self, title: str, subtitle: str, lines: list[Content]) -> None:
        self._screen.app.push_screen(TextScreen(title, subtitle, lines))

    def copy_command(self, plan: SubmissionPlan) -> None:
        """Copy the sbatch line, to tmux's buffer or to the terminal's clipboard."""
        from launcher.submit.review_facts import command_line

        text = fitting(command_line(plan))
        if not in_tmux(os.environ):
            self._copy_to_terminal(text)
            return

        def copy() -> None:
            if copy_to_tmux(text):
                call_on(self._screen, lambda: self._said("copied the sbatch line to tmux's buffer"))
            else:
                call_on(self._screen, lambda: self._copy_to_terminal(text))

        in_background(copy, "copy", lambda error: call_on(self._screen, lambda: self._said(str(error))))

    def _copy_to_terminal(self, text: str) -> None:
        self._screen.app.copy_to_clipboard(text)
        self._said("copied the sbatch line, if your terminal supports OSC 52")
