"""Detection of partitions, accounts and limits; answers are cached for some hours.

One `sinfo`, one `sacctmgr`, one `scontrol show partition`; `sacctmgr show qos` where a partition has a QoS.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from launcher.clusters.inventory import (
    NO_BUDGETS,
    Detection,
    DetectionProblem,
)
from launcher.clusters.shell_defaults import named_cluster, several_clusters, submission_defaults
from launcher.clusters.slurm.accounts import FORMAT as ACCOUNTS_FORMAT
from launcher.clusters.slurm.answers import Answers, interpret
from launcher.clusters.slurm.budgets import COMMAND as BUDGETS_COMMAND
from launcher.clusters.slurm.budgets import QUOTA_COMMAND, read_budgets
from launcher.clusters.slurm.client import QUERY_TIMEOUT_S, SlurmClient
from launcher.clusters.slurm.messages import is_accounting_off, message_of
from launcher.clusters.slurm.parse import ParseError
from launcher.clusters.slurm.partitions import (
    QOS_FORMAT,
    SINFO_FORMAT,
)
from launcher.errors import NotConfiguredError, RefusedError, TransportError, UnreachableError
from launcher.sites import site_here
from launcher.text import clean
from launcher.transports.base import Transport
from recipes.errors import ExplainedError

CACHE_S = 4 * 3600.0
"""Lifetime of cached answers; partitions and accounts change by the week."""
_VERSION_S = 10.0
"""Time for the version, for which no controller is asked."""
_LEAST_S = 1.0
"""Time for a question after others have had no answer."""
QUOTAS_WITHIN_S = 10.0
"""Time for all questions about what is left of budgets; a project that is not reached is unknown."""
_NO_COMMAND = 127
"""Exit code of a shell that has no such command (sh(1)): so it is told over SSH."""
_SCHEMA = 4
"""Version of the cached answers; it changes with the queries."""


def detect(
    transport: Transport,
    environment: Mapping[str, str],
    cache: Path,
    *,
    refresh: bool = False,
    budgets_s: float | None = None,
    now: Callable[[], float] = time.time,
) -> Detection:
    """Return the cluster's partitions, accounts and limits, from the cache where it is fresh.

    `budgets_s`: how long jutil is waited for, which is asked beside Slurm then; None: after it, to its end.

    Raises:
        TransportError: there is no Slurm here.
        InputError: the user's file about the site cannot be read.
    """
    site = site_here(transport, environment)
    client = SlurmClient(transport, environment)
    cache_file = cache / f"slurm-{clean(transport.host).replace('/', '_')}-{client.user}.json"
    answers = None if refresh else _load_cached(transport, cache_file, environment, now())
    if answers is None:
        answers = ask(client, budgets_s)
        if not answers.problems:
            _save_cached(transport, cache_file, environment, answers, now())
    if several := several_clusters(environment):
        text = f"{several} of your shell names several clusters: the login node's own is asked, and gets jobs"
        problem = DetectionProblem(text, "export SLURM_CLUSTERS=NAME names one.")
        answers = replace(answers, problems=(*answers.problems, problem))
    return interpret(site, answers, client.user, submission_defaults(environment))


def ask(client: SlurmClient, budgets_s: float | None = None) -> Answers:
    """Run Slurm's commands, and jutil.

    Raises:
        TransportError: there is no Slurm here.
    """
    deadline = time.monotonic() + QUERY_TIMEOUT_S
    try:
        version = client.ask(["sinfo", "--version"], timeout_s=_VERSION_S).split()[-1]
    except (UnreachableError, RefusedError, IndexError):
        version = None
    except TransportError as error:
        raise _no_slurm(client, error) from error
    problems: list[DetectionProblem] = []
    keeps_accounts = True
    asked_budgets = _BudgetQuery(client, budgets_s)

    def output_of(*argv: str) -> str | None:
        try:
            return client.ask(argv, timeout_s=_left_s(deadline))
        except NotConfiguredError as error:
            raise _no_slurm(client, error) from error
        except (UnreachableError, RefusedError) as error:
            nonlocal keeps_accounts
            if is_accounting_off(error.what):
                keeps_accounts = False
            else:
                problems.append(_explained(argv[0], error))
        except TransportError as error:  # sites that keep sacctmgr from their users have none
            if argv[0] == "sinfo":
                raise
            problems.append(_explained(argv[0], error))
        return None

    sinfo = output_of("sinfo", "-h", "-o", SINFO_FORMAT)
    partitions = output_of("scontrol", "show", "partition") if sinfo is not None else None
    accounts = output_of(
        "sacctmgr", "-nP", "show", "user", client.user, "withassoc", f"format={ACCOUNTS_FORMAT}"
    )
    qos = None
    if partitions is not None and accounts is not None and _has_qos(partitions, accounts):
        qos = output_of("sacctmgr", "-nP", "show", "qos", f"format={QOS_FORMAT}")
    cluster = None
    if named := named_cluster(client.environment):
        cluster = f"ClusterName={named}"
    elif accounts and len({line.partition("|")[0] for line in accounts.splitlines()}) > 1:
        cluster = output_of("scontrol", "show", "config")
    budgets, quotas, more = asked_budgets.answer(_left_s(deadline))
    problems += more
    return Answers(
        version, sinfo, partitions, accounts, qos, cluster, budgets, quotas, keeps_accounts, tuple(problems)
    )


def _no_slurm(client: SlurmClient, error: ExplainedError) -> TransportError:
    return TransportError(
        f"there is no Slurm here ({error.what})",
        where=client.transport.host,
        fix="Log in to the cluster's login node and try again.",
    )


def _left_s(deadline: float) -> float:
    """Return the time for the next question: a silent Slurm is waited for once, not for each question."""
    return max(deadline - time.monotonic(), _LEAST_S)


_BudgetAnswer: TypeAlias = tuple[str | None, Mapping[str, str], tuple[DetectionProblem, ...]]
"""What jutil says of the budgets, of what is left of each, and why it says nothing."""


class _BudgetQuery:
    """Asks jutil, which takes seconds: beside Slurm where it is not waited for to its end."""

    def __init__(self, client: SlurmClient, limit_s: float | None) -> None:
        self._client, self._limit_s = client, limit_s
        self._answers: queue.SimpleQueue[_BudgetAnswer] = queue.SimpleQueue()
        self._begun = time.monotonic()
        if limit_s is not None:
            threading.Thread(target=self._ask, name="jutil", daemon=True).start()

    def answer(self, left_s: float) -> _BudgetAnswer:
        """Return the answer; where it is asked only now, within `left_s`."""
        if self._limit_s is None:
            return self._answer(left_s)
        left_s = self._limit_s - (time.monotonic() - self._begun)
        try:
            return self._answers.get(timeout=max(left_s, 0.001))
        except queue.Empty:
            return None, {}, (DetectionProblem(f"{NO_BUDGETS}: it did not end within {self._limit_s:.3g} s"),)

    def _ask(self) -> None:
        self._answers.put(self._answer(QUERY_TIMEOUT_S))

    def _answer(self, timeout_s: float) -> _BudgetAnswer:
        budgets, problem = _budgets(self._client, timeout_s)
        if problem:
            return None, {}, (DetectionProblem(f"{NO_BUDGETS}: {problem}"),)
        return budgets, _quotas(self._client, budgets or ""), ()


def _budgets(client: SlurmClient, timeout_s: float) -> tuple[str | None, str]:
    """Ask jutil, which most sites do not have; return what it prints, and why it gave no answer."""
    try:
        done = client.run(BUDGETS_COMMAND, timeout_s=timeout_s)
    except UnreachableError as error:
        return None, error.what
    except TransportError:
        return None, ""
    if done.code == _NO_COMMAND:
        return None, ""
    if done.code:
        return None, message_of(done.stderr) or f"exit code {done.code}"
    return done.stdout, ""


def _quotas(client: SlurmClient, budgets: str) -> dict[str, str]:
    """Ask jutil what is left of each project's budget, as far as the time allows."""
    quotas: dict[str, str] = {}
    try:
        projects = dict.fromkeys(item.project for item in read_budgets(budgets)) if budgets else ()
    except ParseError:
        return quotas
    begun = time.monotonic()
    for project in projects:
        left_s = QUOTAS_WITHIN_S - (time.monotonic() - begun)
        if left_s <= 0:
            break
        try:
            done = client.run([*QUOTA_COMMAND, project], timeout_s=left_s)
        except TransportError:
            break
        if not done.code:
            quotas[project] = done.stdout
    return quotas


