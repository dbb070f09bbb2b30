"""What is known of a site, as data: one file a site beside this module, each fact with source and date."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from launcher.transports.base import Transport

GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Site:
    """A site's facts."""

    id: str
    name: str
    systemnames: tuple[str, ...]
    """Values of SYSTEMNAME that mean this site."""
    hosts: tuple[str, ...]
    """Patterns of its host names."""
    login_hosts: tuple[str, ...]
    """Patterns of its login nodes' host names."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What tells a machine from another."""

    host: str
    systemname: str = ""
    in_job: bool = False
    slurm: bool = False
    """Slurm's client is installed and configured."""
    others: tuple[str, ...] = ()
    """Other people who are logged in."""


@cache
def sites() -> tuple[Site, ...]:
    """Return all known sites, the generic one last."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    known = [_load(path) for path in files]
    return tuple(sorted(known, key=lambda site: site.id == GENERIC))


def recognise(machine: Machine) -> Site:
    """Return the site a machine belongs to."""
    for site in sites():
        if machine.systemname and machine.systemname in site.systemnames:
            return site
    for site in sites():
        if _matches(machine.host, site.hosts):
            return site
    return next(site for site in sites() if site.id == GENERIC)


def shared_login_node(machine: Machine) -> str | None:
    """Return why a machine seems to be a login node that others use too; None where it does not."""
    if machine.in_job:
        return None
    site = recognise(machine)
    if site.id != GENERIC and _matches(machine.host, site.login_hosts):
        return f"{machine.host} is a login node of {site.name}"
    if machine.slurm and _matches(machine.host, site.login_hosts):
        return f"{machine.host} has Slurm and the name of a login node"
    if machine.slurm and machine.others:
        people = f"{len(machine.others)} other people are" if len(machine.others) > 1 else "someone else is"
        return f"{machine.host} has Slurm and {people} logged in"
    return None


def look_at(transport: Transport, environment: Mapping[str, str]) -> Machine:
    """Look at the machine behind a transport; `environment` is this program's there."""
    configured = environment.get("SLURM_CONF") or "/etc/slurm/slurm.conf"
    slurm = transport.stat(configured) is not None and any(
        transport.stat(str(Path(directory, "sbatch"))) is not None
        for directory in environment.get("PATH", "").split(":")
        if directory
    )
    return Machine(
        host=transport.host.partition(".")[0],
        systemname=environment.get("SYSTEMNAME", ""),
        in_job="SLURM_JOB_ID" in environment,
        slurm=slurm,
        others=_others(transport, environment.get("USER", "")) if slurm else (),
    )


def _others(transport: Transport, me: str) -> tuple[str, ...]:
    who = transport.run(["who"], timeout_s=5)
    names = {line.split()[0] for line in who.stdout.splitlines() if line.strip()}
    return tuple(sorted(names - {me, "root"}))


def _matches(host: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(host, pattern) for pattern in patterns)


def _load(path: Path) -> Site:
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    recognised = data["recognise"]
    return Site(
        id=data["id"],
        name=data["name"],
        systemnames=tuple(recognised.get("systemname", ())),
        hosts=tuple(recognised.get("hosts", ())),
        login_hosts=tuple(data["login"]["hosts"]),
    )
