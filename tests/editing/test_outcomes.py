"""Chosen values as a new recipe or as lines of the file: what they mean, and that nothing else changes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.fields.field_values import all_changes
from recipes.checks import Checker, ClusterRequest, Inputs
from recipes.compare import differences
from recipes.editing.outcomes import (
    ChosenValues,
    child,
    child_name,
    child_places,
    child_text,
    free_path,
    into_file,
)
from recipes.errors import RecipeError
from recipes.inheritance import EffectiveRecipe, resolve
from recipes.known_keys import known_keys
from recipes.library import DIRECTORY
from recipes.planning import Setup
from tests.checks.releases import RELEASES, release, stock_recipes
from tests.launcher.field_samples import COMPOUND_SAMPLES, RECIPE_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STARTING = DIRECTORY / "qwen3-1.7b-from-4b.yaml"
OWN = """\
# mine
defaults: base.yaml

policy:   # the student
    model_name: "a/Student-1B"   # small
    dtensor_cfg: {tensor_parallel_size: 2, cpu_offload: false}
"""
BASE = """\
policy: &P
  model_name: a/b
  max_total_sequence_length: 8192
  tokenizer: {name: "${..model_name}"}
  list: [1, 2]
teacher:
  <<: *P
  model_name: c/Teacher-4B
cluster: {num_nodes: 1, gpus_per_node: 8}
distillation: {num_prompts_per_step: 128}
"""
TEMPLATE: Mapping[str, str] = {
    "student": "<YOUR_STUDENT_MODEL>", "teacher": "<YOUR_TEACHER_MODEL>", "length": "4096",
    "global_batch": "16", "generation_batch": "16", "policy_tp": "1", "policy_cp": "1",
    "checkpoint_activations": "true", "vllm_tp": "2", "generation": "split", "generation_gpus": "2",
    "teacher_tp": "1", "teacher_cp": "1", "data_set": "DeepScaler", "validation_set": "AIME2024",
    "prompts": "16", "steps": "100", "log_dir": "logs/my-distillation",
    "wandb_project": "nemo-distillation", "wandb_name": "my-distillation-1n4g",
}  # fmt: skip
"""Choices that make the recipe which the first users wrote by hand."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "own.yaml").write_text(OWN)
    return tmp_path / "own.yaml"


def chosen(path: Path, *overrides: str) -> ChosenValues:
    return ChosenValues.of(resolve(path), resolve(path, overrides))


def stock(shared: Path, tmp_path: Path) -> Path:
    """Copy NeMo-RL's base recipe to its place in a checkout."""
    target = tmp_path / "examples/configs/distillation_math.yaml"
    (target.parent / "recipes/llm").mkdir(parents=True)
    source = shared / "corpus/nemo-rl/examples/configs/distillation_math.yaml"
    target.write_bytes(source.read_bytes())
    return target


def by_choices(base: EffectiveRecipe, texts: Mapping[str, str], nodes: int, gpus: int) -> list[str]:
    changes = all_changes(texts, base, nodes=nodes, gpus_per_node=gpus)
    sizes = [f"++cluster.num_nodes={nodes}", f"++cluster.gpus_per_node={gpus}"]
    return [*(text for change in changes for text in change.overrides()), *sizes]


def test_a_child_has_only_what_differs(own: Path) -> None:
    made = child(
        chosen(own, "policy.model_name=a/Other", "++policy.new.deep=[1,{a: b}]", "cluster.num_nodes=1"),
        own.parent / "deeper.yaml",
        header="Tried on Monday.\nTwice.",
    )
    assert made.text == (
        "# Tried on Monday.\n# Twice.\n# Based on own.yaml: write only what differs from it.\n"
        "defaults: own.yaml\n\npolicy:\n  model_name: a/Other\n  new:\n    deep:\n      - 1\n      - a: b\n"
    )
    made.write()
    assert resolve(made.path).get("policy.tokenizer.name") == "a/Other"
    with pytest.raises(RecipeError, match="exists already"):
        made.write()
    with pytest.raises(RecipeError, match="exists already"):
        child(chosen(own, "policy.model_name=x"), own)


