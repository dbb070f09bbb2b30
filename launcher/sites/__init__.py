"""Facts about sites (machines with Slurm), as data: one TOML file per site, each fact with source and date.

Imports `launcher.transports` and paths only. In: the machine's host name and environment. Out: a `Site`. The
user's own file (`site.toml` in the configuration directory) has the same keys and overrides them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import InputError, TransportError
from launcher.paths import config_root
from launcher.text import clean, did_you_mean
from launcher.transports.base import Transport
from launcher.usage import UsageLimits
from launcher.user_files import USER_FILE_LIMIT

if TYPE_CHECKING:
    from launcher.sites.tables import ProfileTable, SiteFile

GENERIC = "generic"
USER_FILE = "site.toml"
OFFLINE: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "UV_OFFLINE": "1",
    "WANDB_MODE": "offline",
}
"""Variables for jobs on nodes without internet: without them each library waits for time-outs, then fails."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Named set of options by the user, for `submit --profile NAME`; None and empty: not given."""

    environment: Mapping[str, str] = field(default_factory=dict)
    sbatch_args: tuple[str, ...] = ()
    container: str = ""
    """Image for NeMo-RL's `ray.sub`."""
    mounts: tuple[str, ...] = ()
    """Mounts of its container besides checkout and run: `/SOURCE:/TARGET[:ro]`."""
    modules: tuple[str, ...] = ()
    """Modules that its jobs load, in place of the site's."""
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    time: str | None = None
    """Time limit as typed."""
    nodes: int | None = None
    gpus_per_node: int | None = None


@dataclass(frozen=True, slots=True)
class SmokeTarget:
    """Partition or reservation for short tests, such as smoke runs; limits: None where unknown."""

    partition: str = ""
    reservation: str = ""
    """In the default partition."""
    max_nodes: int | None = None
    """Of the reservation; Slurm reports a partition's limits."""
    max_time_s: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """Facts about one partition, and where they are from."""

    offline: bool
    source: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """Facts about a site."""

    id: str
    name: str
    systemnames: tuple[str, ...]
    """Values of SYSTEMNAME at this site."""
    hosts: tuple[str, ...]
    """Patterns of its host names."""
    login_hosts: tuple[str, ...]
    """Patterns of its login nodes' host names."""
    login_limits: UsageLimits = field(default_factory=UsageLimits)
    """What a user may take on a login node."""
    gpu_memory_gib: Mapping[str, float] = field(default_factory=dict)
    """GPU type in Slurm -> memory of one GPU."""
    host_suffix: str = ""
    """Suffix of host names on the fast network."""
    offline: bool = False
    """True if its compute nodes have no internet, unless `partitions` says otherwise."""
    source: str = ""
    date: str = ""
    """Where its facts are from, and of when."""
    partitions: Mapping[str, PartitionFacts] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that its jobs need."""
    modules: tuple[str, ...] = ()
    """Modules that its jobs load first."""
    container: str = ""
    """Image for NeMo-RL's `ray.sub`, unless a profile sets one."""
    mounts: tuple[str, ...] = ()
    """Mounts of its container besides checkout and run."""
    scratch: str = ""
    """Directory for large files; may contain `$VARIABLES` of the user's environment."""
    smoke: SmokeTarget = SmokeTarget()
    sbatch_without: tuple[str, ...] = ()
    """Long options, without dashes, that its sbatch does not take from users."""
    stores_environments: bool = False
    """True if its accounting stores the environment of jobs, readable by others."""
    front_s: float = 30.0
    """Seconds between two queries of its controller while the app is in the foreground."""
    behind_s: float = 120.0
    """Seconds between two queries in the background."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    default_profile: str = ""
    """Profile of requests that name none, by the user's settings."""

    def profile(self, name: str) -> Profile:
        """Return a profile by its name.

        Raises:
            InputError: there is no such profile.
        """
        if name in self.profiles:
            return self.profiles[name]
        names = ", ".join(self.profiles) or "none"
        raise InputError(
            f"unknown profile '{clean(name)}'{did_you_mean(name, self.profiles)}",
            fix=f"Profiles of your site.toml: {names}.",
        )

    def is_offline(self, partition: str | None = None) -> bool:
        """Return whether a partition's nodes have no internet; None: those of the site in general."""
        facts = self.partitions.get(partition or "")
        return facts.offline if facts is not None else self.offline

    def offline_source(self, partition: str | None = None) -> str:
        """Return where that is known from, with its date; empty where it is not said."""
        facts = self.partitions.get(partition or "")
        source, date = (facts.source, facts.date) if facts is not None else (self.source, self.date)
        return ", ".join(text for text in (source, date) if text)

    def job_environment(self, partition: str | None = None) -> dict[str, str]:
        """Return the variables that the site adds to the environment of a job in a partition."""
        suffix = {"RAY_BARE_HOST_SUFFIX": self.host_suffix} if self.host_suffix else {}
        return {**suffix, **(OFFLINE if self.is_offline(partition) else {}), **self.variables}


@dataclass(frozen=True, slots=True)
class Machine:
    """Properties by which a machine's site is recognised."""

    host: str
    systemname: str = ""
    in_job: bool = False
    slurm: bool = False
    """True if Slurm's client is installed and configured."""
    others: tuple[str, ...] = ()
    """Other users who are logged in."""


