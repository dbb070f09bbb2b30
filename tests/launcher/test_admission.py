"""What a cluster takes: partitions with and without GPUs, their QoS and limits, the shell's own answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.clusters.admission import JobAdmission, not_listed, obstacles
from launcher.clusters.inventory import Detection, Gpus, Mix, QosLimits
from launcher.clusters.registry import cluster_of
from launcher.clusters.shell_defaults import submission_defaults
from launcher.clusters.slurm.answers import Answers, interpret
from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.clusters.slurm.detect import ask, detect
from launcher.errors import InputError
from launcher.request import SubmitRequest
from launcher.sites import Profile
from launcher.submit.complete import gpu_type_in
from launcher.submit.hints import MAY_REFUSE
from launcher.submit.submit import SubmissionPlan, estimate_start
from launcher.transports.base import Completed
from tests.launcher.ordering import BOOSTER, DETECTION, OTHER, SITE, Desk
from tests.slurm.scripted_machine import Machine

ROWS = "gpu*|up|1-00:00:00|8|gpu:a100:4(S:0-3)|96|2|24|idle\ncpu|up|infinite|20|(null)|96|2|24|idle"
RECORDS = "PartitionName=gpu\n   AllowQos={qos} MinNodes={least} QoS={own} MaxTime=1-00:00:00 State=UP"
ACCOUNTS = "c|first||normal,gpu|normal|first\nc|second||gpu|gpu|first"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path)


def plan_of(desk: Desk, detection: Detection, shell: Mapping[str, str], **changes: object) -> SubmissionPlan:
    defaults = submission_defaults(shell)
    there = replace(
        desk,
        detection=replace(detection, defaults=defaults),
        environment={**desk.environment, **shell},
    )
    request = SubmitRequest(desk.recipe, 1, "2:00:00")
    return there.plan_of(replace(request, **changes))  # type: ignore[arg-type]


def detected(
    qos: str = "ALL", least: str = "0", own: str = "N/A", limits: str = "", rows: str = ROWS
) -> Detection:
    records = RECORDS.format(qos=qos, least=least, own=own)
    answers = Answers("24.11.5", rows, records, ACCOUNTS, limits or None)
    return interpret(SITE, answers, "u")


# ------------------------------------------------------------ GPUs


def test_a_site_without_gres_gives_whole_nodes(desk: Desk) -> None:
    """The recipe says how many GPUs a node has, and none are asked for: sbatch would refuse that."""
    bare = replace(BOOSTER, mix=(Mix(Gpus(0, ""), 8),))
    plan = plan_of(desk, replace(DETECTION, partitions=(bare,)), {}, gpu_memory=40)
    assert plan.options.gpus_per_node == 4
    assert plan.blocking == ()
    assert plan.memory is not None
    assert plan.memory.gpu_gib == 40
    assert not [text for text in plan.submission.plans[0].argv if text.startswith("--gres")]
    assert plan.submission.plans[0].environment["GPUS_PER_NODE"] == "4"
    assert any("lists no GPUs here" in note for note in plan.notes)
    assert plan.submission.spec.slurm is not None
    assert plan.submission.spec.slurm.gres is False


def test_nodes_without_gpus_beside_others_are_refused(desk: Desk) -> None:
    processors = replace(BOOSTER, name="cpu", mix=(Mix(Gpus(0, ""), 8),))
    there = replace(DETECTION, partitions=(processors, replace(BOOSTER, name="gpu", default=False)))
    with pytest.raises(InputError, match="the nodes of cpu have no GPUs") as raised:
        plan_of(desk, there, {})
    assert raised.value.fix == "Give --partition; these have some: gpu."
    assert plan_of(desk, there, {}, kind="rehearsal").options.gpus_per_node == 0
    assert plan_of(desk, there, {}, gpus_per_node=4).options.gpus_per_node == 4


def test_the_few_nodes_with_gpus_of_a_partition_count(desk: Desk) -> None:
    mixed = replace(BOOSTER, nodes=28, mix=(Mix(Gpus(0, ""), 20), Mix(Gpus(4, "a100"), 8)))
    assert (mixed.gpus, mixed.gpu_nodes) == (Gpus(4, "a100"), 8)
    plan = plan_of(desk, replace(DETECTION, partitions=(mixed,)), {}, nodes=9)
    assert any("9 nodes are asked for, booster has 8 with GPUs" in note for note in plan.notes)


@pytest.mark.parametrize("odd", ["fpga:xilinx/u280:1", "bb:1.5T", "craynetwork:4,x y:1"])
def test_an_odd_resource_hides_no_partition(odd: str) -> None:
    detection = detected(rows=ROWS.replace("(null)", odd))
    assert [(item.name, item.gpus.count) for item in detection.partitions] == [("gpu", 4), ("cpu", 0)]


def test_a_list_of_scontrol_that_cannot_be_read_hides_no_partition() -> None:
    detection = interpret(SITE, Answers("24.11.5", ROWS, "what is this", ACCOUNTS), "u")
    assert [item.name for item in detection.partitions] == ["gpu", "cpu"]
    assert detection.accounts is not None
    assert any("what is this" in item.what for item in detection.problems)


def test_a_missing_sacctmgr_costs_the_accounts_alone() -> None:
    machine = Machine(
        sinfo=[Completed(0, "slurm 24.11.5\n", ""), Completed(0, ROWS, "")],
        scontrol=[Completed(0, RECORDS.format(qos="ALL", least=0, own="N/A"), "")],
        sacctmgr=["'sacctmgr' cannot be run: No such file or directory"],
    )
    detection = interpret(SITE, ask(SlurmClient(machine, {"USER": "u"}), 0.01), "u")
    assert [item.name for item in detection.partitions] == ["gpu", "cpu"]
    assert detection.accounts is None
    assert any("your accounts are unknown" in item.what for item in detection.problems)


# ------------------------------------------------------------ QoS and limits


def test_the_only_qos_that_a_partition_takes_is_chosen(desk: Desk) -> None:
    one = detected(qos="gpu,other")
    plan = plan_of(desk, one, {}, account="first")
    assert "--qos=gpu" in plan.submission.plans[0].argv
    plan = plan_of(desk, one, {}, account="second")  # its default QoS is taken
    assert not [text for text in plan.submission.plans[0].argv if text.startswith("--qos")]
    named = plan_of(desk, one, {}, account="first", qos="normal")
    assert any("gpu does not take the QoS normal; it takes gpu" in note for note in named.notes)
    several = replace(one, accounts=tuple(replace(item, qos=("gpu", "other")) for item in one.accounts or ()))
    notes = plan_of(desk, several, {}, account="first").notes
    assert any("--qos must name one of gpu, other" in note for note in notes)


def test_limits_of_gpus_and_least_nodes() -> None:
    """A QoS that limits GPUs limits nodes; `MinNodes` and MinTRES are limits from below."""
    limits = "part|12:00:00|gres/gpu=16||||node=2\nshort|00:30:00|cpu=96||||"
    detection = detected(own="part", limits=limits, least="1")
    gpu = detection.partition("gpu")
    assert gpu is not None
    assert (gpu.max_nodes, gpu.min_nodes, gpu.max_time_s) == (4, 2, 43200)
    job = JobAdmission("gpu", 1, 3600, "first", "short")
    assert list(obstacles(job, detection)) == [
        "1 node is asked for, gpu takes jobs of 2 and more",
        "01:00:00 are asked for, the QoS short gives a job 00:30:00",
    ]
    assert list(obstacles(replace(job, nodes=5, time_s=60), detection)) == [
        "5 nodes are asked for, gpu gives a job 4",
        "5 nodes are asked for, the QoS short gives a job 1",
    ]
    assert list(obstacles(replace(job, nodes=3, qos=None), detection)) == []


@pytest.mark.parametrize(
    ("limits", "nodes"),
    [
        (QosLimits(), None),
        (QosLimits(max_gpus=16), 4),
        (QosLimits(max_gpus=2), 1),  # a part of a node
        (QosLimits(max_gpus=32, max_nodes=3, max_cpus=192), 2),
    ],
)
def test_the_nodes_of_a_qos(limits: QosLimits, nodes: int | None) -> None:
    assert limits.nodes_of(BOOSTER) == nodes


def test_a_partition_that_is_not_listed() -> None:
    assert not_listed("booster", DETECTION) == ""
    assert "did you mean booster?" in not_listed("boster", DETECTION)
    assert "hidden ones are not listed" in not_listed("secret", DETECTION)


# ------------------------------------------------------------ the shell's own answers


def test_what_the_shell_answers_sbatch_with_is_taken(desk: Desk) -> None:
    shell = {
        "SBATCH_ACCOUNT": "second",
        "SBATCH_PARTITION": "other",
        "SBATCH_QOS": "long",
        "SBATCH_RESERVATION": "course",
        "SBATCH_TIMELIMIT": "30",
        "SLURM_ACCOUNT": "nobody",
    }
    plan = plan_of(desk, DETECTION, shell, time=None)
    given = {"--account=second", "--partition=other", "--qos=long", "--reservation=course", "--time=00:30:00"}
    assert given <= set(plan.submission.plans[0].argv)
    (note,) = (note for note in plan.notes if "from your shell" in note)
    assert all(name in note for name in shell if name != "SLURM_ACCOUNT")
    assert not [name for name in plan.submission.plans[0].environment if name.startswith("SBATCH_")]


def test_a_flag_and_a_profile_go_before_the_shell(desk: Desk) -> None:
    shell = {"SBATCH_ACCOUNT": "second", "SBATCH_QOS": "long"}
    site = replace(SITE, profiles={"p": Profile(qos="short")})
    plan = plan_of(desk, replace(DETECTION, site=site), shell, account="first", profile="p")
    assert {"--account=first", "--qos=short"} <= set(plan.submission.plans[0].argv)
    assert not [note for note in plan.notes if "shell" in note]


def test_an_account_of_the_shell_that_may_not_be_charged_is_told(desk: Desk) -> None:
    plan = plan_of(desk, DETECTION, {"SBATCH_ACCOUNT": "first", "SBATCH_PARTITION": "other"})
    assert "--account=second" in plan.submission.plans[0].argv
    assert any(
        "first (SBATCH_ACCOUNT of your shell) may not use other; second is charged" in n for n in plan.notes
    )
    silent = replace(DETECTION, accounts=None)  # accounting tells nothing: the shell knows
    plan = plan_of(desk, silent, {"SBATCH_ACCOUNT": "mine"})
    assert "--account=mine" in plan.submission.plans[0].argv


def test_a_smoke_run_goes_where_the_site_wants_tests_whatever_the_shell_says(desk: Desk) -> None:
    from launcher.sites import SmokeTarget

    there = replace(DETECTION, site=replace(SITE, smoke=SmokeTarget(partition="booster")))
    plan = plan_of(desk, there, {"SBATCH_PARTITION": "other"}, kind="smoke")
    assert plan.options.slurm_request.partition == "booster"
    assert OTHER in there.partitions


def test_variables_of_sbatch_that_are_not_used_are_told(desk: Desk) -> None:
    notes = plan_of(desk, DETECTION, {"SBATCH_CONSTRAINT": "a100&nvlink"}).notes
    assert notes == (
        "SBATCH_CONSTRAINT of your shell is not used; --sbatch-arg='--constraint=a100&nvlink' passes it on",
    )


def test_a_start_is_estimated_with_the_profile_s_arguments(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path, **{"02:00:00": "2026-01-01T00:00:00"})
    site = replace(SITE, profiles={"p": Profile(sbatch_args=("--constraint=a100",))})
    there = replace(desk, detection=replace(DETECTION, site=site))
    request = SubmitRequest(desk.recipe, 1, "2:00:00", profile="p", sbatch_args=("--nice",))
    estimate_start(there.plan_of(request), there.store, there.environment, shorter=False)
    (argv,) = (argv for argv in there.transport.asked if argv[0] == "sbatch")
    assert argv[-3:-1] == ("--constraint=a100", "--nice")


# ------------------------------------------------------------ several clusters under one accounting


def test_a_cluster_that_the_shell_names_gets_the_job_and_all_questions(desk: Desk) -> None:
    plan = plan_of(desk, DETECTION, {"SLURM_CLUSTERS": "wice"})
    (launch,) = plan.submission.plans
    assert "--clusters=wice" in launch.argv
    assert "SLURM_CLUSTERS" not in launch.environment  # the job itself is on that cluster
    assert plan.submission.spec.slurm is not None
    assert plan.submission.spec.slurm.cluster == "wice"
    machine = Machine(sinfo=[Completed(0, "CLUSTER: wice\ngpu|up\n", "")])
    client = SlurmClient(machine, {"USER": "u", "SLURM_CLUSTERS": "genius", "SBATCH_CLUSTERS": "wice"})
    assert client.ask(["sinfo"]) == "gpu|up\n"
    client.ask(["sacct", "-X"])
    assert machine.asked[-1] == ("sacct", "-M", "wice", "-X")
    assert [environment["SLURM_CLUSTERS"] for environment in machine.with_environment if environment] == [
        "wice"
    ] * 2


def test_a_run_is_followed_on_its_own_cluster_from_any_shell(desk: Desk) -> None:
    there = plan_of(desk, DETECTION, {"SLURM_CLUSTERS": "wice"}).submission
    here = plan_of(desk, DETECTION, {}).submission
    for spec, shell, named in (
        (there.spec, {}, "wice"),
        (there.spec, {"SLURM_CLUSTERS": "genius"}, "wice"),
        (here.spec, {"SLURM_CLUSTERS": "genius", "SBATCH_CLUSTERS": "genius"}, None),
    ):
        machine = Shell(shell)
        run = desk.store.create(spec.model_copy(update={"id": f"{spec.id}-{len(shell)}"}), {})
        cluster = cluster_of(run, machine)
        assert isinstance(cluster, SlurmCluster)
        assert cluster.client.environment.get("SLURM_CLUSTERS") == named
        cluster.queue.ask()
        assert (machine.with_environment[-1] or {}).get("SLURM_CLUSTERS") == named


class Shell(Machine):
    """A machine with a user's shell."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__()
        self.variables = variables

    def environment(self) -> Mapping[str, str]:
        return {"USER": "u", "XDG_CACHE_HOME": "/nonexistent", **self.variables}