def test_a_child_cannot_take_keys_away(own: Path) -> None:
    with pytest.raises(RecipeError, match=r"cannot take keys away: policy\.list"):
        child_text(chosen(own, "~policy.list"), own.parent / "c.yaml")


def test_saving_into_the_file_changes_the_chosen_lines_alone(own: Path) -> None:
    made = into_file(chosen(own, "policy.model_name=a/Other", "policy.dtensor_cfg.tensor_parallel_size=4"))
    changed = [line for line in made.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [
        '-    model_name: "a/Student-1B"   # small',
        "-    dtensor_cfg: {tensor_parallel_size: 2, cpu_offload: false}",
        '+    model_name: "a/Other"   # small',
        "+    dtensor_cfg: {tensor_parallel_size: 4, cpu_offload: false}",
    ]
    own.write_text(OWN + "# somebody else was here\n")
    with pytest.raises(RecipeError, match="changed"):
        made.write()


def test_an_anchor_does_not_carry_a_choice_to_the_teacher(own: Path) -> None:
    base = own.parent / "base.yaml"
    made = into_file(chosen(base, "policy.max_total_sequence_length=512", "~policy.list"))
    made.write()
    recipe = resolve(base)
    assert recipe.get("policy.max_total_sequence_length") == 512
    assert recipe.get("teacher.max_total_sequence_length") == 8192
    assert not recipe.has("policy.list")
    assert recipe.get("teacher.list") == [1, 2]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            (
                "policy.model_name=x/y",
                "policy.list=[3]",
                "++policy.dtensor_cfg.new=null",
                "~cluster",
                "policy.dtensor_cfg.tensor_parallel_size=8",
                "teacher.model_name='${policy.model_name}'",
                "++a.b.c={d: 1}",
                "policy.max_total_sequence_length=16",
                "~policy.dtensor_cfg.cpu_offload",
            )
        ),
        unique=True,
        max_size=5,
    )
)
def test_outcomes_mean_what_was_chosen(
    tmp_path_factory: pytest.TempPathFactory, overrides: Sequence[str]
) -> None:
    directory = tmp_path_factory.mktemp("outcomes")
    (directory / "base.yaml").write_text(BASE)
    (directory / "own.yaml").write_text(OWN)
    choice = chosen(directory / "own.yaml", *overrides)
    meant = resolve(directory / "own.yaml", overrides).values
    assert resolve(directory / "own.yaml", choice.overrides()).values == meant
    removes = any(text.startswith("~") for text in overrides)
    if not removes:
        child(choice, directory / "child.yaml").write()
        assert resolve(directory / "child.yaml").values == meant
    try:
        into_file(choice).write()
    except RecipeError:
        assert removes  # a key that only the parent has cannot be taken away here
    else:
        assert resolve(directory / "own.yaml").values == meant


def test_names_are_those_of_stock_recipes_and_never_taken(own: Path) -> None:
    assert child_name(resolve(STARTING), 2, 4) == "distillation-qwen3-1.7b-base-from-qwen3-4b-2n4g.yaml"
    recipe = resolve(own, ["policy.model_name='/models/My Student_v2/'"])
    assert child_name(recipe) == "distillation-my-student-v2-from-teacher-4b-1n8g.yaml"
    assert free_path(own.parent, "new.yaml").name == "new.yaml"
    (own.parent / "own-2.yaml").symlink_to("nowhere")
    assert free_path(own.parent, "own.yaml").name == "own-3.yaml"


