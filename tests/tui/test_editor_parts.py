"""Parts of the editor and of the shared widgets that need no screen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.content import Content
from textual.geometry import Offset

from recipes.editing import EditSession, Outline, OutlineRow, Placement, RecipeAnalyser
from recipes.editing.outline import RowKind, RowState
from tests.tui.editor_world import TP, EditorWorld
from tui.screens.editor.detail_lines import TEXT_MODE_HINTS, TREE_HINTS, DetailHints, detail_lines
from tui.screens.editor.editor_choices import placement_of
from tui.screens.editor.outline_view import COMMENTED, INHERITED, OWN, REPLACING, OutlineView, state_mark
from tui.screens.editor.preflight_lines import difference_text, memory_strip, outcomes_by_key, summary
from tui.screens.editor.text_view import split_lines
from tui.widgets.diff_lines import changed_count, diff_lines
from tui.widgets.entry_dialog import EntryDialog, EntryPlace, EntryRequest
from tui.widgets.fact_lines import Fact, fact_lines
from tui.widgets.meter import meter
from tui.widgets.panel import fitted, title_rule
from tui.widgets.yaml_tokens import ScanState, scan_line


def kinds(line: str, state: ScanState | None = None) -> list[tuple[str, str]]:
    tokens, _ = scan_line(line, state or ScanState())
    return [(line[token.start : token.end], token.kind) for token in tokens]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a: 1", [("a", "key"), (":", "mark"), ("1", "number")]),
        ("  lr: 2.0e-5  # fast", [("lr", "key"), (":", "mark"), ("2.0e-5", "number"), ("# fast", "comment")]),
        ("x: true", [("x", "key"), (":", "mark"), ("true", "word")]),
        ('"k": "a # b"', [('"k"', "key"), (":", "mark"), ('"a # b"', "string")]),
        ("- ${a.b}", [("-", "mark"), ("${a.b}", "reference")]),
        ("<<: *BASE", [("<<", "key"), (":", "mark"), ("*BASE", "anchor")]),
        ("a: Qwen/Qwen3-4B", [("a", "key"), (":", "mark")]),
        ("url: http://x#y", [("url", "key"), (":", "mark")]),
        ("# only: a comment", [("# only: a comment", "comment")]),
        ("{a: 1, b: off}", [("{", "mark"), ("a", "key"), (":", "mark"), ("1", "number"), (",", "mark"),
                            ("b", "key"), (":", "mark"), ("off", "word"), ("}", "mark")]),
    ],
)  # fmt: skip
def test_yaml_is_coloured_by_what_it_is(line: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(line) == expected


def test_text_on_several_lines_is_a_string_to_its_end() -> None:
    lines = ["a: |", "  # no comment", "", "b: 'one", "two' # yes", "c: 1"]
    state, found = ScanState(), []
    for line in lines:
        tokens, state = scan_line(line, state)
        found.append([token.kind for token in tokens])
    assert found[1] == ["string"]
    assert found[3] == ["key", "mark", "string"]
    assert found[4] == ["string", "comment"]
    assert found[5] == ["key", "mark", "number"]


@given(st.text(max_size=60), st.sampled_from([ScanState(), ScanState('"'), ScanState(block=2)]))
def test_tokens_of_any_line_are_in_order_and_within_it(line: str, state: ScanState) -> None:
    tokens, _ = scan_line(line, state)
    edges = [edge for token in tokens for edge in token[:2]]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(line) for edge in edges)


@given(st.text(max_size=40), st.text(max_size=40), st.integers(4, 120), st.booleans())
def test_a_rule_is_exactly_as_wide_as_its_panel(title: str, subtitle: str, width: int, active: bool) -> None:
    printable = [text for text in (title, subtitle) if text.isprintable()]
    first, second = [*printable, "", ""][:2]
    assert title_rule(first, second, width, active=active).cell_length == width


@given(st.text(st.characters(categories=("L", "N")), max_size=40), st.integers(0, 60))
def test_a_cell_is_exactly_as_wide_as_its_column(text: str, width: int) -> None:
    assert Content(fitted(text, width)).cell_length == width


@given(st.floats(0, 500), st.floats(0.1, 500), st.integers(3, 60))
def test_a_meter_fills_with_what_is_used(used: float, limit: float, width: int) -> None:
    bar = meter(used, limit, width).plain
    assert len(bar) == width
    assert bar.endswith("▶") == (used / limit > 1)


def test_values_wrap_under_themselves_and_a_label_is_said_once() -> None:
    lines = fact_lines([Fact("at", "one two three four five six"), Fact("at", "next")], 28)
    assert [line.plain for line in lines] == [
        "at          one two three",
        "            four five six",
        "            next",
    ]


def test_a_diff_keeps_its_signs_and_counts_them() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-x\x1b[2J\n+y\n--- not a name\n"
    assert [line.plain for line in diff_lines(diff)] == ["@@ -1 +1 @@", "-x", "+y", "--- not a name"]
    assert changed_count(diff) == (1, 2)


@pytest.mark.parametrize(
    ("text", "placement"),
    [
        ("2 x 4 x 40", Placement(2, 4, 40.0)),
        ("2×4", Placement(2, 4)),
        (" 1 * 8 GPUs x 80 GiB ", Placement(1, 8, 80.0)),
        ("", Placement()),
        ("0 x 4", None),
        ("2", None),
        ("2 x 4 x 0", None),
        ("two x 4", None),
        ("2 x 4 x 40 x 1", None),
    ],
)
def test_a_place_is_read_as_people_write_it(text: str, placement: Placement | None) -> None:
    assert placement_of(text) == placement


@given(st.text(max_size=60))
def test_lines_are_those_between_line_breaks(text: str) -> None:
    lines = split_lines(text)
    assert lines
    assert not any("\n" in line or "\r" in line for line in lines)


def test_what_a_key_shows(tmp_path: Path) -> None:
    world = EditorWorld.at(tmp_path / "w")
    session = EditSession.open(world.recipe)
    analyser = RecipeAnalyser(world.recipe, checkout=world.root, environment=dict(world.environment))
    before = analyser.update(session.state)
    marks = {row.key: state_mark(row) for row in before.outline.rows}
    assert marks["distillation.max_num_steps"] is REPLACING
    assert marks["distillation.val_period"] is INHERITED
    assert marks["distillation"] is OWN
    assert COMMENTED in marks.values()
    assert summary(before).plain == "✓ no failure predicted"
    session.set_text(TP, "3", inherited=before.recipe)
    after = analyser.update(session.state)
    assert outcomes_by_key(after.report.results)[TP] == "fail"
    text, outcome = difference_text(before, after)
    assert outcome == "fail"
    assert text.startswith("would now fail: C35")
    assert "✗ 2 checks would fail" in summary(after).plain
    row = after.outline.row(TP)
    lines = "\n".join(line.plain for line in detail_lines(row, analyser.details(after, TP), 60))
    assert "✗ C35" in lines
    assert "from        this file, line 9" in lines
    assert max(map(len, lines.split("\n"))) <= 60
    assert after.memory is not None
    assert "student unknown" in memory_strip(after.memory, 78).plain
    assert memory_strip(after.memory, 78).cell_length <= 78


def test_a_text_that_cannot_be_read_is_never_said_to_pass(tmp_path: Path) -> None:
    world = EditorWorld.at(tmp_path / "w", "policy:\n\tmodel_name: a\n")
    session = EditSession.open(world.recipe)
    analyser = RecipeAnalyser(world.recipe, checkout=world.root, environment=dict(world.environment))
    assert summary(analyser.update(session.state)).plain == "✗ not YAML, line 2"
    session.replace_text("policy: {}\n")
    assert "not YAML" not in summary(analyser.update(session.state)).plain
    session.replace_text("policy: {\n")
    assert summary(analyser.update(session.state)).plain.startswith("✗ not YAML, line 1 · as last read: ?")
    session.replace_text("")
    assert summary(analyser.update(session.state)).plain.startswith("? nothing checked: ")


def test_the_details_name_keys_only_where_they_do_something(tmp_path: Path) -> None:
    world = EditorWorld.at(tmp_path / "w")
    session = EditSession.open(world.recipe)
    analyser = RecipeAnalyser(world.recipe, checkout=world.root, environment=dict(world.environment))
    session.set_text(TP, "3")
    analysis = analyser.update(session.state)

    def text(key: str, hints: DetailHints) -> str:
        lines = detail_lines(analysis.outline.row(key), analyser.details(analysis, key), 70, hints)
        return " ".join(" ".join(line.plain for line in lines).split())

    assert "f fixes it" in text(TP, TREE_HINTS)
    assert "F7 fixes it" in text(TP, TEXT_MODE_HINTS)
    assert "enter sets it here" in text("distillation.val_period", TREE_HINTS)
    for key in ("distillation.val_period", "policy.generation.temperature", "policy.our_key"):
        in_text = text(key, TEXT_MODE_HINTS)
        assert "; enter" not in in_text
        assert "; #" not in in_text


@asynccontextmanager
async def painted_alone(
    view: OutlineView, size: tuple[int, int]
) -> AsyncIterator[tuple[App[None], OutlineView]]:
    """Show a widget in an app of its own."""

    class Alone(App[None]):
        def compose(self) -> ComposeResult:
            yield view

    app = Alone()
    async with app.run_test(size=size):
        yield app, view


def test_a_key_and_its_commented_copy_are_two_rows() -> None:
    def row(name: str, state: RowState, depth: int = 1) -> OutlineRow:
        kind: RowKind = "value" if depth else "section"
        return OutlineRow(
            f"a.{name}" if depth else name, ("a",), name, depth, kind, state, "1", size=1 - depth
        )

    def outline(*rows: OutlineRow) -> Outline:
        return Outline((row("a", "own", 0), *rows))

    view = OutlineView()
    view.post_message = lambda message: True  # type: ignore[method-assign]
    view._reveal = lambda *, jump=False: None  # type: ignore[method-assign]

    def current() -> tuple[str, str] | None:
        return (view.current.key, view.current.state) if view.current is not None else None

    view.show(outline(row("x", "own"), row("y", "own")), {})
    assert view.go_to("a.y")
    view.show(outline(row("x", "own"), row("y", "inherited"), row("z", "own"), row("y", "commented")), {})
    assert current() == ("a.y", "inherited")
    view.action_edge(1)
    assert current() == ("a.y", "commented")
    view.show(outline(row("x", "own"), row("y", "own")), {})
    assert current() == ("a.y", "own")
    view.show(outline(row("x", "own"), row("y", "commented")), {})
    assert current() == ("a.y", "commented")
    view.show(outline(row("x", "own")), {})
    assert current() == ("a", "own")


async def test_wide_characters_are_painted_whole_and_a_cut_name_keeps_its_distance() -> None:
    def row(name: str, value: str) -> OutlineRow:
        return OutlineRow(name, (name,), name, 0, "value", "own", value, value)

    rows = (row("k", "日本語テキスト"), row("n" * 60, "1"), row("名前", "x"))
    async with painted_alone(OutlineView(), (40, 5)) as (app, view):
        view.show(Outline(rows), {})
        lines = [strip.text for strip in map(view.render_line, range(3))]
    assert app.return_code in (None, 0)
    assert "日本語テキスト" in lines[0]
    assert f"{'n' * 5}… 1" in lines[1]
    assert lines[2].split() == ["●", "名前", "x"]


async def test_a_hint_takes_as_many_lines_as_it_needs_but_no_more_than_four() -> None:
    app: App[None] = App()
    async with app.run_test(size=(60, 24)) as pilot:
        dialog = EntryDialog(EntryRequest("Set a.b", "1", "short"), place=EntryPlace(Offset(30, 20), 20))
        app.push_screen(dialog)
        await pilot.pause()
        heights = []
        for text in ("short", "some words " * 9, "very many words " * 40, "", "short again"):
            dialog.say(text, "fail")
            await pilot.pause()
            hint = dialog.query_one(".entry-hint")
            heights.append(hint.size.height if hint.display else 0)
            box = dialog.query_one(".entry-box")
            assert box.region.bottom <= 24
        assert heights == [1, 4, 4, 0, 1]
