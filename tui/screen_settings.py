"""The user's settings of the screen: theme, density, and how often it looks at runs and logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import InputError
from launcher.settings import COMPACT, DENSITIES, load_settings, set_setting, settings_path
from launcher.text import clean, did_you_mean
from tui.theme import THEME, theme_names

THEME_KEY = "screen.theme"
_DENSITY = "screen.density"


@dataclass(frozen=True, slots=True)
class ScreenSettings:
    """Settings of the screen; the defaults where nothing was decided."""

    theme: str = THEME.name
    compact: bool = False
    """Whether screens have less room between their parts."""
    runs_s: float = 3.0
    """Seconds between looks at the list of runs."""
    logs_s: float = 0.33
    """Seconds between reads of a log that is shown."""

    @property
    def density(self) -> str:
        """Name of the density."""
        return COMPACT if self.compact else DENSITIES[0]


def refuse_unknown_theme(name: str, where: Path | None = None) -> None:
    """Raise InputError where there is no theme of a name."""
    if name not in theme_names():
        raise InputError(
            f"invalid {THEME_KEY}: unknown theme '{clean(name)}'{did_you_mean(name, theme_names())}",
            where=where,
            fix=f"Themes: {', '.join(theme_names())}.",
        )


def load_screen_settings(environment: Mapping[str, str]) -> ScreenSettings:
    """Return the user's settings of the screen.

    Raises:
        InputError: the settings cannot be read, or name an unknown theme.
    """
    settings, default = load_settings(environment), ScreenSettings()
    if settings.theme:
        refuse_unknown_theme(settings.theme, settings_path(environment))
    return ScreenSettings(
        settings.theme or default.theme,
        settings.density == COMPACT,
        settings.runs_s or default.runs_s,
        settings.logs_s or default.logs_s,
    )


def keep_theme(environment: Mapping[str, str], name: str) -> None:
    """Write the theme that was chosen.

    Raises:
        InputError: the settings cannot be edited.
    """
    if load_settings(environment).theme != name:
        set_setting(environment, THEME_KEY, [name])


def keep_density(environment: Mapping[str, str], *, compact: bool) -> None:
    """Write the density that was chosen.

    Raises:
        InputError: the settings cannot be edited.
    """
    name = ScreenSettings(compact=compact).density
    if (load_settings(environment).density or DENSITIES[0]) != name:
        set_setting(environment, _DENSITY, [name])
