"""The layout of a monitor's log panes: read when it opens, kept once it no longer changes."""

from __future__ import annotations

import os

from textual.screen import Screen
from textual.timer import Timer

from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.logview.panes import LogPanes
from tui.opening import ActionFailed
from tui.pane_settings import PaneSettings, load_pane_settings, save_pane_settings

_SAVE_AFTER_S = 1.0
"""Time after the last change of the layout before it is kept."""


class LayoutKeeper:
    """Reads and writes the user's choice of layout and sizes, on threads."""

    def __init__(self, screen: Screen[None], panes: LogPanes) -> None:
        self._screen, self._panes = screen, panes
        self._settings = PaneSettings()
        self._saving: Timer | None = None

    def load(self) -> None:
        """Adopt the layout that the user chose before."""

        def read() -> None:
            settings = load_pane_settings(os.environ)
            call_on(self._screen, lambda: self._adopt(settings))

        in_background(read, "settings", self._failed)

    def _adopt(self, settings: PaneSettings) -> None:
        self._settings = settings
        self._panes.set_choices(settings.layout, settings.shares)

    def changed(self) -> None:
        """Keep the layout once it no longer changes."""
        if self._saving is not None:
            self._saving.stop()
        self._saving = self._screen.set_timer(_SAVE_AFTER_S, self.save)

    def save(self) -> None:
        """Keep the layout now, if it has changed."""
        if self._saving is None:
            return
        self._saving.stop()
        self._saving = None
        before, after = self._settings, PaneSettings(self._panes.layout_choice, dict(self._panes.shares))
        self._settings = after
        environment = dict(os.environ)  # as it is now: the thread may write later
        in_background(lambda: save_pane_settings(environment, before, after), "settings", self._failed)

    def _failed(self, error: ExplainedError) -> None:
        post(self._screen, ActionFailed(error))
