"""The app's colour theme; no meaning depends on colour alone."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

THEME = Theme(
    name="distill",
    primary="#7fb4ca",
    secondary="#957fb8",
    accent="#7fb4ca",
    warning="#dca561",
    error="#e46876",
    success="#98bb6c",
    foreground="#dcdfe4",
    background="#14171c",
    surface="#1b1f26",
    panel="#242933",
    dark=True,
)


def initial_theme(environ: Mapping[str, str]) -> str:
    """Return the theme's name at the start: without colours if NO_COLOR is set, else TEXTUAL_THEME's."""
    if "NO_COLOR" in environ:
        return "ansi-dark"
    return environ.get("TEXTUAL_THEME") or THEME.name
