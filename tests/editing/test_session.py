"""The session: edits here or in a parent, text mode, history, and the file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.editing import EditSession, RecipeAnalyser, read_text
from recipes.editing.line_changes import LineChanges, line_changes
from recipes.errors import RecipeError
from recipes.files import ChangedOnDiskError
from recipes.inheritance import EffectiveRecipe
from recipes.planning import RecipeEdit
from tests.editing.conftest import CHILD


def effective(session: EditSession) -> EffectiveRecipe:
    return RecipeAnalyser(session.path, environment={}).read(session.state).recipe


def is_dirty(session: EditSession) -> bool:
    return session.dirty


def test_an_edit_changes_one_line_and_undo_brings_the_bytes_back(child: Path) -> None:
    session = EditSession.open(child)
    session.set_text("distillation.max_num_steps", "0x10")
    assert session.text == CHILD.replace("20  # enough", "0x10  # enough")
    assert is_dirty(session)
    assert session.changes() == LineChanges(frozenset({4}), 1)
    assert session.undo() == "set distillation.max_num_steps"
    assert session.text == CHILD
    assert not is_dirty(session)
    assert session.redo() == "set distillation.max_num_steps"
    assert "0x10" in session.text
    assert session.redo() == ""


def test_an_inherited_value_is_set_here(child: Path) -> None:
    session = EditSession.open(child)
    session.set_text("policy.optimizer.kwargs.lr", "1e-6")
    assert session.text == CHILD + "  optimizer:\n    kwargs:\n      lr: 1.0e-6\n"


def test_an_item_of_an_inherited_list_brings_the_whole_list_here(child: Path) -> None:
    session = EditSession.open(child)
    session.set_text("stages.1.steps", "5", inherited=effective(session))
    assert session.text == (CHILD + "stages:\n  - name: warm\n    steps: 10\n  - name: main\n    steps: 5\n")
    session.add("stages.1", "{name: mid}", inherited=effective(session))
    assert effective(session).get("stages.1.name") == "mid"
    assert effective(session).get("stages.2.steps") == 5
    session.remove("stages.0", inherited=effective(session))
    assert effective(session).get("stages.0.name") == "mid"


def test_removing_goes_back_to_the_inherited_value_and_leaves_no_empty_section(child: Path) -> None:
    session = EditSession.open(child)
    session.remove("policy.model_name", inherited=effective(session))
    assert session.text == CHILD[: CHILD.index("policy:")]
    assert effective(session).get("policy.model_name") == "student"


def test_removing_what_is_inherited_says_where_it_is(child: Path) -> None:
    session = EditSession.open(child)
    with pytest.raises(RecipeError) as error:
        session.remove("policy.optimizer", inherited=effective(session))
    assert "not set here but inherited" in error.value.what
    assert str(error.value.where) == f"{child.with_name('base.yaml')}:9"
    with pytest.raises(RecipeError, match=r"There is no key 'policy\.nothing'"):
        session.remove("policy.nothing", inherited=effective(session))
    assert session.text == CHILD


def test_a_value_is_set_for_student_and_teacher_in_one_step(child: Path) -> None:
    session = EditSession.open(child)
    session.set_text("policy.max_total_sequence_length", "1024", both=True, inherited=effective(session))
    recipe = effective(session)
    assert recipe.get("policy.max_total_sequence_length") == 1024
    assert recipe.get("teacher.max_total_sequence_length") == 1024
    session.undo()
    assert session.text == CHILD


def test_a_section_that_follows_another_key_is_not_replaced_by_one_value(child: Path) -> None:
    child.write_text("defaults: base.yaml\ncopy: ${policy.optimizer}\n")
    session = EditSession.open(child)
    with pytest.raises(RecipeError, match="follows another key"):
        session.set_text("copy.kwargs.lr", "1", inherited=effective(session))
    session.set_text("copy.kwargs.lr", "1", write_out=True, inherited=effective(session))
    assert effective(session).get("copy") == {"kwargs": {"lr": 1, "betas": [0.9, 0.999]}}


def test_remarks_and_commented_keys(child: Path) -> None:
    session = EditSession.open(child)
    session.set_comment("distillation.max_num_steps", "too few")
    session.set_comment("policy", "the student\nof this run", above=True)
    assert "20  # too few\n" in session.text
    assert "# the student\n# of this run\npolicy:" in session.text
    assert session.comment("policy").above == "the student\nof this run"
    session.comment_in("distillation.val_period")
    assert "  val_period: 5\n" in session.text
    session.comment_out("distillation.max_num_steps")
    assert "  # max_num_steps: 20  # too few\n" in session.text


def test_edits_of_a_fix_are_one_step(child: Path) -> None:
    session = EditSession.open(child)
    edits = [
        RecipeEdit("policy.model_name", "mine", None, remove=True),
        RecipeEdit("distillation.max_num_steps", 20, 30),
    ]
    session.apply(edits, "fix C0", inherited=effective(session))
    assert session.undo_label == "fix C0"
    session.undo()
    assert session.text == CHILD
    with pytest.raises(RecipeError):
        session.apply(
            [*edits, RecipeEdit("nothing", 1, None, remove=True)], "fix", inherited=effective(session)
        )
    assert session.text == CHILD


def test_a_text_that_is_no_yaml_keeps_the_last_tree_and_names_the_line(child: Path) -> None:
    session = EditSession.open(child)
    state = session.replace_text(CHILD.replace("  max_num_steps", "\tmax_num_steps"))
    assert state.error_line == 4
    assert not state.is_yaml
    assert effective(session).get("distillation.max_num_steps") == 20
    for edit in (
        lambda: session.set_text("policy.model_name", "x"),
        lambda: session.remove("policy.model_name"),
        lambda: session.comment_out("policy"),
        session.save,
    ):
        with pytest.raises(RecipeError) as error:
            edit()
        assert "a tab" in error.value.what
    session.replace_text(CHILD)
    assert session.error is None
    session.undo()
    assert session.state.error_line == 4
    session.undo()
    assert session.text == CHILD


def test_typing_is_one_step_until_another_edit(child: Path) -> None:
    session = EditSession.open(child)
    for length in range(1, 6):
        session.replace_text(CHILD + "# extra"[:length], merge_step=True)
    session.set_text("policy.model_name", "other")
    session.take(read_text(session.state, session.text + "#"), merge_step=True)
    session.undo()
    session.undo()
    assert session.text == CHILD + "# ext"
    session.undo()
    assert session.text == CHILD


def test_a_preview_changes_nothing(child: Path) -> None:
    session = EditSession.open(child)
    state = session.preview_text("policy.model_name", "other")
    assert "model_name: other" in state.text
    assert session.text == CHILD
    assert not session.can_undo


def test_old_steps_are_read_again(child: Path) -> None:
    session = EditSession.open(child)
    session.replace_text(CHILD + "broken: [\n")
    for number in range(30):
        session.replace_text(CHILD + f"number: {number}\n")
    for number in reversed(range(30)):
        assert session.text == CHILD + f"number: {number}\n"
        assert session.state.is_yaml
        session.undo()
    assert not session.state.is_yaml
    assert effective(session).get("distillation.max_num_steps") == 20


def test_a_long_row_of_broken_texts_can_be_undone(child: Path) -> None:
    session = EditSession.open(child)
    for number in range(40):
        session.replace_text(CHILD + f"broken{number}: [\n")
    for _ in range(40):
        assert session.state.error_line == 8
        assert effective(session).get("distillation.max_num_steps") == 20
        session.undo()
    assert session.state.is_yaml


def test_a_broken_file_opens_and_can_be_repaired(child: Path) -> None:
    child.write_text("a: [1\n")
    session = EditSession.open(child)
    assert session.error is not None
    session.replace_text("a: [1]\n")
    session.save()
    assert child.read_text() == "a: [1]\n"
    session.undo()
    session.save(even_broken=True)
    assert child.read_text() == "a: [1\n"


def test_a_file_changed_by_another_program(child: Path) -> None:
    session = EditSession.open(child)
    session.set_text("policy.model_name", "edited")
    mine, theirs = session.text, CHILD + "theirs: 1\n"
    child.write_text(theirs)
    assert session.disk_change() == "changed"
    with pytest.raises(ChangedOnDiskError):
        session.save()
    assert "-theirs: 1" in session.diff_disk()
    session.reload()
    assert session.text == theirs
    assert not is_dirty(session)
    session.undo()
    assert session.text == mine
    child.write_text(CHILD)
    session.keep_mine()
    session.save()
    assert child.read_text() == mine
    child.unlink()
    assert session.disk_change() == "missing"


def test_unsaved_text_is_taken_up_as_an_edit(child: Path) -> None:
    session = EditSession.open(child, text=CHILD + "more: 1\n")
    assert is_dirty(session)
    session.undo()
    assert session.text == CHILD
    assert not is_dirty(session)


def test_a_half_character_is_refused_when_saving(child: Path) -> None:
    session = EditSession.open(child)
    session.replace_text(CHILD + "# \ud83d\n")
    with pytest.raises(RecipeError):
        session.save(even_broken=True)
    assert child.read_text() == CHILD


@pytest.mark.parametrize(
    ("key", "typed", "line"),
    [
        ("distillation.max_num_steps", "30 # longer", "  max_num_steps: 30  # longer"),
        ("distillation.max_num_steps", "30", "  max_num_steps: 30  # enough"),
        ("policy.model_name", "'a # b'", "  model_name: 'a # b'"),
        ("policy.model_name", "a#b", "  model_name: a#b"),
    ],
)
def test_a_remark_typed_behind_a_value_is_written_beside_it(
    child: Path, key: str, typed: str, line: str
) -> None:
    session = EditSession.open(child)
    session.set_text(key, typed)
    assert line in session.text.split("\n")
    session.undo()
    assert session.text == CHILD


def test_a_comment_alone_is_no_value(child: Path) -> None:
    session = EditSession.open(child)
    with pytest.raises(RecipeError, match="only a comment"):
        session.set_text("policy.model_name", "# later")
    session.add("policy.note", "x  # why")
    assert session.text == CHILD + "  note: x  # why\n"


def test_a_key_inside_an_alias_is_set_in_a_copy_where_that_is_asked_for(child: Path) -> None:
    child.write_text("common: &C {size: 1}\npolicy: *C\n")
    session = EditSession.open(child)
    with pytest.raises(RecipeError, match="change what it stands for"):
        session.preview_text("policy.size", "2")
    assert effective(session).get("policy.size") == 1
    session.take(session.preview_text("policy.size", "2", write_out=True))
    assert (effective(session).get("common.size"), effective(session).get("policy.size")) == (1, 2)


def test_an_item_that_is_added_is_previewed_before_it_is_there(child: Path) -> None:
    session = EditSession.open(child)
    state = session.preview_text("stages.2", "{name: end}", adding=True, inherited=effective(session))
    assert state.text.endswith("  - name: end\n")
    assert session.text == CHILD


def test_removed_lines_count_as_changes(child: Path) -> None:
    session = EditSession.open(child)
    session.remove("policy.model_name", inherited=effective(session))
    assert session.changes() == LineChanges(frozenset(), 2)


_LINES = st.lists(st.sampled_from(["a", "b", "", "  - x"]), max_size=12)


@given(_LINES, _LINES)
def test_the_lines_that_changed_are_those_that_no_comparison_matches(
    before: list[str], after: list[str]
) -> None:
    lines, total = line_changes("\n".join(before), "\n".join(after))
    numbers = range(1, max(len(after), 1) + 1)
    assert lines <= set(numbers)
    assert (total == 0) == ("\n".join(before) == "\n".join(after))
    assert total >= len(lines)
    # What is left is a common subsequence.
    rest = iter("\n".join(before).split("\n"))
    assert all(
        line in rest for number, line in enumerate("\n".join(after).split("\n"), 1) if number not in lines
    )


def test_many_equal_lines_are_compared_quickly() -> None:
    before = "\n".join(["  - x"] * 20_000)
    start = time.process_time()
    assert line_changes(before, before + "\n  - y") == LineChanges(frozenset({20_001}), 1)
    assert line_changes(before, "z\n" + before + "\ny").total > 0
    assert time.process_time() - start < 2
