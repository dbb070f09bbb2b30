"""The facts of a run for its report, without secrets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import TransportError
from launcher.transports.base import is_remote
from recipes.limits import Limit
from recipes.reading import read_limited

if TYPE_CHECKING:
    from launcher.monitor.redact import Redactor
    from launcher.monitor.report import ReportFacts
    from launcher.monitor.watch import Watch
    from launcher.runs import Run, RunSpec
    from launcher.transports.base import Transport

_SLURM_S = 75.0
"""Time in which Slurm has answered all questions of a report, or is left out."""
_KEYS_BYTES = Limit("size of a run's file of keys", 1 << 20, "bytes", "real ones have some lines")


def report_of(
    name: str, watch: Watch, run: Run | None, warn: Callable[[str], None]
) -> tuple[dict[str, Any], Redactor]:
    """Return the report of a run whose watch is not polled elsewhere; `warn` gets what is missing in it.

    Raises:
        TransportError: the logs cannot be read.
    """
    from launcher.monitor.report import report_json

    begun = time.monotonic()
    watch.catch_up(final=True)
    if watch.problem:
        raise TransportError(watch.problem)
    redact = _redactor(watch.transport, run)
    # A Slurm that gives no answer is waited for once, not for each question.
    left_s = max(_SLURM_S - (time.monotonic() - begun), 1.0)
    return report_json(name, watch, _facts(watch.transport, run, warn, left_s), redact), redact


def _redactor(transport: Transport, run: Run | None) -> Redactor:
    import getpass

    from launcher.monitor.redact import Redactor
    from recipes.secrets import is_secret

    there = transport.environment()
    names = {getpass.getuser(), there.get("USER", "")} | ({run.spec.user} if run is not None else set())
    homes = {str(Path.home()), there.get("HOME", "")}
    secrets = [
        value
        for environment in (os.environ, there)
        for name, value in environment.items()
        if value and is_secret(name, value)
    ]
    if run is not None:
        from launcher.runs import SECRETS

        secrets += _values_of(transport, str(Path(run.directory, SECRETS)))
    return Redactor.of(names - {""}, sorted(homes - {""}), list(dict.fromkeys(secrets)))


def _values_of(transport: Transport, file: str) -> list[str]:
    """Return the values of a run's file of keys; of a host's, too, they are only in memory."""
    from launcher.errors import TransportError

    try:
        if is_remote(transport):
            data = transport.read(file, 0, _KEYS_BYTES.value)
        else:
            data = read_limited(Path(file), _KEYS_BYTES)
    except (OSError, TransportError):
        return []
    text = data.decode(errors="replace")
    return [line.partition("=")[2].strip().strip("\"'") for line in text.splitlines() if "=" in line]


def _facts(
    transport: Transport, run: Run | None, warn: Callable[[str], None], within_s: float
) -> ReportFacts:
    from launcher.monitor.report import ReportFacts, relevant_variables

    if run is None:
        return ReportFacts()
    from launcher.doctor.last_report import latest_report
    from launcher.plan import PlanRecord
    from launcher.stored import read_stored
    from recipes.errors import ExplainedError

    try:
        plan = read_stored(transport, Path(run.directory, "plan.json"), PlanRecord)
        environment = relevant_variables(plan.env)
    except ExplainedError:
        environment = {}
    changes, problem = _changes(transport, run)
    examined = None if is_remote(transport) else latest_report(os.environ)
    return ReportFacts(
        run.spec.recipe.source,
        changes,
        problem,
        environment,
        _jobs(transport, run, warn, within_s),
        _checkout(run.spec),
        examined.as_json() if examined is not None else {},
    )


def _checkout(spec: RunSpec) -> dict[str, Any]:
    """Return the checkout of a run as it was when the run was submitted; empty without one."""
    if spec.checkout is None:
        return {}
    state = spec.checkout_state
    return {"path": spec.checkout, **state.model_dump(), "dirty": state.dirty}


def _jobs(
    transport: Transport, run: Run, warn: Callable[[str], None], within_s: float
) -> tuple[dict[str, Any], ...]:
    """Return the jobs of a run, each with its records in Slurm's accounting."""
    jobs = tuple(job.model_dump(mode="json", exclude={"token"}) for job in run.jobs)
    if run.spec.cluster != "slurm":
        return jobs
    from launcher.clusters.registry import accounting
    from launcher.clusters.shell_defaults import environment_of_run
    from recipes.errors import ExplainedError

    try:
        ids = [job.id for job in run.jobs]
        environment = environment_of_run(transport.environment(), run.spec)
        records = accounting(transport, environment, ids, within_s=within_s)
    except ExplainedError as error:  # the logs are there all the same
        warn(f"report without Slurm's accounting: {error.what}")
        return jobs
    return tuple({**job, "slurm": list(records.get(job["id"], ()))} for job in jobs)


def _changes(transport: Transport, run: Run) -> tuple[tuple[tuple[str, str, str], ...], str]:
    """Return what the recipe changes of its parents (key, before, after), or why that is unknown."""
    from recipes.compare import ABSENT, differences
    from recipes.errors import ExplainedError
    from recipes.inheritance import resolve
    from recipes.values import plain

    source = transport.path(run.spec.recipe.source)
    file = source if source.is_file() else transport.path(str(Path(run.directory, "recipe.yaml")))
    try:
        recipe = resolve(file, run.spec.recipe.overrides)
    except (ExplainedError, OSError) as error:
        return (), str(error).partition("\n")[0]
    if len(recipe.files) < 2 and not run.spec.recipe.overrides:
        return (), ""
    changes = differences(plain(recipe.inherited), plain(recipe.merged))
    shown = (
        (item.key, *("(not set)" if value is ABSENT else repr(value) for value in (item.a, item.b)))
        for item in changes
    )
    return tuple((key, a, b) for key, a, b in shown if key != "defaults"), ""
