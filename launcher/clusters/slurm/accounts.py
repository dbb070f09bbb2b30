"""Associations: accounts that a user may charge, by partition."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.clusters.inventory import Account
from launcher.clusters.slurm.parse import Table, listed, read_table

FORMAT = "Cluster,Account,Partition,QOS,DefaultQOS,DefaultAccount"
COLUMNS = ("Cluster", "Account", "Partition", "QOS", "Def QOS", "Def Acct")


def read_accounts(text: str, columns: Sequence[str] | None = COLUMNS) -> tuple[list[Account], Table]:
    """Read associations; rows of whole accounts (another user, or none, in a user column) stay out.

    Lines that are no rows are in the table's `unread`.

    Raises:
        ParseError: the text is not a list of associations.
    """
    table = read_table(text, columns, what="list of accounts")
    accounts = []
    for row in table.rows:
        if row.get("User", "?") == "" or not row.get("Account"):
            continue
        account = row["Account"]
        accounts.append(
            Account(
                account=account,
                partition=row.get("Partition") or None,
                qos=listed(row.get("QOS", "")) or (),
                default=row.get("Def Acct") == account,
                cluster=row.get("Cluster", ""),
                default_qos=row.get("Def QOS", ""),
            )
        )
    return accounts, table
