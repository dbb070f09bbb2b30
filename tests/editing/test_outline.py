"""The outline: rows with state, values, origin and lines; also of recipes that NeMo-RL would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.editing import Analysis, EditSession, Outline, OutlineRow, RecipeAnalyser
from tests.editing.conftest import CHILD


def analysed(path: Path, *overrides: str) -> Analysis:
    return RecipeAnalyser(path, environment={}, overrides=overrides).read(EditSession.open(path).state)


def row_of(outline: Outline, key: str) -> OutlineRow:
    row = outline.row(key)
    assert row is not None, key
    return row


def test_states_values_and_origins(child: Path) -> None:
    outline = analysed(child, "distillation.num_prompts_per_step=32").outline
    own = row_of(outline, "distillation.max_num_steps")
    assert (own.state, own.written, own.replaces, own.lines) == ("own", "20", True, (4, 4))
    given = row_of(outline, "distillation.num_prompts_per_step")
    assert (given.state, given.effective) == ("override", "32")
    inherited = row_of(outline, "policy.optimizer.kwargs.lr")
    assert inherited.state == "inherited"
    assert inherited.origin is not None
    assert (Path(inherited.origin.file).name, inherited.origin.line) == ("base.yaml", 11)
    assert inherited.lines is None
    followed = row_of(outline, "policy.generation.max_new_tokens")
    assert followed.interpolated
    assert (followed.written, followed.effective) == ("${policy.max_total_sequence_length}", "4096")
    assert row_of(outline, "teacher.optimizer.kwargs.lr").origin.how == "merge"  # type: ignore[union-attr]
    commented = row_of(outline, "distillation.val_period")
    assert (commented.state, commented.written, commented.lines) == ("commented", "5", (5, 5))
    section = row_of(outline, "distillation")
    assert (section.kind, section.lines, section.size) == ("section", (3, 4), 2)
    assert row_of(outline, "stages").kind == "list"
    assert row_of(outline, "stages.1.steps").depth == 2


def test_rows_follow_the_tree(child: Path) -> None:
    outline = analysed(child).outline
    index = outline.index("policy.optimizer")
    assert index is not None
    below = [outline.rows[number].key for number in outline.below(index)]
    assert below == [
        "policy.optimizer.kwargs",
        "policy.optimizer.kwargs.lr",
        "policy.optimizer.kwargs.betas",
        "policy.optimizer.kwargs.betas.0",
        "policy.optimizer.kwargs.betas.1",
    ]
    parent = outline.parent(index)
    assert parent is not None
    assert outline.rows[parent].key == "policy"
    assert outline.parent(0) is None


def test_a_line_leads_to_the_deepest_key_on_it(child: Path) -> None:
    outline = analysed(child).outline
    keys = [
        outline.rows[index].key if (index := outline.at_line(line)) is not None else ""
        for line in range(1, 9)
    ]
    assert keys == [
        "", "", "distillation", "distillation.max_num_steps", "distillation.val_period", "policy",
        "policy.model_name", "",
    ]  # fmt: skip


def test_unknown_keys_are_marked(child: Path) -> None:
    child.write_text("defaults: base.yaml\npolicy:\n  model_nam: x\n  optimizer:\n    kwargs:\n      lr: 1\n")
    outline = analysed(child).outline
    assert [row.key for row in outline.rows if row.unknown] == ["policy.model_nam"]


def test_a_section_by_interpolation_shows_its_keys(child: Path) -> None:
    child.write_text("defaults: base.yaml\ncopy: ${policy.optimizer}\n")
    outline = analysed(child).outline
    copy = row_of(outline, "copy")
    assert (copy.kind, copy.state, copy.written) == ("section", "own", "${policy.optimizer}")
    leaf = row_of(outline, "copy.kwargs.lr")
    assert (leaf.effective, leaf.state, leaf.interpolated) == ("2.0e-5", "inherited", True)


@pytest.mark.parametrize(
    ("text", "key", "effective"),
    [
        (CHILD + "bad: ${no.such.key}\n", "bad", "${no.such.key}"),
        (CHILD + "loop: ${loop}\n", "loop", "${loop}"),
        (CHILD + "distillation: {again: 1}\n", "distillation.again", "1"),
        (CHILD.replace("base.yaml", "missing.yaml"), "distillation.max_num_steps", "20"),
        ("defaults: child.yaml\na: 1\n", "a", "1"),
    ],
)
def test_a_refused_recipe_shows_what_can_be_read(child: Path, text: str, key: str, effective: str) -> None:
    child.write_text(text)
    analysis = analysed(child)
    assert analysis.error is not None
    assert row_of(analysis.outline, key).effective == effective


def test_a_recipe_that_contains_itself_ends(child: Path) -> None:
    child.write_text("a:\n  b: ${a}\nc: ${d}\nd: {e: '${c}'}\n")
    analysis = analysed(child)
    assert analysis.error is not None
    assert len(analysis.outline.rows) < 200


def test_what_cannot_be_painted_is_escaped_so_that_a_field_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("a: 'x\u202ey'\nb: \u65e5\u672c\nc: 'x y'\nd: [\"\u200d\"]\n", encoding="utf-8")
    outline = analysed(path).outline
    assert [row_of(outline, key).written for key in ("a", "b", "c", "d.0")] == [
        '"x\\u202ey"', "\u65e5\u672c", "'x y'", '"\\u200d"',
    ]  # fmt: skip
    session = EditSession.open(path)
    session.set_text("a", row_of(outline, "a").written)
    assert analysed(path).recipe.get("a") == "x\u202ey"
    assert session.state.revision.data == {"a": "x\u202ey", "b": "\u65e5\u672c", "c": "x y", "d": ["\u200d"]}


def test_control_characters_stay_on_one_line(child: Path) -> None:
    child.write_text('a: "x\\n\\ty"\nb: |\n  one\n  two\n"k\\e[31m": 1\n')
    rows = analysed(child).outline.rows
    assert all("\n" not in row.written and "\n" not in row.effective for row in rows)
