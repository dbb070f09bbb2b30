"""The user's site file: its template, its writing, and a site as such a file.

template(profile)            what a new file begins with
install(environment, data)   makes a checked file the user's own, the former one kept beside it
export(site)                 a site as TOML, without what looks like a secret
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path

from launcher.errors import InputError
from launcher.sites import Profile, Site, recognise, site_with, user_file
from launcher.sites import inspect_machine as inspect
from launcher.transports.base import Transport
from launcher.user_files import read_user_text

SECRET = re.compile(r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE|(^|_)KEY(_|$)", re.IGNORECASE)
_BARE = re.compile(r"[A-Za-z0-9_-]+")

TEMPLATE = """\
# Facts about your site and profiles of your own; they go over what the program knows of the site.
# `distill-tui profile check` looks for mistakes. All keys: docs/slurm.md, "Your site".

# [gpu_memory_gib]
# a100 = 40                      # GPU type as Slurm names it (lower case) -> memory of one GPU

# [smoke]
# partition = "devel"            # where smoke runs go; or reservation = "…"

# [job]
# offline = true                 # compute nodes have no internet
# scratch = "$SCRATCH"           # directory for large files
# modules = ["GCC", "CUDA"]      # loaded before Ray starts

# [job.environment]
# NCCL_SOCKET_IFNAME = "ib0"

# A profile answers what a request leaves open: `submit --profile debug`, or the field in the wizard.
# [profiles.debug]
# partition = "devel"
# account = "myproject"
# time = "30m"
# nodes = 1
# environment = { NCCL_DEBUG = "INFO" }
# sbatch_args = ["--mail-type=END"]
"""
_PROFILE = """
[profiles.{name}]
# partition = "devel"
# account = "myproject"
# qos = "normal"
# time = "30m"
# nodes = 1
# gpus_per_node = 4
"""


def template(profile: str | None = None) -> str:
    """Return the text of a new file; with a profile to be filled in, if one is named."""
    return TEMPLATE + (profile_template(profile) if profile is not None else "")


def profile_template(name: str) -> str:
    """Return the table of a new profile."""
    return _PROFILE.format(name=_key(name))


def install(transport: Transport, environment: Mapping[str, str], data: bytes, source: Path | str) -> Path:
    """Make a file the user's site file, if it is one; return the former one's copy, or the file's own path.

    Raises:
        InputError: it is no site file.
        TransportError: it cannot be written.
    """
    site_with(recognise(inspect(transport, environment)), data, source)
    path, kept = user_file(environment), None
    if transport.stat(str(path)) is not None:
        kept = path.with_name(f"{path.name}.before-import")
        transport.write_atomic(str(kept), transport.read(str(path)))
    transport.write_atomic(str(path), data)
    return kept or path


def export(site: Site) -> str:
    """Return a site's facts and profiles as a site file; variables that look like secrets are left out."""
    job = {
        "host_suffix": site.host_suffix,
        "offline": site.offline,
        "modules": site.modules,
        "container": site.container,
        "mounts": site.mounts,
        "scratch": site.scratch,
        "sbatch_without": site.sbatch_without,
        "stores_environments": site.stores_environments,
    }
    smoke = {field.name: getattr(site.smoke, field.name) for field in fields(site.smoke)}
    blocks = [
        _table("gpu_memory_gib", site.gpu_memory_gib.items()),
        _table("job", job.items()),
        _table("job.environment", _public(site.variables), _secret(site.variables)),
        _table("smoke", smoke.items()),
        _table("polling", (("front_s", site.front_s), ("behind_s", site.behind_s))),
    ]
    blocks += [profile_text(name, profile) for name, profile in site.profiles.items()]
    title = f"# {site.name}, as distill-tui sees it; `distill-tui site import FILE` takes it over.\n"
    return "\n".join([title, *(block for block in blocks if block)])


def profile_text(name: str, profile: Profile) -> str:
    """Return a profile as its table; variables that look like secrets are left out."""
    title = f"profiles.{_key(name)}"
    values = {field.name: getattr(profile, field.name) for field in fields(profile)}
    variables = values.pop("environment")
    own = _table(title, values.items(), always=True)
    inner = _table(f"{title}.environment", _public(variables), _secret(variables))
    return "\n".join(block for block in (own, inner) if block)


def _table(
    title: str, values: Iterable[tuple[str, object]], left_out: Iterable[str] = (), *, always: bool = False
) -> str:
    """Return a table with the values that are set; empty where none is."""
    lines = [
        f"{_key(name)} = {_value(value)}" for name, value in values if value not in (None, "", (), False)
    ]
    lines += [f"# {_key(name)}: left out, it looks like a secret" for name in left_out]
    return "\n".join([f"[{title}]", *lines]) + "\n" if lines or always else ""


def _public(variables: Mapping[str, str]) -> list[tuple[str, object]]:
    return [(name, value) for name, value in variables.items() if not SECRET.search(name)]


def _secret(variables: Mapping[str, str]) -> list[str]:
    return [name for name in variables if SECRET.search(name)]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: object) -> str:
    """Return a value as TOML; its basic strings have JSON's escapes."""
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def ensure(path: Path, profile: str | None) -> bool:
    """Make the user's file with the template where there is none; add a named profile that it lacks.

    Returns whether something was written.

    Raises:
        InputError: it cannot be read or written.
    """
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(template(profile), encoding="utf-8")
            return True
        text = read_user_text(path, "the site file") or ""
        if profile is None or _has_profile(text, profile):
            return False
        end = "" if text.endswith("\n") or not text else "\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(end + profile_template(profile))
            file.flush()
            os.fsync(file.fileno())
        return True
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot write the site file: {error}", where=path) from error


def _has_profile(text: str, name: str) -> bool:
    """Return whether a file has a profile; a damaged file is left to its editor."""
    import tomllib

    try:
        profiles = tomllib.loads(text).get("profiles", {})
    except tomllib.TOMLDecodeError:
        return True
    return not isinstance(profiles, dict) or name in profiles
