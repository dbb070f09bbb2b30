"""Budgets at JSC: `jutil` knows which account each of the user's projects is charged to."""

from __future__ import annotations

from launcher.clusters.inventory import Budget
from launcher.clusters.slurm.parse import ParseError, read_table

COMMAND = ("jutil", "user", "projects", "-o", "columns")
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
