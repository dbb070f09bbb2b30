"""The user's settings of the screen while the app runs: choices are kept, and the file is adopted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

from textual.app import App
from textual.theme import Theme

from tui.background import in_background, post
from tui.opening import ActionFailed
from tui.screen_settings import ScreenSettings, keep_density, keep_theme
from tui.settings_watch import LOOK_S, SettingsChanged, SettingsWatch
from tui.theme import initial_theme


@runtime_checkable
class SettingsUser(Protocol):
    """Screen that shows something which the settings decide, besides theme and density."""

    def settings_changed(self) -> None:
        """Read what it needs again."""


class LiveSettings:
    """Settings of the screen that follow the user's choices and the file."""

    def __init__(self, app: App[None], settings: ScreenSettings, environment: Mapping[str, str]) -> None:
        self._app = app
        self.settings = settings
        self._environment = environment
        self._watch = SettingsWatch(environment, app)
        self._show_density()

    def start(self) -> None:
        """Keep the themes that are chosen, and look at the file from time to time."""
        self._app.theme_changed_signal.subscribe(self._app, self.theme_chosen)
        self.look()
        self._app.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        """Look whether the file was changed."""
        self._watch.look()

    def theme_chosen(self, theme: Theme) -> None:
        """Keep a theme; those that the environment asks for are for this start alone."""
        if theme.name != initial_theme(self._environment, self.settings.theme):
            self.settings = replace(self.settings, theme=theme.name)
            self._write(lambda: keep_theme(self._environment, theme.name))

    def change_density(self) -> str:
        """Change to the other density, which is kept; return its name."""
        compact = not self.settings.compact
        self.settings = replace(self.settings, compact=compact)
        self._show_density()
        self._write(lambda: keep_density(self._environment, compact=compact))
        return self.settings.density

    def adopt(self, event: SettingsChanged) -> None:
        """Use what the file says now; one that cannot be used changes nothing."""
        if event.error is not None:
            self._app.notify(f"Settings not adopted: {event.error}", severity="warning", markup=False)
            return
        before, self.settings = self.settings, event.settings
        self._show_density()
        if event.settings.theme != before.theme:  # one that was chosen here stays
            self._app.theme = initial_theme(self._environment, event.settings.theme)
        for screen in self._app.screen_stack:
            if isinstance(screen, SettingsUser):
                screen.settings_changed()

    def _show_density(self) -> None:
        self._app.set_class(self.settings.compact, "-compact")

    def _write(self, keep: Callable[[], None]) -> None:
        in_background(keep, "settings", lambda error: post(self._app, ActionFailed(error)))