@pytest.mark.parametrize("argument", ["--clusters=wice", "--cluster=wice", "-M", "-Mwice"])
def test_an_argument_for_another_cluster_is_refused(desk: Desk, argument: str) -> None:
    with pytest.raises(InputError, match="would not be found again") as raised:
        plan_of(desk, DETECTION, {}, sbatch_args=(argument,))
    assert "export SLURM_CLUSTERS=NAME" in raised.value.fix


@pytest.mark.parametrize("value", ["t4,c3,c4", "all"])
def test_several_clusters_are_the_login_nodes_own_and_that_is_told(tmp_path: Path, value: str) -> None:
    machine = Machine(sinfo=[Completed(0, "slurm 24.11.5\n", ""), Completed(0, ROWS, "")])
    detection = detect(machine, {"USER": "u", "SLURM_CLUSTERS": value}, tmp_path, budgets_s=0.01)
    assert not [env for env in machine.with_environment if env and "SLURM_CLUSTERS" in env]
    assert detection.defaults.cluster is None
    assert any(
        f"SLURM_CLUSTERS={value} of your shell names several" in item.what for item in detection.problems
    )


def test_cached_answers_are_of_the_cluster_that_is_named(tmp_path: Path) -> None:
    for name, nodes in (("wice", 5), ("genius", 6)):
        rows = ROWS.replace("|8|", f"|{nodes}|")
        machine = Machine(sinfo=[Completed(0, "slurm 24.11.5\n", ""), Completed(0, rows, "")])
        detection = detect(machine, {"USER": "u", "SLURM_CLUSTERS": name}, tmp_path, budgets_s=0.01)
        assert (detection.partitions[0].nodes, detection.cluster) == (nodes, name)


