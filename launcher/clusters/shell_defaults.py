"""Answers of the user's shell to what a submission leaves open: the variables that sbatch itself reads.

Sites and users set them once (`jutil env activate` sets SBATCH_ACCOUNT, many a `.bashrc` does). sbatch is
called without them, since others of them would change a job; these are passed on as its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from launcher.clusters.inventory import SubmissionDefaults
from launcher.text import clean

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "partition": "SBATCH_PARTITION",
        "account": "SBATCH_ACCOUNT",
        "qos": "SBATCH_QOS",
        "reservation": "SBATCH_RESERVATION",
        "time": "SBATCH_TIMELIMIT",
    }
)
"""Field of a request -> variable (man sbatch, INPUT ENVIRONMENT VARIABLES)."""
NOT_USED: Mapping[str, str] = MappingProxyType(
    {"SBATCH_CONSTRAINT": "constraint", "SBATCH_NETWORK": "network", "SBATCH_WCKEY": "wckey"}
)
"""Variables that say which nodes a job gets, and have no field -> option of sbatch."""


def submission_defaults(environment: Mapping[str, str]) -> SubmissionDefaults:
    """Return what the shell answers."""
    return SubmissionDefaults(
        **{name: clean(environment[key]) for name, key in VARIABLES.items() if environment.get(key)}
    )
