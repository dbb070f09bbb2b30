"""Submit requests, and the plans they produce."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from launcher.clusters.inventory import Gpus, Mix
from launcher.errors import InputError, RefusedError, TransportError
from launcher.request import SubmitRequest
from launcher.runs import Run, load
from launcher.sites import Profile, SmokeTarget, sites
from launcher.submit.submit import PreflightFailedError, UnconfirmedError, estimate_start, send
from tests.launcher.ordering import BOOSTER, DETECTION, NO_ACCOUNTING, SITE, Desk

MEGATRON = ("policy.dtensor_cfg.enabled=false", "policy.megatron_cfg.enabled=true")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path)


def request_for(desk: Desk, **changes: object) -> SubmitRequest:
    return replace(SubmitRequest(desk.recipe, 1, "2:00:00"), **changes)  # type: ignore[arg-type]


def test_what_an_order_leaves_open_is_chosen_and_nothing_is_written(desk: Desk) -> None:
    before = sorted(desk.world.root.rglob("*"))
    plan = desk.plan_of(request_for(desk))
    assert (plan.blocking, plan.asks, plan.notes) == ((), (), ())
    assert (plan.options.gpus_per_node, plan.options.slurm_request.partition) == (4, "booster")
    assert plan.options.slurm_request.account == "first"
    assert (plan.cost.node_hours, plan.cost.gpu_hours, plan.cost.core_hours) == (2.0, 8.0, 96.0)
    assert {result.outcome for result in plan.report.results} <= {"pass", "unknown", "warn"}
    assert plan.memory is not None
    assert {phase.id for phase in plan.memory.phases} >= {"student-train", "teacher-score"}
    assert sorted(desk.world.root.rglob("*")) == before


def test_an_account_that_the_partition_lets_in(desk: Desk) -> None:
    assert desk.plan_of(request_for(desk, partition="other")).options.slurm_request.account == "second"
    silent = replace(desk, detection=NO_ACCOUNTING)
    assert silent.plan_of(request_for(desk)).options.slurm_request.account is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"time": "soon"}, "invalid time limit 'soon'"),
        ({"time": 0}, "invalid time limit '0'"),
        ({"nodes": 0}, "whole numbers >= 1"),
        ({"profile": "no"}, "unknown profile 'no'"),
        ({"skip_checks": ("C99",)}, "unknown check 'C99'"),
        ({"checkout": "/nowhere"}, "not a NeMo-RL checkout"),
    ],
)
def test_orders_that_are_none(desk: Desk, changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        desk.plan_of(request_for(desk, **changes))


def test_an_env_file_that_is_not_there(desk: Desk) -> None:
    with pytest.raises(TransportError):
        desk.plan_of(request_for(desk, env_file=desk.world.root / "none.env"))


def test_a_check_that_fails_blocks_unless_it_is_skipped_which_the_run_records(desk: Desk) -> None:
    wrong = request_for(desk, overrides=("loss_fn.kl_type=revers",))
    plan = desk.plan_of(wrong)
    (result,) = plan.blocking
    assert (result.id, result.where[0].file) == ("C16", "<override>")
    with pytest.raises(PreflightFailedError, match="C16") as refused:
        send(plan, desk.store, desk.environment)
    assert "--skip-check ID" in refused.value.fix
    assert not Path(desk.store.root).exists()
    run = send(desk.plan_of(replace(wrong, skip_checks=("c16",))), desk.store, desk.environment)
    (skipped,) = load(desk.transport, run.directory).spec.skipped_checks
    assert (skipped.id, skipped.message) == ("C16", result.message)
    assert run.jobs[0].id == "4711"


def test_a_chain_of_which_a_link_is_refused_says_what_is_there(desk: Desk) -> None:
    plan = desk.plan_of(request_for(desk, chain=3))
    assert [plan.argv.count("--dependency=singleton") for plan in plan.submission.plans] == [1, 1, 1]
    desk.transport.refuses_after = 2
    with pytest.raises(
        RefusedError, match=r"QOSMaxSubmitJobPerUserLimit.*job 3 of the 3 of a chain"
    ) as refused:
        send(plan, desk.store, desk.environment)
    assert "Submitted before it: 4711, 4712" in refused.value.fix
    (run,) = desk.store.list()
    assert isinstance(run, Run)
    assert [bool(job.refused) for job in run.jobs] == [False, False, True]


def test_memory_that_does_not_fit_wants_a_yes(desk: Desk) -> None:
    small = replace(desk, detection=replace(DETECTION, site=replace(SITE, gpu_memory_gib={"a100": 2.0})))
    plan = small.plan_of(request_for(desk))
    assert plan.blocking == ()
    assert any("student-train needs about" in question and "±" in question for question in plan.asks)
    with pytest.raises(UnconfirmedError, match="not submitted"):
        send(plan, desk.store, desk.environment)
    assert not Path(desk.store.root).exists()
    assert send(plan, desk.store, desk.environment, confirmed=True).jobs
    assert send(small.plan_of(request_for(desk, yes=True)), desk.store, desk.environment).jobs


def test_gpus_of_unknown_memory_are_not_assumed_to_have_some(desk: Desk) -> None:
    unknown = replace(desk, detection=replace(DETECTION, site=replace(SITE, gpu_memory_gib={})))
    plan = unknown.plan_of(request_for(desk))
    assert (plan.memory, plan.asks) == (None, ())
    assert any("memory of the GPUs" in note for note in plan.notes)


def test_checks_see_the_environment_of_the_job_not_that_of_the_shell(desk: Desk) -> None:
    desk.environment["TORCH_CUDA_ARCH_LIST"] = "8.0"
    left_out = request_for(desk, overrides=MEGATRON, no_env=("TORCH_CUDA_ARCH_LIST",))
    assert "C54" in {item.id for item in desk.plan_of(left_out).blocking}
    assert "C54" not in {item.id for item in desk.plan_of(request_for(desk, overrides=MEGATRON)).blocking}
    del desk.environment["TORCH_CUDA_ARCH_LIST"]
    site = replace(SITE, profiles={"a": Profile({"TORCH_CUDA_ARCH_LIST": "8.0"})})
    with_profile = replace(desk, detection=replace(DETECTION, site=site))
    plan = with_profile.plan_of(request_for(desk, overrides=MEGATRON, profile="a"))
    assert "C54" not in {item.id for item in plan.blocking}


def test_a_site_that_is_known_tells_the_architecture_of_its_gpus(desk: Desk) -> None:
    for site in sites()[:-1]:
        there = replace(desk, detection=replace(DETECTION, site=replace(site, scratch="", offline=False)))
        blocking = {item.id for item in there.plan_of(request_for(desk, overrides=MEGATRON)).blocking}
        assert "C54" not in blocking, site.name


def test_what_ray_offers_of_a_node_is_what_counts(desk: Desk) -> None:
    site = replace(SITE, profiles={"few": Profile({"RAY_BARE_CPUS": "8"})})
    few = replace(desk, detection=replace(DETECTION, site=site))
    assert {item.id for item in few.plan_of(request_for(desk, profile="few")).blocking} == {"C61"}


def test_what_points_to_files_and_does_not_reach_the_job_is_said(desk: Desk) -> None:
    desk.environment["HF_HOME"] = "/data/hf"
    assert desk.plan_of(request_for(desk)).notes == ()
    desk.environment["HF_HOME"] = "/dev/shm/hf"
    (note,) = desk.plan_of(request_for(desk)).notes
    assert "HF_HOME" in note


def test_checkpoints_that_go_elsewhere_than_big_files_belong(desk: Desk) -> None:
    site = replace(SITE, scratch="$SCRATCH")
    with_scratch = replace(desk, detection=replace(DETECTION, site=site))
    (home,) = with_scratch.plan_of(request_for(desk)).notes
    assert "below your home directory" in home
    desk.environment["SCRATCH"] = "/scratch"
    (elsewhere,) = with_scratch.plan_of(request_for(desk)).notes
    assert "large files belong in /scratch" in elsewhere
    there = ("checkpointing.checkpoint_dir=/scratch/me",)
    assert with_scratch.plan_of(request_for(desk, overrides=there)).notes == ()
    assert with_scratch.plan_of(request_for(desk, kind="smoke")).notes == ()


def test_a_smoke_run_has_checkpoints_of_its_own(desk: Desk) -> None:
    """Those of the real run, at its last step already, do not concern it."""
    (desk.world.root / "results" / "step_100").mkdir(parents=True)
    assert {item.id for item in desk.plan_of(request_for(desk)).blocking} == {"C32"}
    plan = desk.plan_of(request_for(desk, kind="smoke"))
    assert plan.blocking == ()
    assert plan.submission.max_steps == 5


def test_a_smoke_run_takes_as_few_nodes_as_do(desk: Desk) -> None:
    wide = ("cluster.num_nodes=8",)
    assert desk.plan_of(request_for(desk, kind="smoke", nodes=None, overrides=wide)).options.nodes == 1
    assert desk.plan_of(request_for(desk, nodes=None, overrides=wide)).options.nodes == 8
    spread = (
        *wide,
        "policy.dtensor_cfg.tensor_parallel_size=8",
        "teacher.dtensor_cfg.tensor_parallel_size=8",
    )
    plan = desk.plan_of(request_for(desk, kind="smoke", nodes=None, overrides=spread))
    assert plan.options.nodes == 2
    assert plan.submission.spec.nodes == plan.request.nodes == 2


def test_a_smoke_run_goes_where_the_site_wants_tests(desk: Desk) -> None:
    devel = replace(BOOSTER, name="devel", default=False, max_time_s=7200, max_nodes=2)
    site = replace(SITE, smoke=SmokeTarget(partition="devel"))
    there = replace(desk, detection=replace(DETECTION, site=site, partitions=(BOOSTER, devel)))

    def place(where: Desk, **changes: object) -> tuple[str, str | None]:
        request = where.plan_of(request_for(where, **{"kind": "smoke", **changes})).options.slurm_request
        return request.partition, request.reservation

    assert place(there) == ("devel", None)
    assert place(there, kind="training") == place(there, time="3:00:00") == ("booster", None)
    assert place(there, nodes=4) == place(there, partition="booster") == ("booster", None)
    site = replace(SITE, smoke=SmokeTarget(reservation="devel", max_nodes=4, max_time_s=7200))
    reserved = replace(desk, detection=replace(DETECTION, site=site))
    assert place(reserved) == ("booster", "devel")
    assert place(reserved, time="3:00:00") == ("booster", None)
    assert place(reserved, reservation="mine") == ("booster", "mine")


def test_a_rehearsal_is_checked_for_where_it_is_placed_alone(desk: Desk) -> None:
    plan = desk.plan_of(request_for(desk, kind="rehearsal", overrides=("loss_fn.kl_type=revers",)))
    assert {item.id for item in plan.report.results} == {"C61", "C62"}
    assert (plan.blocking, plan.memory) == ((), None)
    wide = desk.plan_of(request_for(desk, kind="rehearsal", gpus_per_node=8))
    assert [item.id for item in wide.blocking] == ["C62"]


def at(seconds: float) -> str:
    return (datetime.now() + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def test_a_shorter_time_that_would_start_sooner(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, **{"08:00:00": at(90000), "04:00:00": at(7200), "02:00:00": at(1)})
    forecast = estimate_start(desk.plan_of(request_for(desk, time="8:00:00")), desk.store, desk.environment)
    assert (forecast.start, forecast.requested.now) == (desk.transport.answers["08:00:00"], False)
    assert [(item.time_s, item.now) for item in forecast.sooner] == [(14400, False), (7200, True)]


def test_what_starts_at_once_is_asked_for_once(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, **{"08:00:00": at(1)})
    forecast = estimate_start(desk.plan_of(request_for(desk, time="8:00:00")), desk.store, desk.environment)
    assert (forecast.requested.now, forecast.sooner) == (True, ())
    assert len([argv for argv in desk.transport.asked if argv[0] == "sbatch"]) == 1


def test_a_shorter_time_that_starts_no_sooner_is_not_told(tmp_path: Path) -> None:
    same = at(90000)
    desk = Desk.at(tmp_path, **{"00:30:00": same, "00:15:00": same})
    forecast = estimate_start(desk.plan_of(request_for(desk, time="30")), desk.store, desk.environment)
    assert forecast.sooner == ()
    assert not any("--time=00:07:30" in argv for argv in desk.transport.asked)


def test_the_driver_can_be_chosen(desk: Desk) -> None:
    other = desk.world.root / "examples" / "run_mine.py"
    other.write_text("")
    plan = desk.plan_of(request_for(desk, driver="examples/run_mine.py"))
    assert "examples/run_mine.py" in plan.submission.plans[0].environment["COMMAND"]
    assert any("run_mine.py, as requested" in note for note in plan.notes)
    with pytest.raises(InputError, match=r"has no 'examples/none\.py'"):
        desk.plan_of(request_for(desk, driver="examples/none.py"))


def test_one_finding_of_a_check_can_be_skipped(desk: Desk) -> None:
    site = replace(SITE, offline=True)
    offline = replace(desk, detection=replace(DETECTION, site=site))
    named = ("++policy.model_name=some/student", "++teacher.model_name=some/teacher")
    failing = {
        (item.id, item.where[0].key)
        for item in offline.plan_of(request_for(desk, overrides=named)).blocking
        if item.id == "C66" and item.where
    }
    assert ("C66", "policy.model_name") in failing
    skipped = offline.plan_of(request_for(desk, overrides=named, skip_checks=("c66:policy.model_name",)))
    left = {(item.id, item.where[0].key) for item in skipped.blocking if item.id == "C66" and item.where}
    assert left == failing - {("C66", "policy.model_name")}
    assert any(item.id == "C66" for item in skipped.submission.spec.skipped_checks)


@pytest.mark.parametrize("kind", ["a100_1g.5gb", "nvidia_h100_80gb_hbm3_3g.40gb", "1g.10gb"])
def test_a_model_over_several_mig_slices_is_refused(desk: Desk, kind: str) -> None:
    sliced = replace(BOOSTER, mix=(Mix(Gpus(4, kind), 2),))
    there = replace(desk, detection=replace(DETECTION, partitions=(sliced,)))
    with pytest.raises(InputError, match=f"MIG slices .{kind}.*TP 2"):
        there.plan_of(request_for(there, overrides=("++policy.dtensor_cfg.tensor_parallel_size=2",)))
    single = tuple(
        f"++{key}=1"
        for key in (
            "policy.dtensor_cfg.tensor_parallel_size",
            "teacher.dtensor_cfg.tensor_parallel_size",
            "policy.generation.vllm_cfg.tensor_parallel_size",
        )
    )
    assert there.plan_of(request_for(there, overrides=single)).partition == sliced


def test_a_fork_whose_script_has_another_name_is_a_checkout(desk: Desk) -> None:
    """The recipe lies in it; which script runs the recipe is the user's to say."""
    examples = desk.world.root / "examples"
    (examples / "run_distillation.py").rename(examples / "run_opsd.py")
    (desk.world.root / "nemo_rl" / "algorithms").mkdir(parents=True)
    del desk.environment["NEMO_RL_ROOT"]
    with pytest.raises(InputError, match="no driver script of a known name") as raised:
        desk.plan_of(request_for(desk))
    assert raised.value.fix == "--driver names it; there are examples/run_opsd.py."
    plan = desk.plan_of(request_for(desk, driver="examples/run_opsd.py"))
    assert "examples/run_opsd.py" in plan.submission.plans[0].environment["COMMAND"]
    assert plan.submission.spec.checkout == str(desk.world.root)


def test_the_checkout_of_a_recipe_s_parents_is_taken_where_the_recipe_lies_in_none(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("my recipes") / "mine.yaml"
    own.write_text(f"defaults: {desk.recipe}\n")
    del desk.environment["NEMO_RL_ROOT"]
    plan = desk.plan_of(request_for(desk, recipe=own))
    assert plan.submission.spec.checkout == str(desk.world.root)


def test_a_directory_of_runs_that_slurm_cannot_write_to_is_refused(desk: Desk) -> None:
    odd = replace(desk, world=replace(desk.world, root=desk.world.root / "a\\b"))
    with pytest.raises(InputError, match="backslash") as raised:
        odd.plan_of(request_for(desk))
    assert "storage.runs" in raised.value.fix
