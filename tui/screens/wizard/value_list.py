"""The list of a field's values, as a dialog."""

from __future__ import annotations

from collections.abc import Sequence

from tui.screens.wizard.alternatives import FieldChoice
from tui.widgets.choice_list import ListChoice
from tui.widgets.entry_dialog import EntryDialog, EntryRequest

_LISTED = 9
"""Values that a list shows at once; longer lists are filtered by typing."""


def value_list(title: str, choices: Sequence[FieldChoice], present: str) -> EntryDialog:
    """Return a dialog that answers with a value; the cursor is on the present one."""
    options = tuple(
        ListChoice(
            item.label or item.value or "none", item.description, value=item.value, detail=item.description
        )
        for item in choices
    )
    shown = next((option.text for option in options if option.value == present), "")
    entry = EntryRequest(title, shown, "", options, filtered=True, choose=True)
    return EntryDialog(entry, typed=_typed if len(options) > _LISTED else None)


def _typed(text: str) -> None:
    """Let the list be filtered by typing: nothing else follows from the text."""
