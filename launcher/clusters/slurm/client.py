"""Running Slurm's commands."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.clusters.shell_defaults import named_cluster
from launcher.clusters.slurm.messages import failure
from launcher.errors import TransportError, UnreachableError
from launcher.plan import passed_on
from launcher.transports.base import Completed, Transport, user_of

# Slurm 22.05 with the controller stopped: 9 s, `scontrol show` and `sbatch --test-only` 18 s; hung: 10 s;
# without a slurm.conf: 59 s.
QUERY_TIMEOUT_S = 75.0
# sbatch retries for two minutes when the queue is full (src/sbatch/sbatch.c: 15 times, 1 + 2 + … + 15 s).
SUBMIT_TIMEOUT_S = 150.0
_HEADING = re.compile(r"^CLUSTER: \S+\n", re.MULTILINE)
"""Line before the answer about a cluster that was named; 22.05 prints none with -h."""


@dataclass(frozen=True, slots=True)
class SlurmClient:
    """Slurm's commands on the transport's machine, with an environment of ours.

    The user's SQUEUE_FORMAT, SACCT_FORMAT, SBATCH_*, SLURM_* and language would change questions and answers.
    """

    transport: Transport
    environment: Mapping[str, str]
    """The environment of this program."""
    now: Callable[[], float] = time.time

    @property
    def user(self) -> str:
        """The user's name."""
        return user_of(self.transport, self.environment)

    def ask(self, argv: Sequence[str], *, timeout_s: float = QUERY_TIMEOUT_S) -> str:
        """Run a query and return what it printed.

        Raises:
            UnreachableError: the controller or the database gave no answer.
            RefusedError: Slurm refused.
            TransportError: there is no such command.
        """
        done = self.run(argv, timeout_s=timeout_s)
        if done.code:
            raise failure(argv[0], done.code, done.stderr)
        return done.stdout

    def run(self, argv: Sequence[str], *, timeout_s: float = QUERY_TIMEOUT_S) -> Completed:
        """Run a query to its end, whatever its exit code.

        Raises:
            UnreachableError: it did not end in time.
            TransportError: there is no such command.
        """
        environment = {
            **passed_on(self.environment),
            **conf(self.environment),
            "LC_ALL": "C.UTF-8",
            "SLURM_TIME_FORMAT": "%s",
        }
        if cluster := named_cluster(self.environment):
            environment["SLURM_CLUSTERS"] = cluster
            if argv[0] == "sacct":  # it reads no such variable
                argv = [argv[0], "-M", cluster, *argv[1:]]
        try:
            done = self.transport.run(argv, env=environment, timeout_s=timeout_s)
            return replace(done, stdout=_HEADING.sub("", done.stdout)) if cluster else done
        except TransportError as error:
            if "did not end" in error.what:
                raise UnreachableError(error.what, fix="Slurm may be overloaded; try again later.") from error
            raise


def conf(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that tells Slurm's commands where its configuration is, if it is set."""
    return {name: environment[name] for name in ("SLURM_CONF",) if environment.get(name)}
