"""What the user chose so far, against the defaults, and the command that does the same. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from textual.content import Content

from launcher.fields import FIELDS
from launcher.text import clean
from tui.screens.wizard.draft_request import recipe_overrides
from tui.screens.wizard.model import DraftStatus, WizardState, default_text, kind_of, words_of
from tui.theme import MODIFIED
from tui.widgets.fact_lines import Fact, fact_lines
from tui.widgets.line_wrap import shortened_path

_LABEL_COLUMNS = 25


def chosen_lines(state: WizardState, status: DraftStatus, width: int) -> list[Content]:
    """Return every choice with what it replaces, then the command line of the same run."""
    facts = [*_fields(state, status, max(width - _LABEL_COLUMNS - 2, 1)), *_overrides(state)]
    if not facts:
        text = "nothing is changed yet: cluster and recipe decide"
        lines = [Content(text).stylize("dim")]
    else:
        lines = fact_lines(facts, width, label_columns=_LABEL_COLUMNS)
    command = fact_lines([Fact("command", clean(shlex.join(submit_arguments(state, status))))], width)
    return [*lines, Content(""), *command]


def chosen_count(state: WizardState) -> int:
    """Return the number of fields and keys that were changed."""
    return len(state.texts) + len(state.overrides)


def _fields(state: WizardState, status: DraftStatus, room: int) -> Iterator[Fact]:
    bare = WizardState({name: text for name, text in state.texts.items() if name in ("kind", "recipe")})
    for item in FIELDS:
        if item.name not in state.texts:
            continue
        before = clean(default_text(item.name, bare, status)) or "not set"
        after = clean(state.texts[item.name]) or "empty"
        tail = ", the teacher too" if item.name in state.both else ""
        if item.kind == "path":
            before, after = shortened_path(before, room), shortened_path(after, room)
        shown = Content.assemble((f"{before} → ", "dim"), (after, "bold"), (tail, "dim"))
        yield Fact(f"{MODIFIED.glyph} {item.title}", shown)


def _overrides(state: WizardState) -> Iterator[Fact]:
    for text in state.overrides:
        yield Fact(f"{MODIFIED.glyph} override", Content.assemble((clean(text.lstrip("+")), "bold")))


def submit_arguments(state: WizardState, status: DraftStatus) -> tuple[str, ...]:
    """Return the arguments of the command that submits the same run."""
    kind = {"rehearsal": ("--rehearse",), "smoke": ("--smoke",)}.get(kind_of(state), ())
    recipe = state.texts.get("recipe") or default_text("recipe", state, status)
    options: list[str] = []
    for item in FIELDS:
        text = state.texts.get(item.name, "")
        if not text or not item.flag.startswith("--") or item.name == "kind" or item.of_recipe:
            continue
        for value in (words_of(text) or ()) if item.repeatable else (text,):
            options += [item.flag, value]
    skipped = [part for identity in state.skipped for part in ("--skip-check", identity)]
    overrides = (*state.overrides, *recipe_overrides(state, status))
    return ("distill-tui", "submit", recipe, *overrides, *kind, *options, *skipped)