def _has_qos(partitions: str, accounts: str) -> bool:
    """Return whether there are QoS besides the usual one, whose limits decide."""
    of_partitions = any(word.startswith("QoS=") and word != "QoS=N/A" for word in partitions.split())
    cells = (line.split("|") for line in accounts.splitlines())
    of_accounts = {name for row in cells if len(row) > _QOS_CELL for name in row[_QOS_CELL].split(",")}
    return of_partitions or bool(of_accounts - {"", "normal"})


_QOS_CELL = 3
"""Place of the QoS in `ACCOUNTS_FORMAT`."""


def _explained(command: str, error: TransportError | RefusedError) -> DetectionProblem:
    if command == "sacctmgr":
        return DetectionProblem(
            f"your accounts are unknown: {error.what}",
            "Give --account; `submit --test-only` asks Slurm whether it would accept it.",
        )
    return DetectionProblem(error.what, error.fix)


def _configuration(environment: Mapping[str, str]) -> str:
    """Return which cluster answers: by its configuration, and by name where the shell names one."""
    return ":".join(filter(None, (environment.get("SLURM_CONF", ""), named_cluster(environment))))


def _load_cached(
    transport: Transport, path: Path, environment: Mapping[str, str], now: float
) -> Answers | None:
    try:
        if transport.stat(str(path)) is None:
            return None
        value: dict[str, Any] = json.loads(transport.read(str(path)))
        is_fresh = value["schema"] == _SCHEMA and 0 <= now - value["at"] < CACHE_S
        is_same_conf = value["conf"] == _configuration(environment)
        return _answers_of(value["answers"]) if is_fresh and is_same_conf else None
    except (TransportError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _answers_of(values: dict[str, Any]) -> Answers:
    """Return answers as they were kept; raises `TypeError` where one is no text."""
    answers = Answers(**values)
    accounting: object = values.get("accounting", True)
    texts = (
        values.get(name)
        for name in ("version", "sinfo", "partitions", "accounts", "qos", "cluster", "budgets")
    )
    kept: object = values.get("quotas", {})
    quotas = [*kept.items()] if isinstance(kept, dict) else [(None, None)]
    if (
        not all(text is None or isinstance(text, str) for text in texts)
        or not all(isinstance(text, str) for pair in quotas for text in pair)
        or not isinstance(accounting, bool)
        or "problems" in values
    ):
        raise TypeError("an answer is no text")
    return answers


def _save_cached(
    transport: Transport, path: Path, environment: Mapping[str, str], answers: Answers, now: float
) -> None:
    texts = {name: getattr(answers, name) for name in Answers.__dataclass_fields__ if name != "problems"}
    value = {"schema": _SCHEMA, "at": now, "conf": _configuration(environment), "answers": texts}
    try:
        transport.write_atomic(str(path), json.dumps(value).encode(), 0o600)
    except TransportError:
        return  # without a cache, the next call queries again
