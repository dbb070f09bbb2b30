"""Wrapped lines, shortened paths, and the notes beside fields: nothing is cut within a word without need."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from tui.screens.wizard.pages import fact, line, wrap_hanging
from tui.widgets.form import RowNote
from tui.widgets.line_wrap import shortened_name, shortened_path, with_short_paths, wrapped

WORDS = st.text("abcdefgh0189é字/-_.", min_size=1, max_size=60)
NAMES = st.text("abcxyz019é字-_.", min_size=1, max_size=14)
PATH = "/p/project1/distillation/nemo-rl/examples/configs/recipes/llm/one.yaml"


@given(st.lists(WORDS, min_size=1, max_size=8), st.integers(18, 90), st.sampled_from([0, 2, 12]))
@settings(max_examples=60)
def test_wrapped_lines_have_all_of_the_text_and_no_line_is_too_long(
    words: list[str], width: int, hanging: int
) -> None:
    text = " ".join(words)
    lines = wrapped(Content(text), width, hanging=hanging)
    assert all(cell_len(item.plain) <= width for item in lines)
    assert "".join(item.plain for item in lines).replace(" ", "") == text.replace(" ", "")
    assert all(item.plain.startswith(" " * hanging) for item in lines[1:])


@given(st.lists(NAMES, min_size=2, max_size=9), st.integers(48, 90))
@settings(max_examples=50)
def test_a_path_is_cut_behind_a_slash_alone(names: list[str], width: int) -> None:
    lines = [item.plain for item in wrap_hanging([fact("recipe", "/" + "/".join(names))], width)]
    assert all(item.endswith("/") for item in lines[:-1])
    assert all(second.startswith(" " * 12) for _, second in pairwise(lines))
    assert "".join(item[12:] for item in lines) == "/" + "/".join(names)


def test_a_line_goes_on_under_its_text() -> None:
    long = "a finding of some length that needs a second line, and a third one"
    for head in ("✗ C35 ", "      fix (f): ", "checkpoints "):
        lines = [item.plain for item in wrap_hanging([line((head, "dim"), long)], 40)]
        assert len(lines) > 1
        assert all(item[: len(head)].isspace() and item[len(head)] != " " for item in lines[1:])


def test_a_bracket_is_no_part_of_a_path_to_cut_behind() -> None:
    lines = [item.plain for item in wrapped(Content(f"in your home directory ({PATH})"), 30)]
    assert lines[0] == "in your home directory (/p/"
    lines = [item.plain for item in wrapped(Content(f"in your home directory ({PATH})"), 25)]
    assert lines[:2] == ["in your home directory", "(/p/project1/"]


@pytest.mark.parametrize(
    ("width", "short"),
    [
        (70, PATH),
        (40, "/p/…/configs/recipes/llm/one.yaml"),
        (20, "/p/…/llm/one.yaml"),
        (13, "/p/…/one.yaml"),
        (12, "…/one.yaml"),
        (8, "…ne.yaml"),
    ],
)
def test_a_shortened_path_has_its_ends(width: int, short: str) -> None:
    assert shortened_path(PATH, width) == short


@given(WORDS, st.integers(1, 70))
def test_a_shortened_path_fits(text: str, width: int) -> None:
    assert cell_len(shortened_path(text, width)) <= width


@pytest.mark.parametrize(
    ("note", "room", "shown"),
    [
        (RowNote("8 nodes × 4 a100, at most 1-00:00:00"), 40, "8 nodes × 4 a100, at most 1-00:00:00"),
        (RowNote("8 nodes × 4 a100, at most 1-00:00:00"), 30, "8 nodes × 4 a100"),
        (RowNote("the packaged launcher (bare Ray)"), 25, "the packaged launcher"),
        (RowNote("all GPUs train and generate"), 20, ""),
        (RowNote("C35 policy: 4 GPUs do not divide", "error", "C35, C37"), 20, "C35, C37"),
        (RowNote("must be a whole number >= 1", "error"), 30, "must be a whole number >= 1"),
        (RowNote("must be a whole number >= 1", "error"), 12, "must be a w…"),
    ],
)
def test_a_note_is_a_whole_sentence_or_its_first_clause(note: RowNote, room: int, shown: str) -> None:
    assert note.fitted(room) == shown


@pytest.mark.parametrize(
    ("text", "width", "shortened"),
    [
        ("1 node · recipes/llm/one.yaml", 40, "1 node · recipes/llm/one.yaml"),
        ("1 node · /p/project/me/recipes/llm/one.yaml", 30, "1 node · /p/…/llm/one.yaml"),
        (
            "in /a/long/way/to/x and /p/project/me/and/more/llm/y",
            40,
            "in /a/long/way/to/x and /p/…/more/llm/y",
        ),
        ("no path in these many words", 10, "no path in these many words"),
    ],
)
def test_paths_in_a_line_are_shortened_in_the_middle(text: str, width: int, shortened: str) -> None:
    assert with_short_paths(text, width) == shortened


@given(st.text("ab/. ü漢", max_size=60), st.integers(0, 70))
def test_a_shortened_line_is_never_longer(text: str, width: int) -> None:
    assert cell_len(with_short_paths(text, width)) <= cell_len(text)
    name = shortened_name(text, width)
    assert name == text or (cell_len(name) <= width and name[-1] == text[-1])


def test_the_end_of_a_name_stays() -> None:
    text = "new recipe distillation-student-from-teacher-2n4g.yaml"
    assert shortened_name(text, 40) == "new recipe distilla…om-teacher-2n4g.yaml"
    assert shortened_name("a sentence that ends with words", 20) == "a sentence that ends with words"
