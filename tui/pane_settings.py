"""The layout of the log panes and their sizes in the user's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.settings import load_settings, set_setting
from tui.logview.layouts import PaneLayout, Shares, parse_shares, shares_text


@dataclass(frozen=True, slots=True)
class PaneSettings:
    """What the user chose; no layout for the one that the width suggests."""

    layout: PaneLayout | None = None
    shares: Mapping[PaneLayout, Shares] = field(default_factory=dict)


def load_pane_settings(environment: Mapping[str, str]) -> PaneSettings:
    """Return the user's choice; sizes that are none are ignored.

    Raises:
        InputError: the settings cannot be read.
    """
    settings = load_settings(environment)
    shares = [parsed for text in settings.panes if (parsed := parse_shares(text)) is not None]
    return PaneSettings(PaneLayout(settings.layout) if settings.layout else None, dict(shares))


def save_pane_settings(environment: Mapping[str, str], before: PaneSettings, after: PaneSettings) -> None:
    """Write what has changed.

    Raises:
        InputError: the settings cannot be edited.
    """
    if after.layout is not None and after.layout is not before.layout:
        set_setting(environment, "monitor.layout", [after.layout.value])
    texts = sorted(shares_text(layout, shares) for layout, shares in after.shares.items())
    if texts != sorted(shares_text(layout, shares) for layout, shares in before.shares.items()):
        set_setting(environment, "monitor.panes", texts)