def test_options_that_a_site_refuses_are_left_out(desk: Desk) -> None:
    site = replace(SITE, sbatch_without=("mem", "exclusive"))
    argv = plan_of(desk, replace(DETECTION, site=site), {}).submission.plans[0].argv
    assert not [text for text in argv if text.startswith(("--mem", "--exclusive"))]
    assert {"--gres=gpu:4", "--requeue"} <= set(argv)


def test_building_the_environments_anew_in_the_job_is_told(desk: Desk) -> None:
    (note,) = plan_of(desk, DETECTION, {"NRL_FORCE_REBUILD_VENVS": "true"}).notes
    assert "--no-env NRL_FORCE_REBUILD_VENVS" in note
    assert plan_of(desk, DETECTION, {"NRL_FORCE_REBUILD_VENVS": "false"}).notes == ()


def test_a_partition_for_other_accounts_is_told_with_those_that_take_yours(desk: Desk) -> None:
    theirs = replace(BOOSTER, allowed=("theirs",))
    plan = plan_of(desk, replace(DETECTION, partitions=(theirs, OTHER)), {})
    (note,) = plan.notes
    assert note == (
        "Slurm may refuse the job: booster takes jobs of theirs only; partitions that take yours: other"
    )


def test_a_variable_of_a_path_that_the_shell_has_not_is_told(desk: Desk) -> None:
    (note,) = plan_of(desk, DETECTION, {}, env=("HF_HOME=$NOPE/hf",)).notes
    assert note == "HF_HOME of the job is $NOPE/hf: your shell has no such variable"


