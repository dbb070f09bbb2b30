"""The findings of the checks as a list with the focus of its own."""

from __future__ import annotations

from tui.commands import Scope, bindings
from tui.widgets.choice_list import ChoiceList


class FindingList(ChoiceList, can_focus=True, inherit_bindings=False):
    """The findings of the checks, one of them selected."""

    BINDINGS = bindings(Scope.OUTLINE)

    def action_cursor(self, step: int) -> None:
        """Move by rows."""
        self.move(step)
        self.post_message(self.Moved())

    def action_page(self, direction: int) -> None:
        """Move by a page."""
        self.action_cursor(direction * max(self.size.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move to the first or the last finding."""
        self.action_cursor(direction * len(self.choices))

    def action_fold(self) -> None:
        """Do nothing: findings have no sections."""

    def action_unfold(self) -> None:
        """Do nothing: findings have no sections."""

    def action_fold_all(self) -> None:
        """Do nothing: findings have no sections."""
