"""Answers of the user's shell to what a submission leaves open: the variables that sbatch itself reads.

Sites and users set them once (`jutil env activate` sets SBATCH_ACCOUNT, many a `.bashrc` does). sbatch is
called without them, since others of them would change a job; these are passed on as its options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from launcher.clusters.inventory import SubmissionDefaults
from launcher.text import clean

if TYPE_CHECKING:
    from launcher.runs import RunSpec

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


CLUSTERS = ("SBATCH_CLUSTERS", "SLURM_CLUSTERS")
"""Variables that name the cluster of a submission, the first that is set; the second is every command's."""


def named_cluster(environment: Mapping[str, str]) -> str:
    """Return the cluster that the shell sends jobs to; empty for the login node's, and for several."""
    text = next((environment[name] for name in CLUSTERS if environment.get(name)), "")
    return text if re.fullmatch(r"\w[\w.-]*", text, re.ASCII) and text != "all" else ""


def several_clusters(environment: Mapping[str, str]) -> str:
    """Return the variable that names several clusters, with its value; empty where none does."""
    name = next((name for name in CLUSTERS if environment.get(name)), "")
    return "" if not name or named_cluster(environment) else f"{name}={clean(environment[name])}"


def on_cluster(environment: Mapping[str, str], cluster: str | None) -> dict[str, str]:
    """Return the environment of commands about one cluster, whatever the shell names; None: this one."""
    kept = {name: value for name, value in environment.items() if name not in CLUSTERS}
    return {**kept, CLUSTERS[1]: cluster} if cluster else kept


def environment_of_run(environment: Mapping[str, str], spec: RunSpec) -> dict[str, str]:
    """Return the environment of Slurm's commands about a run: on the cluster that it was submitted to."""
    return on_cluster(environment, spec.slurm.cluster if spec.slurm is not None else None)


def submission_defaults(environment: Mapping[str, str]) -> SubmissionDefaults:
    """Return what the shell answers."""
    answers = {name: clean(environment[key]) for name, key in VARIABLES.items() if environment.get(key)}
    return SubmissionDefaults(**answers, cluster=named_cluster(environment) or None)
