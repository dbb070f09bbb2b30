"""Text of a dialog, which scrolls where it would push the answers off the screen."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

_SHARE = 0.9
"""Share of the screen's height that a dialog may take (`.dialog` in screens.tcss)."""
_FRAME_ROWS = 2
_FEWEST_ROWS = 3
Result = TypeVar("Result")
MORE = "PgUp PgDn scroll"


class DialogText(VerticalScroll, can_focus=False):
    """Text above the answers of a dialog: what is left of the dialog's height is its own."""

    def __init__(self, text: str) -> None:
        super().__init__(Static(Content(text)), classes="dialog-text")

    def on_mount(self) -> None:
        """Fit the text as soon as the answers have their size."""
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        """Leave room for the rest of the dialog, and say there whether the text scrolls."""
        if not self.is_attached or self.parent is None:
            return
        others = [item for item in self.siblings if item.display]
        taken = sum(item.outer_size.height + item.styles.margin.height for item in others)
        room = int(self.screen.size.height * _SHARE) - _FRAME_ROWS - taken - self.styles.margin.height
        self.styles.max_height = max(room, _FEWEST_ROWS)
        self.scroll_home(animate=False)
        self.call_after_refresh(self._tell)

    def on_resize(self) -> None:
        """Say again whether the text scrolls."""
        self.call_after_refresh(self._tell)

    def _tell(self) -> None:
        if self.is_attached and isinstance(self.parent, Widget):
            self.parent.border_subtitle = MORE if self.max_scroll_y else ""

    def page(self, direction: int) -> None:
        """Scroll by a page."""
        (self.scroll_page_down if direction > 0 else self.scroll_page_up)(animate=False)


class DialogWithText(ModalScreen[Result]):
    """A dialog whose text scrolls by the page keys, while something else has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll_text(-1)", "Scroll up", show=False, priority=True),
        Binding("pagedown", "scroll_text(1)", "Scroll down", show=False, priority=True),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self.dialog_text = DialogText(text)

    def on_resize(self) -> None:
        """Fit the text again."""
        if self.dialog_text.is_attached:
            self.dialog_text.call_after_refresh(self.dialog_text.fit)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the page keys to what has the focus where the text does not scroll."""
        del parameters
        return action != "scroll_text" or (
            self.dialog_text.is_attached and bool(self.dialog_text.max_scroll_y)
        )

    def action_scroll_text(self, direction: int) -> None:
        """Scroll the text by a page."""
        self.dialog_text.page(direction)
