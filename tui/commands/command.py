"""A command of the app, and the scopes in which commands are valid."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Screen or widget on which a command is valid; the value is its heading in the help."""

    HOME = "Runs"
    CHARTS = "Charts"
    COMPARISON = "Runs beside each other"
    MONITOR = "Monitor"
    LOG = "Log"
    WIZARD = "New run"
    EDITOR = "Recipe editor"
    OUTLINE = "Tree and text"
    TEXT_MODE = "Text mode"
    DOCTOR = "Doctor"
    APP = "Everywhere"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the app."""

    id: str
    """Also the binding's id, by which a keymap may change its keys."""
    keys: tuple[str, ...]
    title: str
    help: str
    scope: Scope
    action: str
    footer: str = ""
    """Label in the footer; empty where it is not shown there."""
    priority: bool = False
    """Whether it takes precedence over the focused field's use of the key."""
    palette: bool = True
