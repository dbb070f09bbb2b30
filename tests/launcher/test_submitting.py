"""Orders, and what they come to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from launcher.clusters.slurm.messages import RefusedError
from launcher.errors import InputError, TransportError
from launcher.runs import Run, load
from launcher.sites import Profile, SmokePlace, sites
from launcher.submit.submit import PreflightFailedError, SubmitRequest, UnconfirmedError, estimate_start, send
from tests.launcher.ordering import BOOSTER, FOUND, NO_ACCOUNTING, SITE, Desk

MEGATRON = ("policy.dtensor_cfg.enabled=false", "policy.megatron_cfg.enabled=true")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path)


def order(desk: Desk, **changes: object) -> SubmitRequest:
    return replace(SubmitRequest(desk.recipe, 1, "2:00:00"), **changes)  # type: ignore[arg-type]


def test_what_an_order_leaves_open_is_chosen_and_nothing_is_written(desk: Desk) -> None:
    before = sorted(desk.world.root.rglob("*"))
    proposal = desk.propose(order(desk))
    assert (proposal.blocking, proposal.asks, proposal.notes) == ((), (), ())
    assert (proposal.choices.gpus_per_node, proposal.choices.request.partition) == (4, "booster")
    assert proposal.choices.request.account == "first"
    assert (proposal.cost.node_hours, proposal.cost.gpu_hours, proposal.cost.core_hours) == (2.0, 8.0, 96.0)
    assert {result.outcome for result in proposal.report.results} <= {"pass", "unknown", "warn"}
    assert proposal.memory is not None
    assert {phase.id for phase in proposal.memory.phases} >= {"student-train", "teacher-score"}
    assert sorted(desk.world.root.rglob("*")) == before


def test_an_account_that_the_partition_lets_in(desk: Desk) -> None:
    assert desk.propose(order(desk, partition="other")).choices.request.account == "second"
    silent = replace(desk, found=NO_ACCOUNTING)
    assert silent.propose(order(desk)).choices.request.account is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"time": "soon"}, "is no time"),
        ({"time": 0}, "is no time"),
        ({"nodes": 0}, "1 or more"),
        ({"profile": "no"}, "no profile 'no'"),
        ({"skip_checks": ("C99",)}, "no check 'C99'"),
        ({"checkout": "/nowhere"}, "no NeMo-RL checkout"),
    ],
)
def test_orders_that_are_none(desk: Desk, changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        desk.propose(order(desk, **changes))


def test_an_env_file_that_is_not_there(desk: Desk) -> None:
    with pytest.raises(TransportError):
        desk.propose(order(desk, env_file=desk.world.root / "none.env"))


def test_a_check_that_fails_blocks_unless_it_is_skipped_which_the_run_records(desk: Desk) -> None:
    wrong = order(desk, overrides=("loss_fn.kl_type=revers",))
    proposal = desk.propose(wrong)
    (result,) = proposal.blocking
    assert (result.id, result.where[0].file) == ("C16", "<override>")
    with pytest.raises(PreflightFailedError, match="C16") as refused:
        send(proposal, desk.store, desk.environment)
    assert "--skip-check ID" in refused.value.fix
    assert not Path(desk.store.root).exists()
    run = send(desk.propose(replace(wrong, skip_checks=("c16",))), desk.store, desk.environment)
    (skipped,) = load(desk.transport, run.directory).spec.skipped_checks
    assert (skipped.id, skipped.message) == ("C16", result.message)
    assert run.jobs[0].id == "4711"


def test_a_chain_of_which_a_link_is_refused_says_what_is_there(desk: Desk) -> None:
    proposal = desk.propose(order(desk, chain=3))
    assert [plan.argv.count("--dependency=singleton") for plan in proposal.submission.plans] == [1, 1, 1]
    desk.transport.refuses_after = 2
    with pytest.raises(
        RefusedError, match=r"QOSMaxSubmitJobPerUserLimit.*job 3 of the 3 of a chain"
    ) as refused:
        send(proposal, desk.store, desk.environment)
    assert "Submitted before it: 4711, 4712" in refused.value.fix
    (run,) = desk.store.list()
    assert isinstance(run, Run)
    assert [bool(job.refused) for job in run.jobs] == [False, False, True]


def test_memory_that_does_not_fit_wants_a_yes(desk: Desk) -> None:
    small = replace(desk, found=replace(FOUND, site=replace(SITE, gpu_memory_gib={"a100": 2.0})))
    proposal = small.propose(order(desk))
    assert proposal.blocking == ()
    assert any("student-train needs about" in question and "±" in question for question in proposal.asks)
    with pytest.raises(UnconfirmedError, match="not submitted"):
        send(proposal, desk.store, desk.environment)
    assert not Path(desk.store.root).exists()
    assert send(proposal, desk.store, desk.environment, confirmed=True).jobs
    assert send(small.propose(order(desk, yes=True)), desk.store, desk.environment).jobs


def test_gpus_of_unknown_memory_are_not_assumed_to_have_some(desk: Desk) -> None:
    unknown = replace(desk, found=replace(FOUND, site=replace(SITE, gpu_memory_gib={})))
    proposal = unknown.propose(order(desk))
    assert (proposal.memory, proposal.asks) == (None, ())
    assert any("memory of the GPUs" in note for note in proposal.notes)


def test_checks_see_the_environment_of_the_job_not_that_of_the_shell(desk: Desk) -> None:
    desk.environment["TORCH_CUDA_ARCH_LIST"] = "8.0"
    assert "C54" in {item.id for item in desk.propose(order(desk, overrides=MEGATRON)).blocking}
    site = replace(SITE, profiles={"a": Profile({"TORCH_CUDA_ARCH_LIST": "8.0"})})
    with_profile = replace(desk, found=replace(FOUND, site=site))
    proposal = with_profile.propose(order(desk, overrides=MEGATRON, profile="a"))
    assert "C54" not in {item.id for item in proposal.blocking}


def test_a_site_that_is_known_tells_the_architecture_of_its_gpus(desk: Desk) -> None:
    for site in sites()[:-1]:
        there = replace(desk, found=replace(FOUND, site=replace(site, scratch="", offline=False)))
        blocking = {item.id for item in there.propose(order(desk, overrides=MEGATRON)).blocking}
        assert "C54" not in blocking, site.name


def test_what_ray_offers_of_a_node_is_what_counts(desk: Desk) -> None:
    site = replace(SITE, profiles={"few": Profile({"RAY_BARE_CPUS": "8"})})
    few = replace(desk, found=replace(FOUND, site=site))
    assert {item.id for item in few.propose(order(desk, profile="few")).blocking} == {"C61"}


def test_what_points_to_files_and_does_not_reach_the_job_is_said(desk: Desk) -> None:
    desk.environment["HF_HOME"] = "/data/hf"
    (note,) = desk.propose(order(desk)).notes
    assert "HF_HOME" in note


def test_checkpoints_that_go_elsewhere_than_big_files_belong(desk: Desk) -> None:
    site = replace(SITE, scratch="$SCRATCH")
    with_scratch = replace(desk, found=replace(FOUND, site=site))
    (home,) = with_scratch.propose(order(desk)).notes
    assert "below your home directory" in home
    desk.environment["SCRATCH"] = "/scratch"
    (elsewhere,) = with_scratch.propose(order(desk)).notes
    assert "big files belong below /scratch" in elsewhere
    there = ("checkpointing.checkpoint_dir=/scratch/me",)
    assert with_scratch.propose(order(desk, overrides=there)).notes == ()
    assert with_scratch.propose(order(desk, kind="smoke")).notes == ()


def test_a_smoke_run_has_checkpoints_of_its_own(desk: Desk) -> None:
    """Those of the real run, at its last step already, do not concern it."""
    (desk.world.root / "results" / "step_100").mkdir(parents=True)
    assert {item.id for item in desk.propose(order(desk)).blocking} == {"C32"}
    proposal = desk.propose(order(desk, kind="smoke"))
    assert proposal.blocking == ()
    assert proposal.submission.max_steps == 5


def test_a_smoke_run_takes_as_few_nodes_as_do(desk: Desk) -> None:
    wide = ("cluster.num_nodes=8",)
    assert desk.propose(order(desk, kind="smoke", nodes=None, overrides=wide)).choices.nodes == 1
    assert desk.propose(order(desk, nodes=None, overrides=wide)).choices.nodes == 8
    spread = (
        *wide,
        "policy.dtensor_cfg.tensor_parallel_size=8",
        "teacher.dtensor_cfg.tensor_parallel_size=8",
    )
    proposal = desk.propose(order(desk, kind="smoke", nodes=None, overrides=spread))
    assert proposal.choices.nodes == 2
    assert proposal.submission.spec.nodes == proposal.order.nodes == 2


def test_a_smoke_run_goes_where_the_site_wants_tests(desk: Desk) -> None:
    devel = replace(BOOSTER, name="devel", default=False, max_time_s=7200, max_nodes=2)
    site = replace(SITE, smoke=SmokePlace(partition="devel"))
    there = replace(desk, found=replace(FOUND, site=site, partitions=(BOOSTER, devel)))

    def place(where: Desk, **changes: object) -> tuple[str, str | None]:
        request = where.propose(order(where, **{"kind": "smoke", **changes})).choices.request
        return request.partition, request.reservation

    assert place(there) == ("devel", None)
    assert place(there, kind="training") == place(there, time="3:00:00") == ("booster", None)
    assert place(there, nodes=4) == place(there, partition="booster") == ("booster", None)
    site = replace(SITE, smoke=SmokePlace(reservation="devel", max_nodes=4, max_time_s=7200))
    reserved = replace(desk, found=replace(FOUND, site=site))
    assert place(reserved) == ("booster", "devel")
    assert place(reserved, time="3:00:00") == ("booster", None)
    assert place(reserved, reservation="mine") == ("booster", "mine")


def test_a_rehearsal_is_checked_for_where_it_is_placed_alone(desk: Desk) -> None:
    proposal = desk.propose(order(desk, kind="rehearsal", overrides=("loss_fn.kl_type=revers",)))
    assert {item.id for item in proposal.report.results} == {"C61", "C62"}
    assert (proposal.blocking, proposal.memory) == ((), None)
    wide = desk.propose(order(desk, kind="rehearsal", gpus_per_node=8))
    assert [item.id for item in wide.blocking] == ["C62"]


def at(seconds: float) -> str:
    return (datetime.now() + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def test_a_shorter_time_that_would_start_sooner(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, **{"08:00:00": at(90000), "04:00:00": at(7200), "02:00:00": at(1)})
    forecast = estimate_start(desk.propose(order(desk, time="8:00:00")), desk.store, desk.environment)
    assert (forecast.start, forecast.asked.now) == (desk.transport.answers["08:00:00"], False)
    assert [(item.time_s, item.now) for item in forecast.sooner] == [(14400, False), (7200, True)]


def test_what_starts_at_once_is_asked_for_once(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, **{"08:00:00": at(1)})
    forecast = estimate_start(desk.propose(order(desk, time="8:00:00")), desk.store, desk.environment)
    assert (forecast.asked.now, forecast.sooner) == (True, ())
    assert len([argv for argv in desk.transport.asked if argv[0] == "sbatch"]) == 1


def test_a_shorter_time_that_starts_no_sooner_is_not_told(tmp_path: Path) -> None:
    same = at(90000)
    desk = Desk.at(tmp_path, **{"00:30:00": same, "00:15:00": same})
    forecast = estimate_start(desk.propose(order(desk, time="30")), desk.store, desk.environment)
    assert forecast.sooner == ()
    assert not any("--time=00:07:30" in argv for argv in desk.transport.asked)
