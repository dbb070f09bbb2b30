"""`python -m tests.cluster up | down [--purge] | run COMMAND… | on MACHINE COMMAND…`."""

from __future__ import annotations

import os
import sys
import time

from tests.cluster.cluster import Cluster, obstacle
from tests.cluster.machines import ClusterError, Machine


def main(arguments: list[str]) -> int:
    """Do one thing; returns the exit code."""
    cluster = Cluster()
    begun = time.monotonic()
    match arguments:
        case ["up"]:
            why_not = obstacle()
            if why_not:
                raise ClusterError(f"no test cluster here: {why_not}")
            cluster.up()
            print(cluster.login.run("sinfo"), end="")
            print(f"up after {time.monotonic() - begun:.1f} s; `python -m tests.cluster run COMMAND` uses it")
        case ["down", *rest] if rest in ([], ["--purge"]):
            cluster.down(purge=bool(rest))
            print(f"down after {time.monotonic() - begun:.1f} s")
        case ["run", *command] if command:
            argv = cluster.user_command(*command)
            os.execvp(argv[0], argv)
        case ["on", name, *command] if command:
            argv = Machine(cluster.settings, name).inside(*command)
            os.execvp(argv[0], argv)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except ClusterError as error:
        raise SystemExit(f"tests.cluster: {error}") from None
