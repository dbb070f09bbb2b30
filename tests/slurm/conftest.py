"""The test cluster for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, obstacle
from tests.slurm.user import User

REQUIRED = "DISTILL_TUI_REQUIRE_SLURM"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Bring the test cluster up; it goes down again at the end unless it was up before."""
    why_not = obstacle()
    if why_not and os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED}=1, but the test cluster {why_not}")
    if why_not:
        pytest.skip(f"the test cluster {why_not}")
    ours = Cluster()
    was_up = ours.login.pid is not None
    if was_up and not all(machine.shows_checkout() for machine in (ours.login, *ours.nodes)):
        ours.down()  # Another checkout brought it up, and its users cannot reach this one.
        was_up = False
    ours.up()
    yield ours
    if not was_up:
        ours.down()


@pytest.fixture(scope="session")
def samples(shared: Path) -> Path:
    path = shared / "slurm-samples"
    if not path.is_dir():
        pytest.skip(f"no samples in {path}")
    return path


@pytest.fixture
def user(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[User]:
    """Return the user in a fresh directory; afterwards no job is left."""
    one = User.of(cluster, request.node.name[:20].replace("[", "-"))
    yield one
    one.clean_up()
