"""`settings`: the path of the settings file, one setting, or its change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import Exit
from tui.headless.output import SCHEMA, print_json, say, show

if TYPE_CHECKING:
    import argparse

    from launcher.settings import Settings


def run(options: argparse.Namespace) -> int:
    """Print the path of the settings file, print a setting, or set it."""
    from launcher.settings import load_settings, set_setting, setting, settings_path

    key = options.key
    if options.host is not None:
        return _run_there(options)
    if key is None:
        return _show_all(options, load_settings(os.environ), settings_path())
    setting(key)
    _refuse_unknown_theme(options)
    if options.value:
        path = set_setting(os.environ, key, options.value)
        say(f"{key} set in {path}")
        if key == "storage.runs":
            tell_earlier()
    return _show_one(options, load_settings(os.environ), settings_path())


def _run_there(options: argparse.Namespace) -> int:
    """Do the same on a host."""
    from launcher.settings import set_setting_on, setting, settings_on, settings_path
    from tui.headless.hosts import transport_to

    transport = transport_to(options.host)
    environment = transport.environment()
    path = settings_path(environment)
    if options.key is None:
        return _show_all(options, settings_on(transport, environment), transport.path(str(path)))
    setting(options.key)
    _refuse_unknown_theme(options)
    if options.value:
        set_setting_on(transport, options.key, options.value)
        say(f"{options.key} set in {options.host}:{path}")
    return _show_one(options, settings_on(transport.beside(), environment), path)


def _refuse_unknown_theme(options: argparse.Namespace) -> None:
    """Refuse a theme with which the app would not start; other values are judged by `launcher.settings`."""
    if options.key == "screen.theme" and options.value:
        from tui.screen_settings import refuse_unknown_theme  # imports textual

        refuse_unknown_theme(" ".join(options.value))


def _show_one(options: argparse.Namespace, settings: Settings, path: Path) -> int:
    key = options.key
    values = _values(settings)[key]
    if options.json:
        print_json(SCHEMA | {"key": key, "value": values, "file": str(path)})
    elif not options.value:
        texts = values if isinstance(values, list) else [values] if values is not None else []
        for text in texts:
            show(f"{text:g}" if isinstance(text, float) else text)
        if not texts:
            say(f"{key} is not set")
    return Exit.OK


def _show_all(options: argparse.Namespace, settings: Settings, path: Path) -> int:
    if options.json:
        print_json(SCHEMA | {"file": str(path), "exists": path.is_file(), "settings": _values(settings)})
    else:
        show(str(path))
    return Exit.OK


def _values(settings: Settings) -> dict[str, str | float | list[str] | None]:
    """Return the settings by key; None where nothing was decided."""
    return {
        "notify": list(settings.notify) or None,
        "storage.runs": settings.runs or None,
        "storage.earlier_runs": list(settings.earlier_runs) or None,
        "hosts.default": settings.host or None,
        "hosts.list": list(settings.hosts) or None,
        "screen.theme": settings.theme or None,
        "screen.density": settings.density or None,
        "defaults.site": settings.site or None,
        "defaults.profile": settings.profile or None,
        "polling.runs_s": settings.runs_s,
        "polling.logs_s": settings.logs_s,
        "polling.queue_s": settings.queue_s,
        "monitor.layout": settings.layout or None,
        "monitor.panes": list(settings.panes) or None,
    }


def tell_earlier() -> None:
    """Say that the variable goes first, and which runs stay elsewhere."""
    from launcher.paths import RUNS_VARIABLE, runs_root
    from tui.headless.stores import run_store

    if os.environ.get(RUNS_VARIABLE):
        say(f"{RUNS_VARIABLE} is set and goes first: {runs_root()}")
        return
    store = run_store()
    for root in store.earlier:
        # A moved run is a link there.
        count = sum(item.is_dir() and not item.is_symlink() for item in Path(root).iterdir())
        if count:
            say(f"{count} runs stay in {root}; `distill-tui runs --move {store.root}` moves them")
