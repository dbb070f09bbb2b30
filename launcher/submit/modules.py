"""The modules that jobs load: as requested, as a profile or the site names them, as remembered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.clusters.inventory import Detection
from launcher.errors import InputError
from launcher.request import SubmitRequest

LOADED = "loaded"
"""Given in place of names: the modules that are loaded in the shell."""
_NAME = re.compile(r"[A-Za-z0-9_.][\w.+/-]*")


def loaded_modules(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the modules that are loaded in the shell, in the order of their loading."""
    return tuple(name for name in environment.get("LOADEDMODULES", "").split(":") if name)


def given_modules(text: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the modules that a text names: names apart by blanks or commas, or `loaded`.

    Raises:
        InputError: a name is invalid, or none is loaded.
    """
    if text.strip() == LOADED:
        if loaded := loaded_modules(environment):
            return loaded
        raise InputError("--modules loaded: no module is loaded in your shell", fix="Give their names.")
    names = tuple(text.replace(",", " ").split())
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise InputError(
                f"--modules: invalid module name '{name[:40]}' (expected such as GCC/13.3.0, or `{LOADED}`)"
            )
    return names


def with_modules(
    detection: Detection, request: SubmitRequest, remembered: Sequence[str], environment: Mapping[str, str]
) -> Detection:
    """Return the detection with the modules of a request's jobs; remembered ones stand below the site's.

    Raises:
        InputError: a name is invalid, or there is no such profile.
    """
    site = detection.site
    profile = site.profile(request.profile).modules if request.profile is not None else ()
    given = given_modules(request.modules, environment) if request.modules else ()
    modules = given or profile or site.modules or tuple(remembered)
    return detection if modules == site.modules else replace(detection, site=replace(site, modules=modules))
