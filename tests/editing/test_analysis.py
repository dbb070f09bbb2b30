"""Live predictions: what fails, what changed, values without a failure, fixes, and what would fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recipes.editing import (
    Analysis,
    EditSession,
    Outline,
    Placement,
    RecipeAnalyser,
    SupersededError,
)
from tests.checks.world import World

PLACE = Placement(1, 4, 40.0)


class Editing:
    """A recipe that is legal, in a directory with its models, under edit."""

    def __init__(self, directory: Path) -> None:
        world = World.at(directory)
        self.path = directory / "child.yaml"
        self.path.write_text("defaults: recipe.yaml\n")
        self.session = EditSession.open(self.path)
        self.analyser = RecipeAnalyser(self.path, checkout=directory, environment=world.environment)
        self.placement = PLACE
        self.analysis = self.update()

    def update(self) -> Analysis:
        self.analysis = self.analyser.update(self.session.state, self.placement)
        return self.analysis

    def set(self, key: str, text: str) -> Analysis:
        self.session.set_text(key, text, inherited=self.analysis.recipe)
        return self.update()


@pytest.fixture
def editing(tmp_path: Path) -> Editing:
    return Editing(tmp_path)


def test_a_legal_recipe_has_no_failure_and_all_phases(editing: Editing) -> None:
    assert editing.analysis.failing() == ()
    assert editing.analysis.memory is not None
    assert {"student-train", "teacher-score", "generation"} <= {p.id for p in editing.analysis.memory.phases}
    assert editing.analysis.changes.text() == ""


def test_the_tree_is_there_before_the_checks_and_once_more_with_what_the_checkout_says(
    tmp_path: Path,
) -> None:
    editing = Editing(tmp_path)
    editing.path.write_text("defaults: recipe.yaml\nour_key: 1\n# seed: 5\n# Note: by hand\n")
    session = EditSession.open(editing.path)
    analyser = RecipeAnalyser(editing.path, checkout=tmp_path, environment={})
    first = analyser.first_outline(session.state)
    assert analyser.schema._trees == {}  # nothing of the checkout was read
    outlines: list[Outline] = []
    analysis = analyser.update(session.state, PLACE, outlined=outlines.append)
    assert outlines == [analysis.outline]
    leaves = [(row.key, row.effective) for row in first.rows if row.state != "commented"]
    assert leaves == [(row.key, row.effective) for row in analysis.outline.rows if row.state != "commented"]
    assert len(leaves) > 40
    assert not any(row.unknown for row in first.rows)
    unknown = analysis.outline.row("our_key")
    assert unknown is not None
    assert unknown.unknown
    assert analysis.outline.row("Note") is None


def test_a_new_failure_is_said_and_its_solution_too(editing: Editing) -> None:
    analysis = editing.set("teacher.dtensor_cfg.tensor_parallel_size", "3")
    assert analysis.changes.new
    assert analysis.changes.text().startswith("would now fail: C")
    assert analysis.findings_on("teacher.dtensor_cfg.tensor_parallel_size")
    assert analysis.findings_on("teacher")
    assert analysis.findings_on("cluster.nothing") == ()
    editing.session.undo()
    again = editing.update()
    assert again.failing() == ()
    assert again.changes.text().startswith("solved: C")
    assert editing.update().changes.text() == ""


def test_a_failure_is_fixed_in_the_text(editing: Editing) -> None:
    analysis = editing.set("teacher.dtensor_cfg.tensor_parallel_size", "3")
    finding = next(result for result in analysis.failing() if result.fixes)
    fixes = editing.analyser.fixes(analysis, finding)
    assert fixes
    for fix in fixes:
        editing.session.apply(fix.edits, fix.title, inherited=analysis.recipe)
        after = editing.update()
        assert finding.id not in {result.id for result in after.failing()}
        assert len(after.failing()) < len(analysis.failing())
        editing.session.undo()
        editing.update()


def test_legal_values_come_first_and_are_tried(editing: Editing) -> None:
    values = editing.analyser.legal_values(editing.analysis, "policy.dtensor_cfg.tensor_parallel_size")
    assert [value.text for value in values if value.present]
    for value in values:
        analysis = editing.set("policy.dtensor_cfg.tensor_parallel_size", value.text)
        assert (analysis.failing() == ()) == (value.note == "")
        editing.session.undo()
        editing.update()
    assert [bool(value.note) for value in values] == sorted(bool(value.note) for value in values)
    switch = editing.analyser.legal_values(editing.analysis, "policy.dtensor_cfg.cpu_offload")
    assert {value.text for value in switch} == {"true", "false"}
    assert editing.analyser.legal_values(editing.analysis, "policy.model_name") == ()


def test_the_place_decides_what_fits(editing: Editing) -> None:
    editing.placement = replace(PLACE, gpu_memory_gib=1.0)
    analysis = editing.update()
    assert analysis.changes.overfull
    assert "no longer fits" in analysis.changes.text()
    editing.placement = PLACE
    assert editing.update().changes.relieved == analysis.changes.overfull


def test_what_would_fit_fits(editing: Editing) -> None:
    editing.set("teacher.model_name", "Qwen/Qwen3-32B")
    analysis = editing.set("policy.model_name", "Qwen/Qwen3-8B")
    assert analysis.prediction.overfull
    changes = editing.analyser.what_would_fit(analysis)
    assert changes
    for change in changes:
        editing.session.apply(change.fix.edits, change.fix.title, inherited=analysis.recipe)
        editing.placement = change.placement
        after = editing.update()
        assert after.prediction.overfull == change.overfull
        assert set(after.prediction.overfull) < set(analysis.prediction.overfull)
        assert {result.id for result in after.failing()} <= {result.id for result in analysis.failing()}
        editing.session.undo()
        editing.placement = PLACE
        editing.update()


def test_what_would_fit_of_one_key_changes_that_key_alone(editing: Editing) -> None:
    key = "policy.generation.vllm_cfg.gpu_memory_utilization"
    analysis = editing.set(key, "0.999")
    assert analysis.prediction.overfull == ("generation",)
    changes = editing.analyser.what_would_fit(analysis, key)
    assert changes
    assert {edit.key for change in changes for edit in change.fix.edits} == {key}
    assert all(change.overfull == () for change in changes)


def test_an_unreadable_recipe_keeps_its_last_outline(editing: Editing) -> None:
    rows = editing.analysis.outline.rows
    editing.session.replace_text("defaults: missing.yaml\n")
    analysis = editing.update()
    assert analysis.stale
    assert analysis.outline.rows == rows
    assert [result.id for result in analysis.failing()] == ["C1"]
    editing.session.replace_text("defaults: recipe.yaml\na: ${no.key}\n")
    analysis = editing.update()
    assert not analysis.stale
    assert [result.id for result in analysis.failing()] == ["C2"]
    editing.session.replace_text("defaults: recipe.yaml\na: [\n")
    analysis = editing.update()
    assert analysis.error is editing.session.error


def test_a_changed_parent_is_read_on_request(editing: Editing) -> None:
    parent = editing.path.with_name("recipe.yaml")
    parent.write_text(parent.read_text().replace("max_num_steps: 100", "max_num_steps: 7"))
    assert editing.update().recipe.get("distillation.max_num_steps") == 100
    analysis = editing.analyser.update(editing.session.state, PLACE, refresh=True)
    assert analysis.recipe.get("distillation.max_num_steps") == 7


def test_an_analysis_can_be_cancelled(editing: Editing) -> None:
    editing.session.set_text("distillation.max_num_steps", "9")
    with pytest.raises(SupersededError):
        editing.analyser.update(editing.session.state, PLACE, cancelled=lambda: True)
    assert editing.update().failing() == ()


def test_the_parents_and_the_recipe_are_compared(editing: Editing) -> None:
    analysis = editing.set("distillation.max_num_steps", "9")
    (difference,) = analysis.diff_parent()
    assert (difference.key, difference.b) == ("distillation.max_num_steps", 9)
    assert "+  max_num_steps: 9" in analysis.diff_parent_text()


def test_details_of_a_key(editing: Editing) -> None:
    key = "policy.max_total_sequence_length"
    details = editing.analyser.details(editing.analysis, key)
    assert details.type == "int"
    assert details.unit == "tokens"
    before = editing.analysis.recipe.get(f"teacher.{key.partition('.')[2]}")
    analysis = editing.set(key, str(int(details.value) * 2))
    details = editing.analyser.details(analysis, key)
    if analysis.recipe.get("teacher.max_total_sequence_length") == before:
        assert details.counterpart == "teacher.max_total_sequence_length"
        assert details.drifts
    assert details.replaced
    assert details.origin is not None
    assert details.origin.how == "own"
    unset = editing.analyser.details(analysis, "policy.no_such_key")
    assert unset.unknown
    assert unset.value == ""


def test_details_name_the_keys_that_follow_and_the_remark(child: Path) -> None:
    analyser = RecipeAnalyser(child, environment={})
    analysis = analyser.read(EditSession.open(child).state)
    details = analyser.details(analysis, "policy.max_total_sequence_length")
    assert details.followers == ("policy.generation.max_new_tokens", "teacher.generation.max_new_tokens")
    assert analyser.details(analysis, "distillation.max_num_steps").remark.beside == "enough"
    texts = [item.text for item in analyser.details(analysis, "distillation.num_prompts_per_step").help]
    assert "prompts of one step" in texts


@pytest.mark.long
@pytest.mark.parametrize("gib", [5.0, 6.0])
def test_changes_of_models_and_generation_are_joined_where_only_both_fit(
    editing: Editing, gib: float
) -> None:
    editing.placement = Placement(1, 4, gib)
    analysis = editing.update()
    assert {"teacher-score", "generation"} <= set(analysis.prediction.overfull)
    changes = editing.analyser.what_would_fit(analysis)
    assert changes
    assert changes[0].overfull == ()
    assert any(edit.key.endswith("gpu_memory_utilization") for edit in changes[0].fix.edits)
    editing.placement = changes[0].placement
    editing.session.apply(changes[0].fix.edits, changes[0].fix.title, inherited=analysis.recipe)
    assert editing.update().prediction.overfull == ()
    assert editing.analysis.failing() == ()