def test_places_for_a_child_can_be_written(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = own.parent / "checkout"
    (checkout / "examples/configs/recipes/llm").mkdir(parents=True)
    monkeypatch.chdir(own.parent)
    assert [item.title for item in child_places(own, checkout)] == ["NeMo-RL's recipes", "beside the recipe"]
    assert [item.title for item in child_places(STARTING, None)] == ["this directory"]


def test_the_template_of_the_first_users_is_made_by_choices(shared: Path, tmp_path: Path) -> None:
    base = resolve(stock(shared, tmp_path))
    edited = resolve(base.path, by_choices(base, TEMPLATE, nodes=1, gpus=4))
    directory = base.path.parent / "recipes/llm"
    template = directory / "my-distillation-1n4g.yaml"
    template.write_bytes((shared / "seed-template" / template.name).read_bytes())
    made = child(ChosenValues.of(base, edited), directory / "made.yaml")
    made.write()
    assert list(differences(resolve(template).values, resolve(made.path).values)) == []
    assert "defaults: ../../distillation_math.yaml\n" in made.text


def test_its_scale_out_needs_two_more_keys(shared: Path, tmp_path: Path) -> None:
    base = resolve(stock(shared, tmp_path))
    texts = {**TEMPLATE, "student": "Qwen/Qwen3-1.7B", "teacher": "Qwen/Qwen3-4B"}
    small = resolve(base.path, by_choices(base, texts, nodes=1, gpus=4))
    path = base.path.parent / "recipes/llm/made.yaml"
    child(ChosenValues.of(base, small), path).write()
    larger = ["cluster.num_nodes=2", "cluster.gpus_per_node=4", "distillation.num_prompts_per_step=32",
              "teacher.dtensor_cfg.tensor_parallel_size=2"]  # fmt: skip
    checker = Checker(Inputs.of(environment={}, request=ClusterRequest(nodes=2, gpus_per_node=4)))
    report = checker.check(path, larger)
    assert {result.id for result in report.failing} == {"C60"}
    fixes = [fix for result in report.failing for fix in result.fixes]
    resources = "policy.generation.colocated.resources"
    edits = {(edit.key, edit.after) for edit in fixes[0].edits}
    assert edits == {(f"{resources}.num_nodes", 1), (f"{resources}.gpus_per_node", 4)}
    assert checker.check(path, [*larger, *fixes[0].overrides()]).failing == ()


def test_a_child_in_a_checkout_is_one_new_file(shared: Path, tmp_path: Path) -> None:
    base = resolve(stock(shared, tmp_path))

    def git(*arguments: str) -> str:
        return subprocess.check_output(["git", "-C", str(tmp_path), *arguments], text=True)

    git("init", "-q")
    git("add", "-A")
    edited = resolve(base.path, by_choices(base, TEMPLATE, nodes=1, gpus=4))
    (place, *_) = child_places(base.path, tmp_path)
    child(ChosenValues.of(base, edited), free_path(place.directory, child_name(edited))).write()
    name = "distillation-your-student-model-from-your-teacher-model-1n4g.yaml"
    assert git("status", "--porcelain", "-uall", "--", ".").split("\n")[-2:] == [
        f"?? examples/configs/recipes/llm/{name}",
        "",
    ]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_choices_can_be_saved_in_any_release(
    data: st.DataObject, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = release(shared, tmp_path_factory, data.draw(st.sampled_from(RELEASES)))
    path = data.draw(st.sampled_from(stock_recipes(root)))
    base = resolve(path)
    if Setup.of(base).off_policy:
        return
    samples = {name: (text,) for name, (text, _) in RECIPE_SAMPLES.items()} | dict(COMPOUND_SAMPLES)
    names = data.draw(st.lists(st.sampled_from(sorted(samples)), unique=True, max_size=8))
    texts = {name: data.draw(st.sampled_from(samples[name])) for name in names}
    both = data.draw(st.sets(st.sampled_from(sorted(samples))))
    key_tree = known_keys("distillation", root)
    changes = all_changes(texts, base, key_tree=key_tree, both=both, nodes=2, gpus_per_node=4)
    overrides = [text for change in changes for text in change.overrides()]
    choice = ChosenValues.of(base, resolve(path, overrides))
    meant = resolve(path, overrides).values
    assert resolve(path, choice.overrides()).values == meant
    directory = tmp_path_factory.mktemp("made")
    child(choice, directory / "child.yaml").write()
    assert resolve(directory / "child.yaml").values == meant
    before = path.read_bytes()
    try:
        into_file(choice).write()
        assert resolve(path).values == meant
    finally:
        path.write_bytes(before)
