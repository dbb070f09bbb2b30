"""Sites and login nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.sites import Machine, inspect_machine, recognise, shared_login_node, sites
from launcher.transports.local import LocalTransport


def test_every_site_says_where_its_facts_come_from_and_the_generic_one_is_last() -> None:
    assert [site.id for site in sites()] == ["jupiter", "jureca-dc", "juwels-booster", "generic"]
    for path in (Path(__file__).parent.parent.parent / "launcher" / "sites").glob("*.toml"):
        text = path.read_text()
        assert "source = " in text
        assert "date = " in text


@pytest.mark.parametrize(
    ("machine", "site"),
    [
        (Machine("jwlogin22"), "juwels-booster"),
        (Machine("jwb0129"), "juwels-booster"),
        (Machine("jwlogin08", systemname="juwels"), "generic"),
        (Machine("anything", systemname="juwelsbooster"), "juwels-booster"),
        (Machine("jpbo-001-12"), "jupiter"),
        (Machine("laptop"), "generic"),
    ],
)
def test_recognising(machine: Machine, site: str) -> None:
    assert recognise(machine).id == site


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (Machine("jwlogin22"), "login node of JUWELS Booster"),
        (Machine("jwb0129", in_job=True), None),
        (Machine("login01", slurm=True), "name of a login node"),
        (Machine("login01"), None),
        (Machine("box", slurm=True), None),
        (Machine("box", slurm=True, others=("bob",)), "someone else is logged in"),
        (Machine("box", slurm=True, others=("bob", "eve")), "2 other people are logged in"),
        (Machine("laptop", others=("bob",)), None),
    ],
)
def test_shared_login_nodes(machine: Machine, why: str | None) -> None:
    said = shared_login_node(machine)
    assert said is None if why is None else said is not None and why in said


def test_looking_at_a_machine_with_slurm(tmp_path: Path) -> None:
    (tmp_path / "sbatch").write_text("")
    (tmp_path / "slurm.conf").write_text("")
    environment = {
        "PATH": str(tmp_path),
        "SLURM_CONF": str(tmp_path / "slurm.conf"),
        "USER": "me",
        "SLURM_JOB_ID": "1",
    }
    machine = inspect_machine(LocalTransport(), environment)
    assert machine.slurm
    assert machine.in_job
    assert not inspect_machine(LocalTransport(), {"PATH": "/nowhere"}).slurm
