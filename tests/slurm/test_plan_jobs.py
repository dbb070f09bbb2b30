"""What a job is planned from: its start, its scripts, its hints, one more of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.clusters.base import RenderedJobs, RunLayout
from launcher.clusters.inventory import Partition
from launcher.clusters.slurm import cluster as cluster_module
from launcher.clusters.slurm.client import QUERY_TIMEOUT_S
from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.errors import RefusedError, UnreachableError
from launcher.fields import FIELDS
from launcher.request import JobOptions, Kind, SubmitRequest
from launcher.runs import Launcher, SlurmRequest
from launcher.sites import Site
from launcher.transports.base import Completed
from recipes.inheritance import Resolver
from tests.slurm.records import user_environment
from tests.slurm.scripted_machine import (
    DOWN,
    REFUSED,
    SILENT,
    Clock,
    Machine,
    at,
    new,
    plan_of,
)

OPTIONS = JobOptions(
    SubmitRequest(Path("r.yaml"), 2, 60, kind="smoke", sbatch_args=("--exclusive=user",)),
    2,
    4,
    "u",
    SlurmRequest(partition="p", time_s=60),
)


def test_the_start_is_asked_for_without_submitting(tmp_path: Path) -> None:
    answer = "sbatch: Job 7 to start at 2026-01-01T00:00:00 using 8 processors on nodes n1 in partition p"
    machine = Machine(sbatch=[Completed(0, "", answer)])
    environment = {"USER": "u", "PATH": "/bin", "SLURM_CONF": "/c", "SBATCH_QOS": "x"}
    slurm = SlurmCluster(machine, "/runs", environment)
    assert slurm.estimate_start(OPTIONS) == "2026-01-01T00:00:00"
    (argv,) = machine.asked
    assert argv[:2] == ("sbatch", "--test-only")
    assert argv[-2] == "--exclusive=user"
    assert "--job-name=distill-tui" in argv
    assert "--comment=distill-tui test" in argv
    assert "--nodes=2" in argv
    assert Path(argv[-1]).name == "ray_bare.sub"
    assert Path(argv[-1]).is_file()
    assert machine.with_environment == [{"PATH": "/bin", "USER": "u", "SLURM_CONF": "/c"}]
    assert machine.limits == {"sbatch": QUERY_TIMEOUT_S}


@pytest.mark.parametrize(("answer", "error"), [(REFUSED, RefusedError), (DOWN, UnreachableError)])
def test_a_start_that_slurm_does_not_tell(answer: Completed, error: type[Exception]) -> None:
    with pytest.raises(error, match="Slurm"):
        SlurmCluster(Machine(sbatch=[answer]), "/runs", {}).estimate_start(OPTIONS)
    with pytest.raises(UnreachableError, match="sbatch --test-only: no message, exit code 7"):
        SlurmCluster(Machine(sbatch=[replace(SILENT, code=7)]), "/runs", {}).estimate_start(OPTIONS)


def layout_of(tmp_path: Path, launcher: Launcher = "ray_bare", kind: Kind = "training") -> RunLayout:
    request = SubmitRequest(Path("r.yaml"), 2, 60, kind=kind, launcher=launcher)
    options = JobOptions(request, 2, 4, "u", SlurmRequest(partition="p", time_s=60))
    file = tmp_path / "r.yaml"
    file.write_text("distillation: {}\n")
    recipe = Resolver().resolve(file)
    return RunLayout("r", tmp_path, recipe, options, Site("s", "S", (), (), ()))


def test_a_run_is_rendered_for_this_machine(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, layout, jobs = Machine(), layout_of(tmp_path), RenderedJobs({}, ())
    calls = list[tuple[object, ...]]()

    def rendered(*arguments: object) -> RenderedJobs:
        calls.append(arguments)
        return jobs

    monkeypatch.setattr(cluster_module, "render", rendered)
    slurm = at(tmp_path, machine, clock)
    assert slurm.plan(layout) is jobs
    assert calls == [(machine, user_environment(tmp_path), layout)]
    assert slurm.fields == FIELDS


@pytest.mark.parametrize(
    ("launcher", "kind", "hints"),
    [
        ("ray.sub", "training", ("full",)),
        ("ray.sub", "smoke", ("full",)),
        ("ray.sub", "rehearsal", ()),
        ("ray_bare", "training", ()),
    ],
)
def test_hints_come_with_the_launcher_of_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher, kind: Kind, hints: tuple[str, ...]
) -> None:
    layout, partition = layout_of(tmp_path, launcher, kind), Partition("p", True, "up", 1, ())
    monkeypatch.setattr(
        cluster_module, "container_hints", lambda *given: ("full",) if given == (layout, partition) else ()
    )
    assert SlurmCluster(Machine(), str(tmp_path), {}).hints(layout, partition) == hints


def test_one_more_job_is_planned_from_the_first(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    plan = plan_of(new(tmp_path, machine))
    later = at(tmp_path, machine, clock).plan_again(replace(plan, argv=("sbatch", "--time=1", "job.sh")), 60)
    assert later.argv == ("sbatch", "--time=00:01:00", "--dependency=singleton", "job.sh")
    assert later.job_id != plan.job_id
