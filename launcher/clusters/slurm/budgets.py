"""Budgets at JSC: `jutil` lists the accounts of a user's projects, and what is left of their core-hours.

No recorded output of `jutil project cpuquota` was at hand: its fields are found by their names (core-hours in
total, used, remaining), in a JSON list or a table; without such names, what is left is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from launcher.clusters.inventory import Budget
from launcher.clusters.slurm.parse import ParseError, read_table

COMMAND = ("jutil", "user", "projects", "-o", "columns")
QUOTA_COMMAND = ("jutil", "project", "cpuquota", "-o", "json", "-p")
"""Its last argument is the project."""
_REMAINING = re.compile(r"remain|left|avail|free|balance")
_USED = re.compile(r"used|usage|consum|spent")
_TOTAL = re.compile(r"total|grant|quota|limit|budget(?!-?account)|conting|coreh?-?h?(?:ours)?$")
_OTHER_UNIT = re.compile(r"month|percent|%|date|start|\bend|gpu|node-?h|account|state|project|user")
_PROJECT, _ACCOUNTS = "project", "budget-accounts"
_NONE = ("", "-", "none")


def read_budgets(text: str) -> tuple[Budget, ...]:
    """Read `jutil user projects`; projects without a budget (data projects) stay out.

    Raises:
        ParseError: it is not what jutil prints.
    """
    what = "list of projects"
    header = next((line.lower().split() for line in text.splitlines() if line.strip()), [])
    if _PROJECT not in header or _ACCOUNTS not in header:
        raise ParseError(what, text)
    table = read_table(text, None, what=what)
    rows = [{name.lower(): value for name, value in row.items()} for row in table.rows]
    return tuple(
        Budget(row[_PROJECT], account)
        for row in rows
        for account in row[_ACCOUNTS].split(",")
        if account.lower() not in _NONE
    )


def with_quotas(budgets: Sequence[Budget], quotas: Mapping[str, str]) -> tuple[Budget, ...]:
    """Return budgets with what is left of them; `quotas` are cpuquota's outputs by project."""
    return tuple(
        _with_quota(item, quotas[item.project]) if item.project in quotas else item for item in budgets
    )


def _with_quota(budget: Budget, text: str) -> Budget:
    """Return a budget with its core-hours left and in total; unknown where the output does not tell."""
    for record in _records(text, budget):
        total, used, left = (_amount(record, name) for name in (_TOTAL, _USED, _REMAINING))
        if left is None and total is not None and used is not None:
            left = total - used
        if left is not None:
            return replace(budget, core_h_left=max(left, 0.0), core_h_total=total)
    return budget


def _records(text: str, budget: Budget) -> list[Mapping[str, Any]]:
    """Return the records of a JSON answer, or the rows of a table; those of the budget's account first."""
    try:
        records = list(_mappings(json.loads(text)))
    except ValueError:
        try:
            records = list(read_table(text, None, what="list of quotas").rows)
        except ParseError:
            return []
    return sorted(records, key=lambda record: budget.account not in map(str, record.values()))


def _mappings(value: object) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        yield from _mappings(item)


def _amount(record: Mapping[str, Any], names: re.Pattern[str]) -> float | None:
    for name, value in record.items():
        key = name.lower().replace("_", "-")
        kinds = [kind for kind in (_REMAINING, _USED, _TOTAL) if kind.search(key)]
        if not kinds or kinds[0] is not names or _OTHER_UNIT.search(key):
            continue
        match = re.fullmatch(
            r"\s*([+-]?[\d,' ]*\d(?:\.\d+)?)\s*(?:core-?h(?:ours)?|h)?\s*", str(value), re.IGNORECASE
        )
        if match is not None:
            return float(re.sub(r"[,' ]", "", match[1]))
    return None
