"""Choices that are remembered for a site: variables of the environment, where runs and big files go.

One JSON file in the configuration directory, by site; a secret's value is never in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from launcher.environment import EnvironmentChoices, is_secret
from launcher.errors import InputError, TransportError
from launcher.paths import config_root
from launcher.stored import read_stored
from launcher.transports.base import Transport

FILE = "sites.json"


class SiteChoices(BaseModel):
    """Choices for one site."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    values: Mapping[str, str] = Field(default_factory=dict)
    passed: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    gpu_memory_gib: Mapping[str, Annotated[float, Field(ge=0, le=1e5, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )
    """By type of GPU, in lower case."""
    modules: tuple[str, ...] = ()
    """Modules that jobs load."""

    @property
    def environment(self) -> EnvironmentChoices:
        """The choices about the environment."""
        return EnvironmentChoices(self.values, self.passed, self.dropped)


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    sites: Mapping[str, SiteChoices] = Field(default_factory=dict)


def load_choices(transport: Transport, environment: Mapping[str, str], site: str) -> SiteChoices:
    """Return the choices for a site; none where nothing is remembered.

    Raises:
        InputError: the file is damaged.
        TransportError: it cannot be read.
    """
    return _load(transport, _path(environment)).sites.get(site, SiteChoices())


def remember_choices(
    transport: Transport, environment: Mapping[str, str], site: str, choices: EnvironmentChoices
) -> None:
    """Remember choices about the environment for a site, over those that are there.

    A configuration directory that cannot be written remembers nothing; a damaged file is left as it is.
    """
    if not (choices.values or choices.passed or choices.dropped):
        return

    def merged(own: SiteChoices) -> SiteChoices:
        both = choices.over(own.environment)
        values = {name: value for name, value in both.values.items() if not is_secret(name, value)}
        update = {"values": values, "passed": both.passed, "dropped": both.dropped}
        return own.model_copy(update=update)

    _remember(transport, environment, site, merged)


def remember_gpu_memory(
    transport: Transport, environment: Mapping[str, str], site: str, gpu_type: str, gib: float
) -> None:
    """Remember the memory of a type of GPU at a site; without effect where nothing can be written."""

    def merged(own: SiteChoices) -> SiteChoices:
        return own.model_copy(update={"gpu_memory_gib": {**own.gpu_memory_gib, gpu_type: gib}})

    _remember(transport, environment, site, merged)


def remember_modules(
    transport: Transport, environment: Mapping[str, str], site: str, modules: tuple[str, ...]
) -> None:
    """Remember the modules that jobs load at a site; without effect where nothing can be written."""

    def merged(own: SiteChoices) -> SiteChoices:
        return own.model_copy(update={"modules": modules})

    _remember(transport, environment, site, merged)


def _remember(
    transport: Transport,
    environment: Mapping[str, str],
    site: str,
    merged: Callable[[SiteChoices], SiteChoices],
) -> None:
    path = _path(environment)
    try:
        stored = _load(transport, path)
        own = merged(stored.sites.get(site, SiteChoices()))
        text = _File(sites={**stored.sites, site: own}).model_dump_json(indent=1) + "\n"
        transport.write_atomic(str(path), text.encode(), 0o600)
    except (TransportError, InputError):
        return


def _path(environment: Mapping[str, str]) -> Path:
    return config_root(environment) / FILE


def _load(transport: Transport, path: Path) -> _File:
    if transport.stat(str(path)) is None:
        return _File()
    return read_stored(
        transport, path, _File, works="Correct or delete the file; it holds only what you chose before."
    )
