"""The environment of the jobs of a request: shell, site, profile, the user's choices, remembered ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from launcher.environment import EnvironmentChoices, JobEnvironment, is_secret, job_environment
from launcher.errors import InputError
from launcher.request import SubmitRequest
from launcher.site_choices import load_choices
from launcher.sites import Site
from launcher.transports.base import Transport

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def environment_of(
    request: SubmitRequest,
    site: Site,
    transport: Transport,
    environment: Mapping[str, str],
    *,
    partition: str | None = None,
    shared: Sequence[str] = (),
    secrets: frozenset[str] = frozenset(),
) -> JobEnvironment:
    """Return the environment that a request's jobs get; `environment` is this program's.

    `secrets` are the secret variables that the recipe reads: the job needs them, in its key file.

    Raises:
        InputError: there is no such profile or variable, a secret has a value on the command line, or the
            remembered choices are damaged.
    """
    profile = site.profile(request.profile).environment if request.profile is not None else {}
    remembered = load_choices(transport, environment, site.id).environment
    choices = choices_of(request, environment).over(remembered)
    choices = replace(choices, passed=choices.passed | (secrets - choices.dropped))
    return job_environment(environment, site, profile, choices, partition=partition, shared=shared)


def choices_of(request: SubmitRequest, environment: Mapping[str, str]) -> EnvironmentChoices:
    """Return the choices that a request makes about the environment.

    Raises:
        InputError: a name is invalid, the shell has no such variable, or a secret was given with its value.
    """
    values, passed = {}, set()
    for text in request.env:
        name, has_value, value = text.partition("=")
        _require_name("--env", name)
        if has_value and is_secret(name, value):
            raise InputError(
                f"--env {name}=…: a secret must not be on a command line",
                fix=f"Give --env {name} to take it from your shell, or use an --env-file of mode 600.",
            )
        if has_value:
            values[name] = value
        elif name in environment:
            passed.add(name)
        else:
            raise InputError(
                f"--env {name}: your shell has no such variable", fix="Give --env NAME=VALUE, or export it."
            )
    for name in request.no_env:
        _require_name("--no-env", name)
    return EnvironmentChoices(values, frozenset(passed), frozenset(request.no_env))


def _require_name(flag: str, name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InputError(f"{flag}: invalid variable name '{name[:40]}' (expected letters, digits and _)")
