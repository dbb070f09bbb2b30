"""Accounts: which of them a user may charge, where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from launcher.clusters.slurm.parse import Table, listed, read_table

FORMAT = "Cluster,Account,Partition,QOS,DefaultQOS,DefaultAccount"
COLUMNS = ("Cluster", "Account", "Partition", "QOS", "Def QOS", "Def Acct")


@dataclass(frozen=True, slots=True)
class Account:
    """An association: an account that the user may charge, in one partition or in all."""

    account: str
    partition: str | None
    """None: in every partition."""
    qos: tuple[str, ...]
    default_qos: str | None = None
    default: bool = False
    """Whether jobs that name no account are charged to this one."""
    cluster: str = ""


def read_accounts(text: str, columns: Sequence[str] | None = COLUMNS) -> tuple[list[Account], Table]:
    """Read associations; rows of whole accounts (another user, or none, in a user column) stay out.

    Lines that are no rows are in the table's `unread`.

    Raises:
        CannotReadError: it is not what sacctmgr prints.
    """
    table = read_table(text, columns, what="list of accounts")
    found = []
    for row in table.rows:
        if row.get("User", "?") == "" or not row.get("Account"):
            continue
        account = row["Account"]
        found.append(
            Account(
                account=account,
                partition=row.get("Partition") or None,
                qos=listed(row.get("QOS", "")) or (),
                default_qos=row.get("Def QOS") or None,
                default=row.get("Def Acct") == account,
                cluster=row.get("Cluster", ""),
            )
        )
    return found, table
