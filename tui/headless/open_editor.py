"""`recipe edit` and `edit`: the recipe editor, opened from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from tui.headless.hosts import split_host
from tui.terminal import require_terminal

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Open a recipe in the editor; without one, ask which."""
    require_terminal()
    host, file = options.host or "", options.file
    if file and not host and (on_host := split_host(file)) is not None:
        host, file = on_host
    path = Path(file) if file else None
    if path is not None and not host and not path.is_file():
        fix = "Give the path of a recipe; `recipe new --from` and `recipe derive` make new ones."
        raise RecipeError("there is no such file", where=path, fix=fix)
    from launcher.paths import runs_root
    from tui.app import run_app
    from tui.app_settings import EditStart

    start = EditStart(path, tuple(options.override))
    return run_app(runs_root=runs_root(), mouse=not options.no_mouse, edit=start, host=host)
