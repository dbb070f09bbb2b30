"""The editor's title line: the file, whether there is something to save, and who else edits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.text import clean
from recipes.remote_path import machine_of, on_machine_of
from tui.formatting import plural
from tui.theme import FAILURE, MODIFIED

if TYPE_CHECKING:
    from tui.screens.connection_words import TitlePart
    from tui.screens.editor.session_messages import SessionView


def title_text(
    path: Path, view: SessionView | None, others: str, connection: TitlePart | None = None
) -> Content:
    """Return the title of an editor of `path`; `others`: who else edits it, empty for nobody.

    `connection` is what is to be said of that to its host.
    """
    parts: list[tuple[str, str]] = [
        (" recipe ", "bold $text-primary"),
        (f" {clean(path.name)} ", "bold"),
        *(((f" on {clean(host)} ", "$text-primary"),) if (host := machine_of(path)) else ()),
    ]
    if view is not None and view.state.error is not None:
        parts.append((f" {FAILURE.glyph} not YAML, line {view.state.error_line} ", FAILURE.style))
    if view is not None and view.dirty:
        changed = plural(view.changes.total, "line")
        parts.append((f" {MODIFIED.glyph} modified, {changed}", MODIFIED.style))
    parts += [connection] if connection is not None else []
    if view is not None and view.unsaved_draft:
        parts.append(("  ! the draft cannot be written", "$text-warning"))
    if others:
        parts.append((f"  ! also open: {others}", "$text-warning"))
    parts.append((f"  {clean(_home(path.parent))}", "dim"))
    return Content.assemble(*parts)


def _home(path: Path) -> str:
    """Return a directory, the user's home as ~."""
    home = on_machine_of(path, "~").expanduser()
    try:
        return f"~/{path.relative_to(home)}"
    except ValueError:
        return str(path)
