"""What a name or a number on the command line refers to among the runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from launcher.errors import AmbiguousError, InputError
from launcher.text import clean

JOB_ID = r"[0-9]{1,10}(?:_[0-9]{1,10})?(?:\+[0-9]{1,10})?"
"""Pattern of the id of a Slurm job, of a task of an array, or of a part of a heterogeneous job."""
_LISTED = 3


@dataclass(frozen=True, slots=True)
class RunNames:
    """Names by which a run can be referred to."""

    id: str
    name: str
    created: datetime
    jobs: tuple[str, ...]
    """Ids of its jobs."""


def is_job_id(reference: str) -> bool:
    """Return True for the id of a Slurm job, of a task of an array, or of a part of a heterogeneous job."""
    return re.fullmatch(JOB_ID, reference) is not None


def referenced(runs: Sequence[RunNames], reference: str, root: str) -> int:
    """Return the index of the run that a reference names: a number is a job's id, else a run's full name.

    Raises:
        InputError: there is no such run.
        AmbiguousError: there are several.
    """
    is_number = is_job_id(reference)
    matches = _of_job(runs, reference) if is_number else []
    matches = matches or [run for run in runs if reference == run.id]
    matches = matches or [
        run for run in runs if (reference == run.name if is_number else reference in run.id)
    ]
    if len(matches) == 1:
        return runs.index(matches[0])
    if not matches:
        raise InputError(f"no run '{clean(reference)}'", where=root, fix="`distill-tui runs` lists them.")
    raise AmbiguousError(
        f"ambiguous run '{clean(reference)}': it could be {_listed(matches, reference)}",
        fix="Give the run's full name." if is_number else "Give more of the name.",
    )


def _of_job(runs: Sequence[RunNames], identity: str) -> list[RunNames]:
    """Return the runs that have a job of this id: several where ids of two clusters coincide."""
    return [run for run in runs if identity in run.jobs]


def _listed(runs: Sequence[RunNames], reference: str) -> str:
    """Return the names of the first runs, with the job where a job's id was given."""
    names = []
    for run in runs[:_LISTED]:
        job = f" (job {reference} of {run.created:%Y-%m-%d})" if _of_job([run], reference) else ""
        names.append(f"{clean(run.id)}{job}")
    more = f" and {len(runs) - _LISTED} more" if len(runs) > _LISTED else ""
    return ", ".join(names) + more
