"""`site show`, `site import`, `site export`: what is known of this machine's site."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError
from recipes.errors import Exit
from tui.headless.output import SCHEMA, print_json, say, show

if TYPE_CHECKING:
    import argparse


def run_show(options: argparse.Namespace) -> int:
    """Print the site of this machine, with the user's overrides."""
    from launcher.sites import site_here, user_file
    from launcher.sites.editing import export
    from launcher.transports.local import LocalTransport

    site, path = site_here(LocalTransport(), os.environ), user_file(os.environ)
    own = str(path) if path.exists() else None
    if options.json:
        import tomllib

        print_json(SCHEMA | {"site": site.id, "name": site.name, "file": own, **tomllib.loads(export(site))})
        return Exit.OK
    say(f"site: {site.id} ({site.name}); your file: {own or f'none ({path})'}")
    show(export(site))
    return Exit.OK


def run_export(options: argparse.Namespace) -> int:
    """Print the site of this machine as a site file."""
    from launcher.sites import site_here
    from launcher.sites.editing import export
    from launcher.transports.local import LocalTransport

    del options
    show(export(site_here(LocalTransport(), os.environ)))
    return Exit.OK


def run_import(options: argparse.Namespace) -> int:
    """Take a site file over as the user's own.

    Raises:
        InputError: it cannot be read, or there is one already and `--replace` is not given.
    """
    from launcher.sites import user_file
    from launcher.sites.editing import install
    from launcher.transports.local import LocalTransport
    from launcher.user_files import read_user_text

    source, path = Path(options.file), user_file(os.environ)
    text = read_user_text(source, "the site file")
    if text is None:
        raise InputError("cannot read the site file: there is none", where=source)
    data = text.encode()
    if path.exists() and not options.replace:
        raise InputError(
            "you have a site file already", where=path, fix="--replace takes its place; the old one is kept."
        )
    kept = install(LocalTransport(), os.environ, data, source)
    say(f"site file written to {path}" + (f"; the former one is {kept}" if kept != path else ""))
    return Exit.OK
