"""Workers on the worker units of a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, Protocol

from .settings import RehearsalError
from .worker import RehearsalWorker, Task

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = "worker_units"
START_TIMEOUT_S = 180.0
CONNECT_TIMEOUT_S = 10.0

_log = logging.getLogger("rehearsal")


class Pool(Protocol):
    """Equal workers that are called together."""

    @property
    def size(self) -> int:
        """Number of workers."""

    def start(self, task: Task, ready: Callable[[int], None]) -> None:
        """Start the workers; `ready` is called with the number that are up."""

    def call(self, method: str, *arguments: object, ready: Callable[[int], None] | None = None) -> list[Any]:
        """Call a method of every worker; return the results in the order of their ranks."""


class RayPool:
    """One actor per worker unit, as many as the recipe has GPUs, spread over the nodes."""

    def __init__(self, gpus: int) -> None:
        import ray

        self._ray: Any = ray
        resources = connect()
        self.nodes = sum(node["Alive"] and UNIT in node["Resources"] for node in self._ray.nodes())
        units = int(resources.get(UNIT, 0))
        if gpus > units:
            raise RehearsalError(
                f"Not enough GPUs available. Requested {gpus} GPUs, "
                f"but only {units} are available in the cluster.",
                "cluster.num_nodes x cluster.gpus_per_node (a worker unit counts as a GPU)",
                "Lower them in the recipe, or start a larger cluster.",
            )
        self._size = gpus
        self._actors: list[Any] = []

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._size

    def start(self, task: Task, ready: Callable[[int], None]) -> None:
        """Start the actors and wait until every process is up."""
        # The nodes may not see this file: the code travels with the actor.
        self._ray.cloudpickle.register_pickle_by_value(sys.modules[__package__])
        actor = self._ray.remote(RehearsalWorker).options(
            resources={UNIT: 1}, num_cpus=0.1, scheduling_strategy="SPREAD"
        )
        self._actors = [actor.remote(rank, self.size, task) for rank in range(self.size)]
        self._wait([one.__ray_ready__.remote() for one in self._actors], ready, START_TIMEOUT_S)

    def call(self, method: str, *arguments: object, ready: Callable[[int], None] | None = None) -> list[Any]:
        """Call a method of every actor; arguments are sent once, not once for each actor."""
        shared = [self._ray.put(argument) for argument in arguments]
        pending = [getattr(actor, method).remote(*shared) for actor in self._actors]
        if ready is not None:
            self._wait(pending, ready, START_TIMEOUT_S)
        results: list[Any] = self._ray.get(pending)
        return results

    def _wait(self, pending: list[Any], ready: Callable[[int], None], timeout_s: float) -> None:
        for count in range(1, len(pending) + 1):
            done, _ = self._ray.wait(pending, num_returns=count, timeout=timeout_s)
            if len(done) < count:
                raise RehearsalError(
                    f"Timed out waiting for workers: {len(done)} of {len(pending)} are ready"
                    f" after {timeout_s:.0f} s without a new one.",
                    fix=f"See `ray status`: are the {UNIT} taken by something else?",
                )
            ready(count)
        self._ray.get(pending)


def connect() -> dict[str, float]:
    """Connect to the Ray cluster of RAY_ADDRESS, or to the one on this host; return its resources.

    Raises:
        RehearsalError: there is none, or it does not answer.
    """
    import ray as untyped

    ray: Any = untyped
    address = os.environ.get("RAY_ADDRESS", "")
    fix = "Start one with `ray start --head`, or set RAY_ADDRESS to its host:port."
    _probe(address, fix)
    try:
        ray.init(address="auto")
    except (ConnectionError, RuntimeError, ValueError) as error:
        message = " ".join(str(error).split())
        raise RehearsalError(
            f"Cannot connect to Ray: {message}", address and f"RAY_ADDRESS={address}", fix
        ) from None
    resources: dict[str, float] = ray.cluster_resources()
    _log.info("Connected to existing Ray cluster: %s", resources)
    return resources


def _probe(address: str, fix: str) -> None:
    """Fail within seconds where Ray would try for two minutes and then kill the process (2.60)."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "://" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise RehearsalError(f"Cannot connect to Ray: {error}", f"RAY_ADDRESS={address}", fix) from None
