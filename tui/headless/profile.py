"""`profile show`, `profile edit`, `profile check`: profiles of the user's site file."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from launcher.errors import InputError, TransportError
from recipes.errors import Exit, ExplainedError
from tui.headless.output import SCHEMA, ask, print_json, say, show

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from launcher.sites import Profile, Site


def run_show(options: argparse.Namespace) -> int:
    """Print profiles as TOML or JSON."""
    from launcher.sites.editing import profile_text

    site = _site()
    chosen = site.profiles if options.name is None else {options.name: site.profile(options.name)}
    if options.json:
        print_json(SCHEMA | {"file": str(_file()), "profiles": {k: _json(v) for k, v in chosen.items()}})
        return Exit.OK
    for text in (profile_text(name, profile) for name, profile in chosen.items()):
        show(text)
    if not chosen:
        say(f"no profiles in {_file()}; `distill-tui profile edit NAME` makes one")
    return Exit.OK


def run_check(options: argparse.Namespace) -> int:
    """Check the user's site file, and the profiles against what Slurm offers."""
    return _check(options.name, as_json=options.json)


def _check(chosen_name: str | None, *, as_json: bool = False) -> int:
    site = _site()
    chosen = site.profiles if chosen_name is None else {chosen_name: site.profile(chosen_name)}
    problems = [line for name, profile in chosen.items() for line in _against_slurm(name, profile)]
    if as_json:
        print_json(SCHEMA | {"ok": not problems, "file": str(_file()), "problems": problems})
    else:
        for line in problems:
            show(line)
        if not problems:
            show(f"{_file()}: no mistakes in {len(chosen)} profile{'s' * (len(chosen) != 1)}")
    return Exit.FAILED if problems else Exit.OK


def run_edit(options: argparse.Namespace) -> int:
    """Open the user's site file in an editor, and check it after.

    Raises:
        InputError: there is no terminal, or the editor cannot be started.
        TransportError: the editor failed.
    """
    from launcher.sites.editing import ensure

    path = _file()
    if not sys.stdin.isatty():
        raise InputError(
            "`profile edit` needs a terminal", where=path, fix="Edit the file; `profile check` checks it."
        )
    command = _editor()
    ensure(path, options.name)
    while True:
        try:
            code = subprocess.run([*command, str(path)], check=False).returncode
        except OSError as error:
            raise InputError(
                f"cannot start the editor '{command[0]}': {error.strerror}", fix="Set $EDITOR."
            ) from error
        if code:
            raise TransportError(f"the editor '{command[0]}' ended with exit code {code}", where=path)
        try:
            _site()
        except ExplainedError as error:
            say(str(error))
            if not ask("Back to the editor?"):
                return Exit.USAGE
            continue
        return _check(options.name)


def _editor() -> list[str]:
    """Return the user's editor as a command.

    Raises:
        InputError: $VISUAL or $EDITOR is no command.
    """
    text = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        return shlex.split(text) or ["vi"]
    except ValueError as error:
        raise InputError(f"invalid editor '{text}': {error}", fix="Correct $EDITOR.") from error


def _site() -> Site:
    from launcher.sites import site_here
    from launcher.transports.local import LocalTransport

    return site_here(LocalTransport(), os.environ)


def _file() -> Path:
    from launcher.sites import user_file

    return user_file(os.environ)


def _against_slurm(name: str, profile: Profile) -> list[str]:
    """Return what of a profile the cluster does not offer; nothing where there is no cluster to ask."""
    from launcher.text import did_you_mean
    from tui.headless.detect import detect_on

    if profile.partition is None and profile.account is None:
        return []
    try:
        detection = detect_on(None)
    except ExplainedError as error:
        say(f"partition and account of {name} are not checked: {error.what}")
        return []
    problems = []
    partition = detection.partition(profile.partition) if profile.partition is not None else None
    names = [item.name for item in detection.partitions]
    if profile.partition is not None and partition is None and names:
        guess = did_you_mean(profile.partition, names)
        problems.append(f"[profiles.{name}] partition: Slurm lists no '{profile.partition}'{guess}")
    accounts = [item.account for item in detection.accounts or ()]
    if profile.account is not None and accounts and profile.account not in accounts:
        guess = did_you_mean(profile.account, accounts)
        problems.append(f"[profiles.{name}] account: '{profile.account}' is none of yours{guess}")
    if partition is not None and profile.nodes is not None and profile.nodes > partition.nodes:
        problems.append(f"[profiles.{name}] nodes: {partition.name} has {partition.nodes}")
    return problems


def _json(profile: Profile) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(profile).items()
    }
