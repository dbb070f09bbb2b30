"""Packages that a Python environment lacks, or has in other versions than the checkout's lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.doctor.venv import Venv, locked_versions, read_project, required_names
from launcher.text import clean

_ESSENTIAL = frozenset(
    (
        "torch",
        "ray",
        "transformers",
        "datasets",
        "numpy",
        "omegaconf",
        "hydra-core",
        "vllm",
        "megatron-core",
        "nemo-automodel",
        "transformer-engine",
    )
)
"""Packages without which no worker that has them among its extras starts."""
_NAMED = 4
"""Packages that a verdict names; there may be a hundred."""


@dataclass(frozen=True, slots=True)
class PackageGap:
    """A package that an environment lacks, or has in another version."""

    text: str
    stops_runs: bool
    """Whether no run works without it."""


def direct_packages(checkout: Path, extras: tuple[str, ...], machine: str) -> frozenset[str] | None:
    """Return the packages that pyproject.toml names for a kind of machine (`x86_64`), with some extras.

    None where it cannot be read.
    """
    project = read_project(checkout)
    if project is None:
        return None
    texts = (*project.dependencies, *(text for name in extras for text in project.extras.get(name, ())))
    return required_names(texts, machine)


def gaps_of(checkout: Path, venv: Venv, extras: tuple[str, ...], machine: str) -> list[PackageGap] | None:
    """Return what an environment lacks, with some extras; None where pyproject.toml cannot be read."""
    names = direct_packages(checkout, extras, machine)
    if names is None:
        return None
    locked = locked_versions(checkout, names)
    # What uv's overrides leave out is not in the lock.
    return list(_differences(venv, names & locked.keys() if locked else names, locked))


def _differences(
    venv: Venv, names: frozenset[str], locked: Mapping[str, frozenset[str]]
) -> Iterator[PackageGap]:
    for name in sorted(names, key=lambda item: (item not in _ESSENTIAL, item)):
        version, versions = venv.packages.get(name), locked.get(name, frozenset())
        if version is None:
            yield PackageGap(f"no {name}", name in _ESSENTIAL)
        # A local version (2.11.0+cu130) is written into the lock or not, by the index that it came from.
        elif versions and version.partition("+")[0] not in {text.partition("+")[0] for text in versions}:
            text = f"{name} {clean(version)}, uv.lock has {' or '.join(map(clean, sorted(versions)))}"
            yield PackageGap(text, stops_runs=False)


def gap_words(gaps: list[PackageGap]) -> str:
    """Return the first gaps in words."""
    return few([gap.text for gap in gaps])


def few(items: list[str]) -> str:
    """Return the first items, and how many there are besides."""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
