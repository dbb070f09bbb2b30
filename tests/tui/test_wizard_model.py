"""What is typed in the wizard and what it means, without a screen."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.runs import RunStore
from launcher.transports.local import LocalTransport
from recipes.fields import FIELDS, table
from recipes.planning import Fix, RecipeEdit
from tests.tui.fakeslurm import LoginNode
from tui.screens.wizard.alternatives import choices_for, legal_sizes
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    WizardState,
    changes,
    errors,
    fields_of,
    note_on,
    order_of,
    step_state,
    steps_of,
    text_of,
    usual,
)

FIELD = {item.name: item for item in FIELDS}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    return LoginNode.at(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def lookout(node: LoginNode) -> DraftResolver:
    known = DraftResolver(RunStore(LocalTransport(), str(node.runs)), {**os.environ, **node.environment})
    known.ask_slurm()
    return known


def draft_of(node: LoginNode, **texts: str) -> WizardState:
    return WizardState({"recipe": str(node.recipe), **texts})


def seen_of(lookout: DraftResolver, draft: WizardState) -> DraftStatus:
    return lookout.glance(draft)


def value(name: str, draft: WizardState, seen: DraftStatus) -> str:
    return text_of(name, draft, seen)


def test_what_was_not_typed_follows_cluster_and_recipe(node: LoginNode, lookout: DraftResolver) -> None:
    draft = draft_of(node)
    seen = seen_of(lookout, draft)
    standing = {item.name: value(item.name, draft, seen) for item in FIELDS}
    assert standing == {
        "partition": "booster", "account": "distill", "qos": "", "reservation": "", "profile": "",
        "kind": "training", "recipe": str(node.recipe), "checkout": str(node.checkout),
        "student": "models/student", "teacher": "models/teacher", "nodes": "1", "time": "1-00:00:00",
        "chain": "1", "policy_tp": "2", "policy_cp": "1", "teacher_tp": "4", "teacher_cp": "1",
        "vllm_tp": "1", "prompts": "64", "global_batch": "32", "micro_batch": "1", "length": "2048",
        "steps": "100",
    }  # fmt: skip
    assert errors(draft, seen) == {}
    assert changes(draft, seen) == ()
    assert seen.checkout is not None
    assert seen.checkout.version == "0.4.0"


def test_time_follows_kind_and_partition(node: LoginNode, lookout: DraftResolver) -> None:
    for texts, wanted in (
        ({"partition": "devel"}, "02:00:00"), ({"kind": "smoke"}, "00:30:00"),
        ({"kind": "rehearsal"}, "00:10:00"), ({"partition": "closed"}, "01:00:00"),
    ):  # fmt: skip
        draft = draft_of(node, **texts)
        assert value("time", draft, seen_of(lookout, draft)) == wanted


def test_a_text_that_stands_there_anyway_is_not_kept(node: LoginNode, lookout: DraftResolver) -> None:
    seen = seen_of(lookout, draft_of(node))
    draft = WizardState().with_text("nodes", "2 ", usual("nodes", WizardState(), seen))
    assert draft.texts == {"nodes": "2"}
    assert draft.touched
    assert not draft.with_text("nodes", " 1", usual("nodes", draft, seen)).touched


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("nodes", "0", "whole number"),
        ("nodes", "two", "whole number"),
        ("chain", "", "is needed"),
        ("time", "soon", "no time"),
        ("time", "UNLIMITED", "no time"),
        ("policy_tp", "1.5", "whole number"),
        ("checkout", "/nowhere", "no NeMo-RL checkout"),
        ("checkout", "", "is needed"),
        ("recipe", "/nowhere.yaml", "nowhere.yaml"),
        ("student", "", "is needed"),
    ],
)
def test_errors_are_data(node: LoginNode, lookout: DraftResolver, name: str, text: str, says: str) -> None:
    draft = replace(draft_of(node), texts={**draft_of(node).texts, name: text})
    seen = seen_of(lookout, draft)
    assert says in errors(draft, seen)[name]
    assert note_on(FIELD[name], draft, seen).level == "error"
    (step,) = [step for step in STEPS if name in step.fields]
    assert step_state(step, draft, seen) == "error"
    assert lookout.look(draft, seen).proposal is None


@pytest.mark.parametrize(
    ("texts", "name", "says"),
    [
        ({"partition": "devel", "time": "3:00:00"}, "time", "devel: 02:00:00 at most"),
        ({"partition": "devel", "nodes": "3"}, "nodes", "devel gives 2 at most"),
        ({"partition": "devel", "account": "other"}, "account", "may not use devel"),
        ({"partition": "closed"}, "partition", "is down"),
    ],
)
def test_what_the_site_may_refuse_is_told_and_left_to_it(
    node: LoginNode, lookout: DraftResolver, texts: dict[str, str], name: str, says: str
) -> None:
    draft = draft_of(node, **texts)
    seen = seen_of(lookout, draft)
    assert note_on(FIELD[name], draft, seen).text == says
    assert note_on(FIELD[name], draft, seen).level == "warn"
    assert errors(draft, seen) == {}


def test_what_is_typed_becomes_an_order(node: LoginNode, lookout: DraftResolver) -> None:
    draft = replace(
        draft_of(node, partition="devel", account="distill", nodes="2", time="30", chain="3", profile="light",
                 kind="smoke", teacher_tp="2", student="Qwen/Qwen3-1.7B", qos="normal"),
        overrides=("loss_fn.kl_type=reverse",), skipped=("C64",),
    )  # fmt: skip
    order = order_of(draft, seen_of(lookout, draft))
    assert (order.recipe, order.kind, order.partition, order.account) == (
        node.recipe, "smoke", "devel", "distill"
    )  # fmt: skip
    assert (order.nodes, order.time, order.chain, order.qos, order.profile) == (2, "30", 3, "normal", "light")
    assert order.reservation is None
    assert order.overrides == (
        "loss_fn.kl_type=reverse",
        "++policy.model_name=Qwen/Qwen3-1.7B",
        "++teacher.dtensor_cfg.tensor_parallel_size=2",
    )
    assert order.skip_checks == ("C64",)


def test_a_rehearsal_asks_for_no_models_and_no_checkout(node: LoginNode, lookout: DraftResolver) -> None:
    draft = WizardState({"kind": "rehearsal", "checkout": "/nowhere"})
    seen = seen_of(lookout, draft)
    assert [step.id for step in steps_of(draft, seen)] == ["cluster", "recipe", "job", "review"]
    assert [item.name for item in fields_of(STEPS[1], draft, seen)] == ["kind", "recipe"]
    assert value("recipe", draft, seen) == "rehearsal.yaml"
    order = order_of(draft, seen)
    assert (order.checkout, order.recipe.name) == (None, "rehearsal.yaml")
    done = lookout.look(draft, seen)
    assert done.proposal is not None
    assert done.proposal.submission.spec.kind == "rehearsal"


def test_what_does_not_divide_is_said_at_once(node: LoginNode, lookout: DraftResolver) -> None:
    draft = draft_of(node, global_batch="30")
    seen = seen_of(lookout, draft)
    assert note_on(FIELD["global_batch"], draft, seen).level == "error"
    assert "30" in note_on(FIELD["global_batch"], draft, seen).text
    assert 32 in legal_sizes("global_batch", seen)
    assert 30 not in legal_sizes("global_batch", seen)
    assert legal_sizes("policy_tp", seen) == (1, 2, 4)


def test_another_vocabulary_is_said_at_once(node: LoginNode, lookout: DraftResolver) -> None:
    seen = seen_of(lookout, draft_of(node, student="Qwen/Qwen3-1.7B", teacher="meta-llama/Llama-3.1-8B"))
    assert seen.report is not None
    (result,) = seen.report.of("C64")
    assert (result.outcome, "151936" in result.message) == ("fail", True)
    offered = [choice.value for choice in choices_for("teacher", seen.draft, seen)]
    assert "Qwen/Qwen3-8B" in offered
    assert not [name for name in offered if "lama" in name]


def test_a_fix_goes_into_its_field_and_else_becomes_an_override(
    node: LoginNode, lookout: DraftResolver
) -> None:
    draft = draft_of(node)
    seen = seen_of(lookout, draft)
    fix = Fix("both", (RecipeEdit("policy.train_global_batch_size", 30, 32),
                       RecipeEdit("loss_fn.kl_type", "a", "mixed"),
                       RecipeEdit("cluster.num_nodes", 1, 2)))  # fmt: skip
    after = draft.with_fix(fix, seen)
    assert after.texts["global_batch"] == "32"
    assert after.texts["nodes"] == "2"
    assert after.overrides == ("++loss_fn.kl_type=mixed",)


def test_skipping_is_taken_back() -> None:
    draft = WizardState().with_skipped("C1").with_skipped("C2")
    assert draft.skipped == ("C1", "C2")
    assert draft.with_skipped("C1").skipped == ("C2",)


def test_choices_of_the_cluster(node: LoginNode, lookout: DraftResolver) -> None:
    draft = draft_of(node)
    seen = seen_of(lookout, draft)
    offered = {name: [choice.value for choice in choices_for(name, draft, seen)]
               for name in ("partition", "account", "qos", "profile", "kind")}  # fmt: skip
    assert offered == {
        "partition": ["booster", "devel", "closed"], "account": ["distill", "other"],
        "qos": ["", "normal", "low"], "profile": ["", "light"], "kind": ["training", "smoke", "rehearsal"],
    }  # fmt: skip
    assert "rehearsal.yaml" not in [choice.value for choice in choices_for("recipe", draft, seen)]


def test_a_glance_is_quick(node: LoginNode, lookout: DraftResolver) -> None:
    draft = draft_of(node, global_batch="30")
    seen_of(lookout, draft)
    begun = time.process_time()
    for size in range(1, 11):
        seen_of(lookout, draft_of(node, global_batch=str(size)))
    assert (time.process_time() - begun) / 10 < 0.06


def test_without_slurm_everything_but_submitting_is_told(tmp_path: Path) -> None:
    node = LoginNode.at(tmp_path / "node", slurm=False)
    known = DraftResolver(
        RunStore(LocalTransport(), str(node.runs)), {**node.environment, "PATH": str(node.root)}
    )
    known.ask_slurm()
    draft = draft_of(node)
    seen = known.look(draft, known.glance(draft))
    assert seen.no_slurm is not None
    assert "no Slurm here" in seen.no_slurm.what
    assert (seen.settled, seen.proposal, seen.problem) == (True, None, seen.no_slurm)
    assert seen.report is not None
    assert seen.report.ok


def test_the_documentation_lists_the_fields() -> None:
    text = (Path(__file__).parents[2] / "docs" / "wizard.md").read_text(encoding="utf-8")
    listed = text.partition("<!-- fields: python -m recipes.fields -->\n")[2].partition(
        "<!-- end of fields -->"
    )[0]
    assert listed.strip() == table().strip(), "put the output of `python -m recipes.fields` there"


def test_every_field_is_asked_for_once() -> None:
    asked = [name for step in STEPS for name in step.fields]
    assert sorted(asked) == sorted(FIELD)