@cache
def sites() -> tuple[Site, ...]:
    """Return all sites, the generic one last."""
    files = sorted(Path(__file__).parent.glob("*.toml"))
    loaded = [_load(path) for path in files]
    return tuple(sorted(loaded, key=lambda site: site.id == GENERIC))


def recognise(machine: Machine) -> Site:
    """Return the site that a machine belongs to."""
    for site in sites():
        if machine.systemname and machine.systemname in site.systemnames:
            return site
    for site in sites():
        if _matches(machine.host, site.hosts):
            return site
    return next(site for site in sites() if site.id == GENERIC)


def shared_login_node(machine: Machine) -> str | None:
    """Return why a machine seems to be a shared login node; None if it does not."""
    if machine.in_job:
        return None
    site = recognise(machine)
    if site.id != GENERIC and _matches(machine.host, site.login_hosts):
        return f"{machine.host} is a login node of {site.name}"
    if machine.slurm and _matches(machine.host, site.login_hosts):
        return f"{machine.host} has Slurm and the name of a login node"
    if machine.slurm and machine.others:
        users = f"{len(machine.others)} other people are" if len(machine.others) > 1 else "someone else is"
        return f"{machine.host} has Slurm and {users} logged in"
    return None


def inspect_machine(transport: Transport, environment: Mapping[str, str]) -> Machine:
    """Return the properties of the machine behind a transport; `environment`: this program's.

    Raises:
        TransportError: the machine's files cannot be read.
    """
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
        others=_other_users(transport, environment.get("USER", "")) if slurm else (),
    )


def _other_users(transport: Transport, own_name: str) -> tuple[str, ...]:
    try:
        who = transport.run(["who"], timeout_s=5)
    except TransportError:  # a node without that program
        return ()
    names = {line.split()[0] for line in who.stdout.splitlines() if line.strip()}
    return tuple(sorted(names - {own_name, "root"}))


def _matches(host: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(host, pattern) for pattern in patterns)


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's site file."""
    return config_root(environment) / USER_FILE


def site_here(transport: Transport, environment: Mapping[str, str]) -> Site:
    """Return the site of the machine behind a transport, with the user's settings and overrides.

    Raises:
        InputError: a file of the user cannot be read, or has a key or a value that is none.
        TransportError: the machine's files cannot be read.
    """
    from launcher.settings import settings_on, settings_path

    settings = settings_on(transport, environment)
    site = recognise(inspect_machine(transport, environment))
    if settings.site:
        site = _site_named(settings.site, settings_path(environment))
    path = user_file(environment)
    if transport.stat(str(path)) is not None:
        data = transport.read(str(path), 0, USER_FILE_LIMIT.value + 1)
        if len(data) > USER_FILE_LIMIT.value:
            raise InputError(f"the site file is larger than {USER_FILE_LIMIT}", where=path)
        site = site_with(site, data, path)
    queue_s = settings.queue_s
    return replace(
        site,
        default_profile=settings.profile,
        front_s=queue_s or site.front_s,
        behind_s=max(queue_s or 0.0, site.behind_s),
    )


def _site_named(identity: str, path: Path) -> Site:
    """Return a site by its id; raises `InputError` where `path`, the settings, names one that is none."""
    names = {site.id: site for site in sites()}
    if identity in names:
        return names[identity]
    raise InputError(f"invalid defaults.site: '{clean(identity)}' (expected {', '.join(names)})", where=path)


def site_with(site: Site, overrides: bytes, path: Path | str) -> Site:
    """Return a site with the overrides of a user's file, whose `path` is named in errors.

    Raises:
        InputError: the file is no site file.
    """
    from launcher.sites.tables import parse, validate

    try:
        text = overrides.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"invalid site file: {error}", where=path) from error
    return _site(validate(_merged(_data(site.id), parse(text, path)), path, text))


def _data(identity: str) -> dict[str, Any]:
    path = next(path for path in Path(__file__).parent.glob("*.toml") if path.stem == identity)
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


def _load(path: Path) -> Site:
    from launcher.sites.tables import validate

    text = path.read_text(encoding="utf-8")
    return _site(validate(tomllib.loads(text), path, text))


def _site(file: SiteFile) -> Site:
    job = file.job
    return Site(
        id=file.id,
        name=file.name,
        systemnames=file.recognise.systemname,
        hosts=file.recognise.hosts,
        login_hosts=file.login.hosts,
        login_limits=UsageLimits(file.login.processes, file.login.memory_percent),
        gpu_memory_gib={key.lower(): value for key, value in file.gpu_memory_gib.items()},
        host_suffix=job.host_suffix,
        offline=job.offline,
        source=file.source,
        date=str(file.date),
        partitions={
            name: PartitionFacts(table.offline, table.source, str(table.date))
            for name, table in file.partitions.items()
        },
        variables=_strings(job.environment),
        modules=job.modules,
        container=job.container,
        mounts=job.mounts,
        scratch=job.scratch,
        smoke=SmokeTarget(**dict(file.smoke)),
        sbatch_without=job.sbatch_without,
        stores_environments=job.stores_environments,
        front_s=max(file.polling.front_s, 15.0),
        behind_s=max(file.polling.behind_s, 15.0),
        profiles={name: _profile(table) for name, table in file.profiles.items()},
    )


def _profile(table: ProfileTable) -> Profile:
    values = dict(table)
    time = values.pop("time")
    environment = _strings(values.pop("environment"))
    return Profile(**values, time=None if time is None else str(time), environment=environment)


def _strings(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
