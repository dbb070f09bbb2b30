"""Accounting's fields of jobs, for a report."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.clusters.slurm.client import QUERY_TIMEOUT_S, SlurmClient
from launcher.clusters.slurm.parse import read_table
from launcher.text import clean

# The name comes last: it may hold the separator.
COLUMNS = (
    "JobID", "State", "ExitCode", "DerivedExitCode", "Reason", "Partition", "Account", "QOS", "Submit",
    "Eligible", "Start", "End", "Elapsed", "Timelimit", "NNodes", "NodeList", "AllocTRES", "JobName",
)  # fmt: skip


def accounted(
    client: SlurmClient, ids: Sequence[str], *, timeout_s: float = QUERY_TIMEOUT_S
) -> dict[str, tuple[dict[str, str], ...]]:
    """Return accounting's fields of jobs, for each of a job's starts (a requeue keeps the number).

    Raises:
        TransportError: accounting gave no answer.
        RefusedError: it refused.
    """
    if not ids:
        return {}
    argv = ["sacct", "-X", "-D", "-n", "-P", "-j", ",".join(ids), f"--format={','.join(COLUMNS)}"]
    text = client.ask(argv, timeout_s=timeout_s)
    starts_by_job: dict[str, tuple[dict[str, str], ...]] = {}
    for row in read_table(text, COLUMNS, what="list of jobs").rows:
        fields = {name: clean(value) for name, value in row.items() if value}
        if "JobID" not in fields:  # a line of separators
            continue
        starts_by_job[fields["JobID"]] = (*starts_by_job.get(fields["JobID"], ()), fields)
    return starts_by_job
