"""The bars of views that draw their own lines."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.geometry import Size

from tui.widgets.line_view import LineView


class Lines(App[None]):
    """One view, and nothing in it yet."""

    def compose(self) -> ComposeResult:
        """Make it."""
        yield LineView()


async def test_a_bar_that_appears_after_the_move_stands_where_the_view_is() -> None:
    async with Lines().run_test(size=(40, 10)) as pilot:
        view = pilot.app.query_one(LineView)
        assert view.scrollbars_enabled == (False, False)
        view.virtual_size = Size(200, 300)
        view.scroll_to(x=20, y=100, animate=False, force=True)
        await pilot.pause()
        assert view.scrollbars_enabled == (True, True)
        assert (view.vertical_scrollbar.position, view.horizontal_scrollbar.position) == (100, 20)
