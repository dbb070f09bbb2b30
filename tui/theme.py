"""The app's look as data: colour theme, and the marks that carry a meaning without colour.

`docs/design.md` says how they are used; `distill.tcss` and `screens.tcss` have the layout.
No meaning depends on colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from textual.theme import BUILTIN_THEMES, Theme

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


@dataclass(frozen=True, slots=True)
class StyledGlyph:
    """Glyph of one cell with its style; it always stands beside a word or in a legend that names it."""

    glyph: str
    style: str


OK = StyledGlyph("✓", "$text-success")
WARNING = StyledGlyph("!", "$text-warning")
FAILURE = StyledGlyph("✗", "$text-error")
UNDECIDED = StyledGlyph("?", "dim")
MODIFIED = StyledGlyph("●", "$text-warning")
CURRENT = StyledGlyph("▸", "$text-primary")
OUTCOME_MARKS: Mapping[str, StyledGlyph] = {
    "pass": OK,
    "warn": WARNING,
    "fail": FAILURE,
    "unknown": UNDECIDED,
}
"""Marks of a check's outcome, and of a message's level."""

LABEL_COLUMNS = 12
"""Columns of the label beside a value, in every panel of facts."""


def theme_names() -> tuple[str, ...]:
    """Return the names of all themes, the app's own first."""
    return (THEME.name, *sorted(BUILTIN_THEMES))


def initial_theme(environ: Mapping[str, str], chosen: str = THEME.name) -> str:
    """Return the theme's name at the start: without colours if NO_COLOR is set, else TEXTUAL_THEME's.

    Without either it is the chosen one.
    """
    if "NO_COLOR" in environ:
        return "ansi-dark"
    name = environ.get("TEXTUAL_THEME") or chosen
    return name if name in theme_names() else THEME.name