@pytest.mark.parametrize(
    ("argument", "kind"),
    [
        ("--gres=gpu:h100:4", "h100"),
        ("--gres=nvme:100,gpu:H100:4", "H100"),
        ("--gpus-per-node=h100:4", "h100"),
        ("--gres=gpu:nvidia_h100_80gb_hbm3:4", "nvidia_h100_80gb_hbm3"),
        ("--gres=gpu:4", ""),
        ("--gpus-per-node=4", ""),
        ("--constraint=h100", ""),
    ],
)
def test_the_type_of_gpu_that_an_argument_asks_for(argument: str, kind: str) -> None:
    request = SubmitRequest(Path("r"), 1, sbatch_args=("--nice", argument))
    assert gpu_type_in(request, SITE) == kind


def test_nodes_with_different_gpus(desk: Desk) -> None:
    """Without a type the job may get any of them; with one, its number and memory count."""
    mixed = replace(BOOSTER, mix=(Mix(Gpus(8, "v100"), 6), Mix(Gpus(4, "a100"), 2)))
    there = replace(DETECTION, partitions=(mixed,))
    (note, *_) = (text for text in plan_of(desk, there, {}).notes if "different GPUs" in text)
    assert "(v100, a100)" in note
    assert "--sbatch-arg=--gres=gpu:TYPE:8" in note
    plan = plan_of(desk, there, {}, sbatch_args=("--gres=gpu:a100:4",))
    assert plan.options.gpus_per_node == 4
    assert plan.memory is not None
    assert plan.memory.gpu_gib == 40
    assert plan.notes == ()
    assert plan.submission.plans[0].argv[-2] == "--gres=gpu:a100:4"


def test_a_partition_that_is_not_there_is_told_as_a_doubt(desk: Desk) -> None:
    notes = plan_of(desk, DETECTION, {}, partition="boster").notes
    assert any(note.startswith(f"{MAY_REFUSE}there is no partition boster; did you mean") for note in notes)
