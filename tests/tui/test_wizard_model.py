"""What is typed in the wizard and what it means, without a screen."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.clusters.inventory import SubmissionDefaults
from launcher.fields import FIELDS, table
from launcher.runs import RunStore
from launcher.sites import Profile, SmokeTarget
from launcher.submit.complete import smoke_target, time_limit_of
from launcher.submit.submit import send
from launcher.transports.local import LocalTransport
from recipes.planning import Fix, RecipeEdit
from tests.tui.fakeslurm import LoginNode
from tui.screens.wizard.alternatives import choices_for, legal_sizes
from tui.screens.wizard.draft_request import recipe_overrides, request_of
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.findings import DraftFinding, assess
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    WizardState,
    default_text,
    fields_of,
    lacks_gpu_memory,
    partition_of,
    step_of,
    steps_of,
    text_of,
)
from tui.screens.wizard.pages import summary
from tui.screens.wizard.state_changes import with_fix
from tui.screens.wizard.validation import errors, warning_in

FIELD = {item.name: item for item in FIELDS}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    return LoginNode.at(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def resolver(node: LoginNode) -> DraftResolver:
    resolver = DraftResolver(RunStore(LocalTransport(), str(node.runs)), {**os.environ, **node.environment})
    resolver.ask_slurm()
    return resolver


def wizard_state_of(node: LoginNode, **texts: str) -> WizardState:
    return WizardState({"recipe": str(node.recipe), **texts})


def status_of(resolver: DraftResolver, state: WizardState) -> DraftStatus:
    return resolver.quick_status(state)


def value(name: str, state: WizardState, status: DraftStatus) -> str:
    return text_of(name, state, status)


def noted(name: str, state: WizardState, status: DraftStatus) -> DraftFinding:
    return assess(state, status).on_field(name)[0]


def test_what_was_not_typed_follows_cluster_and_recipe(node: LoginNode, resolver: DraftResolver) -> None:
    state = wizard_state_of(node)
    status = status_of(resolver, state)
    standing = {item.name: value(item.name, state, status) for item in FIELDS if item.step}
    assert standing == {
        "partition": "booster", "account": "distill", "qos": "", "reservation": "", "profile": "",
        "kind": "training", "recipe": str(node.recipe), "checkout": str(node.checkout),
        "student": "models/student", "teacher": "models/teacher", "nodes": "1", "gpu_memory": "",
        "time": "1-00:00:00",
        "chain": "1", "modules": "", "env_file": "", "env": "", "no_env": "", "sbatch_args": "",
        "policy_tp": "2", "policy_cp": "1", "teacher_tp": "4", "teacher_cp": "1",
        "vllm_tp": "1", "prompts": "64", "global_batch": "32", "micro_batch": "1", "length": "2048",
        "steps": "100",
        "kl_type": "mixed", "kl_mix": "0.5", "topk": "64", "policy_pp": "", "teacher_pp": "",
        "generation": "colocated", "generation_gpus": "", "generation_nodes": "",
        "checkpoint_activations": "true", "cpu_offload": "false", "generations": "1",
        "generation_batch": "32", "temperature": "1.0", "lr": "1e-05", "schedule": "constant", "warmup": "0",
        "gpus_per_node": "4", "launcher": "ray_bare", "container": "", "mounts": "",
        "data_set": "ResponseDataset", "validation_set": "ResponseDataset", "val_period": "10",
        "val_samples": "64", "save_period": "10", "keep_checkpoints": "2", "checkpoint_dir": "results",
        "log_dir": "logs", "wandb": "off", "wandb_project": "one", "wandb_name": "",
    }  # fmt: skip
    assert errors(state, status) == {}
    assert recipe_overrides(state, status) == ()
    assert status.checkout is not None
    assert status.checkout.version == "0.4.0"


def test_the_profile_answers_what_was_not_typed(node: LoginNode, resolver: DraftResolver) -> None:
    status = status_of(resolver, wizard_state_of(node))
    assert status.detection is not None
    profile = Profile(partition="devel", account="other", time="30m", nodes=2, reservation="r", qos="low")
    site = replace(status.detection.site, profiles={"debug": profile})
    status = replace(status, detection=replace(status.detection, site=site))
    state = wizard_state_of(node, profile="debug")
    names = ("partition", "account", "time", "nodes", "reservation", "qos", "chain")
    assert [value(name, state, status) for name in names] == ["devel", "other", "30m", "2", "r", "low", "1"]
    typed = wizard_state_of(node, profile="debug", partition="booster", time="1:00:00")
    assert [value(name, typed, status) for name in names[:4]] == ["booster", "other", "1:00:00", "2"]
    request = request_of(typed, status)
    assert (request.partition, request.account, request.nodes) == ("booster", "other", 2)
    odd = replace(site, profiles={"debug": Profile(partition="nowhere")})
    status = replace(status, detection=replace(status.detection, site=odd)) if status.detection else status
    assert value("partition", state, status) == "nowhere"


def test_time_follows_kind_and_partition(node: LoginNode, resolver: DraftResolver) -> None:
    for texts, expected in (
        ({"partition": "devel"}, "02:00:00"), ({"kind": "smoke"}, "00:30:00"),
        ({"kind": "rehearsal"}, "00:10:00"), ({"partition": "closed"}, "01:00:00"),
    ):  # fmt: skip
        state = wizard_state_of(node, **texts)
        assert value("time", state, status_of(resolver, state)) == expected


def with_smoke_target(status: DraftStatus, target: SmokeTarget) -> DraftStatus:
    assert status.detection is not None
    site = replace(status.detection.site, smoke=target)
    return replace(status, detection=replace(status.detection, site=site))


@pytest.mark.parametrize(
    ("texts", "target", "partition", "reservation"),
    [
        ({"kind": "smoke"}, SmokeTarget(partition="devel"), "devel", ""),
        ({"kind": "training"}, SmokeTarget(partition="devel"), "booster", ""),
        ({"kind": "rehearsal"}, SmokeTarget(partition="devel"), "booster", ""),
        ({"kind": "smoke", "partition": "booster"}, SmokeTarget(partition="devel"), "booster", ""),
        ({"kind": "smoke", "nodes": "3"}, SmokeTarget(partition="devel"), "booster", ""),
        ({"kind": "smoke", "time": "3h"}, SmokeTarget(partition="devel"), "booster", ""),
        ({"kind": "smoke", "time": "1h"}, SmokeTarget(partition="devel"), "devel", ""),
        ({"kind": "smoke", "time": "soon"}, SmokeTarget(partition="devel"), "devel", ""),
        ({"kind": "smoke"}, SmokeTarget(), "booster", ""),
        ({"kind": "smoke"}, SmokeTarget(reservation="tests", max_nodes=4), "booster", "tests"),
        ({"kind": "smoke", "nodes": "5"}, SmokeTarget(reservation="tests", max_nodes=4), "booster", ""),
    ],
)
def test_a_smoke_run_goes_to_the_partition_for_tests(
    node: LoginNode,
    resolver: DraftResolver,
    texts: dict[str, str],
    target: SmokeTarget,
    partition: str,
    reservation: str,
) -> None:
    state = wizard_state_of(node, **texts)
    status = with_smoke_target(status_of(resolver, state), target)
    assert value("partition", state, status) == partition
    assert value("reservation", state, status) == reservation
    chosen = partition_of(state, status)
    assert chosen is not None
    assert chosen.name == partition
    request = replace(request_of(state, status), partition=None, reservation=None)
    if "partition" not in texts and texts.get("time") != "soon":
        own = smoke_target(status.detection, request.nodes or 1, time_limit_of(request.time))  # type: ignore[arg-type]
        expected = own if texts["kind"] == "smoke" and own is not None else ("booster", None)
        assert (partition, reservation or None) == expected


def test_a_text_that_stands_there_anyway_is_not_kept(node: LoginNode, resolver: DraftResolver) -> None:
    status = status_of(resolver, wizard_state_of(node))
    state = WizardState().with_text("nodes", "2 ", default_text("nodes", WizardState(), status))
    assert state.texts == {"nodes": "2"}
    assert state.touched
    assert not state.with_text("nodes", " 1", default_text("nodes", state, status)).touched


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("nodes", "0", "whole number"),
        ("nodes", "two", "whole number"),
        ("chain", "", "required"),
        ("time", "soon", "invalid time limit"),
        ("time", "UNLIMITED", "invalid time limit"),
        ("time", "0:5", "0:5 is 5 seconds in Slurm: write 5m or 00:05:00"),
        ("policy_tp", "1.5", "whole number"),
        ("checkout", "/nowhere", "not a NeMo-RL checkout"),
        ("checkout", "", "required"),
        ("recipe", "/nowhere.yaml", "nowhere.yaml"),
        ("student", "", "required"),
    ],
)
def test_errors_are_data(node: LoginNode, resolver: DraftResolver, name: str, text: str, says: str) -> None:
    state = replace(wizard_state_of(node), texts={**wizard_state_of(node).texts, name: text})
    status = status_of(resolver, state)
    assert says in errors(state, status)[name]
    assert noted(name, state, status).level == "error"
    (step,) = [step for step in STEPS if name in step.fields]
    assert assess(state, status).level_of_step(step.id) == "error"
    assert resolver.full_status(state, status).plan is None


@pytest.mark.parametrize(
    ("texts", "name", "says"),
    [
        ({"partition": "devel", "time": "3:00:00"}, "time", "devel: 02:00:00 at most"),
        ({"partition": "devel", "account": "other"}, "account", "may not use devel"),
        ({"partition": "closed"}, "partition", "is down"),
    ],
)
def test_what_the_site_may_refuse_is_told_and_left_to_it(
    node: LoginNode, resolver: DraftResolver, texts: dict[str, str], name: str, says: str
) -> None:
    state = wizard_state_of(node, **texts)
    status = status_of(resolver, state)
    assert noted(name, state, status).text == says
    assert noted(name, state, status).level == "warn"
    assert errors(state, status) == {}


def test_the_worst_finding_is_the_one_that_a_field_shows(node: LoginNode, resolver: DraftResolver) -> None:
    state = wizard_state_of(node, partition="devel", nodes="3")
    status = status_of(resolver, state)
    assert warning_in(FIELD["nodes"], state, status) == "devel allows at most 2"
    assert noted("nodes", state, status).text == "C61 the recipe asks for 3 nodes, there are 2"
    assert assess(state, status).level_of_step("job") == "error"
    assert errors(state, status) == {}


@pytest.mark.parametrize(
    ("max_nodes", "nodes", "warning"),
    [(2, "2", ""), (2, "3", "booster allows at most 2"), (None, "8", ""),
     (None, "9", "booster allows at most 8"),
     (20, "9", "booster allows at most 8")],
)  # fmt: skip
def test_the_limit_of_nodes_is_the_narrower_of_the_partition_s_size_and_its_limit(
    node: LoginNode, resolver: DraftResolver, max_nodes: int | None, nodes: str, warning: str
) -> None:
    state = wizard_state_of(node, partition="booster", nodes=nodes)
    status = status_of(resolver, state)
    assert status.detection is not None
    partition = status.detection.partition("booster")
    assert partition is not None
    assert (partition.nodes, partition.max_nodes) == (8, None)
    detection = replace(status.detection, partitions=(replace(partition, max_nodes=max_nodes),))
    assert warning_in(FIELD["nodes"], state, replace(status, detection=detection)) == warning


def test_what_is_typed_becomes_a_request(node: LoginNode, resolver: DraftResolver) -> None:
    state = replace(
        wizard_state_of(node, partition="devel", account="distill", nodes="2", time="30", chain="3",
                 profile="light", kind="smoke", teacher_tp="2", student="Qwen/Qwen3-1.7B", qos="normal"),
        overrides=("loss_fn.kl_type=reverse",), skipped=("C64",),
    )  # fmt: skip
    request = request_of(state, status_of(resolver, state))
    assert (request.recipe, request.kind, request.partition, request.account) == (
        node.recipe, "smoke", "devel", "distill"
    )  # fmt: skip
    assert (request.nodes, request.time, request.chain, request.qos, request.profile) == (
        2,
        "30",
        3,
        "normal",
        "light",
    )
    assert request.reservation is None
    assert request.overrides == (
        "loss_fn.kl_type=reverse",
        "++policy.model_name=Qwen/Qwen3-1.7B",
        "++teacher.dtensor_cfg.tensor_parallel_size=2",
    )
    assert request.skip_checks == ("C64",)


def test_a_rehearsal_asks_for_no_models_and_no_checkout(node: LoginNode, resolver: DraftResolver) -> None:
    state = WizardState({"kind": "rehearsal", "checkout": "/nowhere"})
    status = status_of(resolver, state)
    assert [step.id for step in steps_of(state, status)] == ["cluster", "models", "job", "review"]
    assert [item.name for item in fields_of(STEPS[1], state, status)] == ["kind", "recipe"]
    assert value("recipe", state, status) == "rehearsal.yaml"
    request = request_of(state, status)
    assert (request.checkout, request.recipe.name) == (None, "rehearsal.yaml")
    done = resolver.full_status(state, status)
    assert done.plan is not None
    assert done.plan.submission.spec.kind == "rehearsal"


def test_what_does_not_divide_is_said_at_once(node: LoginNode, resolver: DraftResolver) -> None:
    state = wizard_state_of(node, global_batch="30")
    status = status_of(resolver, state)
    assert noted("global_batch", state, status).level == "error"
    assert "30" in noted("global_batch", state, status).text
    assert 32 in legal_sizes("global_batch", status)
    assert 30 not in legal_sizes("global_batch", status)
    assert legal_sizes("policy_tp", status) == (1, 2, 4)


def test_another_vocabulary_is_said_at_once(node: LoginNode, resolver: DraftResolver) -> None:
    status = status_of(
        resolver, wizard_state_of(node, student="Qwen/Qwen3-1.7B", teacher="meta-llama/Llama-3.1-8B")
    )
    assert status.report is not None
    (result,) = status.report.of("C64")
    assert (result.outcome, "151936" in result.message) == ("fail", True)
    offered = [choice.value for choice in choices_for("teacher", status.state, status)]
    assert "Qwen/Qwen3-8B" in offered
    assert not [name for name in offered if "lama" in name]


def test_a_fix_goes_into_its_field_and_else_becomes_an_override(
    node: LoginNode, resolver: DraftResolver
) -> None:
    state = wizard_state_of(node)
    status = status_of(resolver, state)
    fix = Fix("both", (RecipeEdit("policy.train_global_batch_size", 30, 32),
                       RecipeEdit("loss_fn.zero_outside_topk", True, False),
                       RecipeEdit("cluster.num_nodes", 1, 2)))  # fmt: skip
    after = with_fix(state, fix, status)
    assert after.texts["global_batch"] == "32"
    assert after.texts["nodes"] == "2"
    assert after.overrides == ("++loss_fn.zero_outside_topk=false",)


def test_skipping_is_taken_back() -> None:
    state = WizardState().with_skipped("C1").with_skipped("C2")
    assert state.skipped == ("C1", "C2")
    assert state.with_skipped("C1").skipped == ("C2",)


def test_choices_of_the_cluster(node: LoginNode, resolver: DraftResolver) -> None:
    state = wizard_state_of(node)
    status = status_of(resolver, state)
    offered = {name: [choice.value for choice in choices_for(name, state, status)]
               for name in ("partition", "account", "qos", "profile", "kind")}  # fmt: skip
    assert offered == {
        "partition": ["booster", "devel", "closed"], "account": ["distill", "other"],
        "qos": ["", "normal", "low"], "profile": ["", "light"], "kind": ["training", "smoke", "rehearsal"],
    }  # fmt: skip
    assert "rehearsal.yaml" not in [choice.value for choice in choices_for("recipe", state, status)]


def test_the_quick_status_is_quick(node: LoginNode, resolver: DraftResolver) -> None:
    state = wizard_state_of(node, global_batch="30")
    status_of(resolver, state)
    begun = time.process_time()
    for size in range(1, 11):
        status_of(resolver, wizard_state_of(node, global_batch=str(size)))
    assert (time.process_time() - begun) / 10 < 0.06


def test_without_slurm_everything_but_submitting_is_told(tmp_path: Path) -> None:
    node = LoginNode.at(tmp_path / "node", slurm=False)
    resolver = DraftResolver(
        RunStore(LocalTransport(), str(node.runs)), {**node.environment, "PATH": str(node.root)}
    )
    resolver.ask_slurm()
    state = wizard_state_of(node)
    status = resolver.full_status(state, resolver.quick_status(state))
    assert status.slurm_error is not None
    assert "no Slurm here" in status.slurm_error.what
    assert (status.settled, status.plan, status.plan_error) == (True, None, status.slurm_error)
    assert status.report is not None
    assert status.report.ok


def test_the_documentation_lists_the_fields() -> None:
    text = (Path(__file__).parents[2] / "docs" / "wizard.md").read_text(encoding="utf-8")
    listed = text.partition("<!-- fields: python -m launcher.fields -->\n")[2].partition(
        "<!-- end of fields -->"
    )[0]
    assert listed.strip() == table().strip(), "put the output of `python -m launcher.fields` there"


def test_every_field_is_asked_for_once() -> None:
    asked = [name for step in STEPS for name in step.fields]
    assert sorted(asked) == sorted(name for name, row in FIELD.items() if row.step)


def test_unknown_gpu_memory_is_asked_for_and_remembered(tmp_path: Path) -> None:
    node = LoginNode.at(tmp_path / "node")
    (node.root / "config" / "distill-tui" / "site.toml").unlink()
    environment = {**os.environ, **node.environment}
    store = RunStore(LocalTransport(), str(node.runs))
    resolver = DraftResolver(store, environment)
    resolver.ask_slurm()
    state = wizard_state_of(node)
    status = status_of(resolver, state)
    assert status.memory is None
    assert "gpu_memory" in [item.name for item in fields_of(step_of("job"), state, status)]
    assert noted("gpu_memory", state, status).level == "warn"
    assert "✓" not in summary(status, assess(state, status)).plain
    state = wizard_state_of(node, gpu_memory="40")
    status = status_of(resolver, state)
    assert status.memory is not None
    assert status.memory.gpu_gib == 40
    assert assess(state, status).on_field("gpu_memory") == ()
    done = resolver.full_status(state, status)
    assert done.plan is not None
    assert done.plan.memory is not None
    send(done.plan, store, environment, confirmed=True)
    again = DraftResolver(store, environment)
    again.ask_slurm()
    state = wizard_state_of(node)
    status = status_of(again, state)
    assert status.memory is not None
    assert "gpu_memory" not in [item.name for item in fields_of(step_of("job"), state, status)]


def test_a_slurm_that_lists_no_gpus_leaves_their_number_to_the_recipe(
    node: LoginNode, resolver: DraftResolver
) -> None:
    state = wizard_state_of(node)
    status = status_of(resolver, state)
    assert status.detection is not None
    partitions = tuple(replace(item, mix=(), min_nodes=3) for item in status.detection.partitions)
    bare = replace(status, detection=replace(status.detection, partitions=partitions))
    assert status.recipe is not None
    assert text_of("gpus_per_node", state, bare) == str(status.recipe.get("cluster.gpus_per_node"))
    assert lacks_gpu_memory(state, bare)
    assert "takes jobs of 3 and more" in warning_in(FIELD["nodes"], wizard_state_of(node, nodes="2"), bare)


def test_what_the_shell_answers_sbatch_with_is_the_default(node: LoginNode, resolver: DraftResolver) -> None:
    state = wizard_state_of(node)
    status = status_of(resolver, state)
    assert status.detection is not None
    defaults = SubmissionDefaults(partition=status.detection.partitions[-1].name, account="mine")
    open_ones = tuple(replace(item, allowed=None) for item in status.detection.partitions)
    detection = replace(status.detection, defaults=defaults, accounts=None, partitions=open_ones)
    told = replace(status, detection=detection)
    assert text_of("partition", state, told) == defaults.partition
    assert text_of("account", state, told) == "mine"
