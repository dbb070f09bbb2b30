"""Random sequences of edits, undo, text edits and saves: only meant lines change, and undo restores bytes."""

from __future__ import annotations

import difflib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recipes.editing import EditSession, OutlineRow, RecipeAnalyser
from recipes.errors import RecipeError
from recipes.files import ChangedOnDiskError
from tests.editing.conftest import BASE, CHILD

TEXTS = [
    "7",
    "0.5",
    "1e-5",
    "true",
    "null",
    "plain",
    "'4:00:00'",
    "[1, two]",
    "{a: 1, b: [x]}",
    "a b: c".replace(":", ""),
    '"#x"',
    "${policy.model_name}",
    "ünï",
    "7  # why",
    "[a, b] # both",
    "# nothing but a remark",
    '"two\\nlines\\n"',
    "it's",
    "''",
]
REMARKS = ["", "a remark", "# twice", "key: value", "tab\tinside"]
SNIPPETS = ["x", " ", "\n", "#", ":", "- ", "a: 1\n", "\t", "'", "[", "\r\n", "é"]


def last_with_comments(text: str, line: int) -> int:
    """Return the last of the comment lines right below a line: keys of a section that are commented out."""
    lines = text.splitlines()
    while line < len(lines) and lines[line].lstrip().startswith("#"):
        line += 1
    return line


class Sequence:
    """A session with the history that it should have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session = EditSession.open(path)
        self.analyser = RecipeAnalyser(path, environment={})
        self.past = [self.session.text]
        self.future: list[str] = []

    def rows(self, *states: str) -> list[OutlineRow]:
        if self.session.error is not None:
            return []
        analysis = self.analyser.read(self.session.state)
        self.recipe = analysis.recipe
        return [row for row in analysis.outline.rows if row.state in states]

    def step(self, data: st.DataObject) -> None:
        action = data.draw(st.sampled_from([
            "set", "set", "set", "add", "remove", "remark", "out", "out-in", "item", "text", "text", "undo",
            "undo", "redo", "save", "outside",
        ]))  # fmt: skip
        before = self.session.text
        try:
            getattr(self, action.replace("-", "_"))(data)
        except RecipeError:
            assert self.session.text == before
        if self.session.text != before and action not in ("undo", "redo"):
            self.past.append(self.session.text)
            self.future.clear()
        assert self.session.text == self.past[-1]
        assert self.session.can_undo == (len(self.past) > 1)
        assert self.session.can_redo == bool(self.future)

    def pick(self, data: st.DataObject, *states: str) -> OutlineRow | None:
        rows = self.rows(*states)
        return data.draw(st.sampled_from(rows)) if rows else None

    def set(self, data: st.DataObject) -> None:
        row = self.pick(data, "own", "inherited")
        if row is None:
            return
        before = self.session.text
        self.session.set_text(row.key, data.draw(st.sampled_from(TEXTS)), inherited=self.recipe)
        gone, _ = changed_lines(before, self.session.text)
        if row.state == "own" and row.lines is not None:
            last = row.lines.last if row.kind == "value" else last_with_comments(before, row.lines.last)
            assert all(row.lines.first <= line <= last for line in gone), (row, gone)
        else:
            assert len(gone) <= 1  # `section:` or `{…}` that takes the key

    def add(self, data: st.DataObject) -> None:
        row = self.pick(data, "own", "inherited")
        key = "new_key" if row is None or data.draw(st.booleans()) else f"{row.key}.new_key"
        before = self.session.text
        self.session.add(key, data.draw(st.sampled_from(TEXTS)), inherited=self.recipe if row else None)
        gone, new = changed_lines(before, self.session.text)
        assert len(gone) <= 1
        assert new

    def remove(self, data: st.DataObject) -> None:
        row = self.pick(data, "own")
        if row is None or row.lines is None:
            return
        before = self.session.text
        self.session.remove(row.key, inherited=self.recipe)
        gone, new = changed_lines(before, self.session.text)
        assert len(new) <= 1  # `section: {}`
        assert set(gone) & set(range(row.lines.first, row.lines.last + 1))

    def remark(self, data: st.DataObject) -> None:
        row = self.pick(data, "own")
        if row is None or row.lines is None:
            return
        before, above = self.session.text, data.draw(st.booleans())
        self.session.set_comment(row.key, data.draw(st.sampled_from(REMARKS)), above=above)
        gone, new = changed_lines(before, self.session.text)
        if not above:
            assert gone in ([], [row.lines.first], [row.lines.last])
            assert len(new) == len(gone)

    def out(self, data: st.DataObject) -> None:
        row = self.pick(data, "own")
        if row is None or row.lines is None:
            return
        before = self.session.text
        self.session.comment_out(row.key)
        gone, _ = changed_lines(before, self.session.text)
        # Comment lines below may belong to it; a section that it leaves empty gets `{}`.
        outside = [line for line in gone if not row.lines.first <= line <= row.lines.last]
        texts = before.splitlines()
        assert sum(not texts[line - 1].lstrip().startswith("#") for line in outside) <= 1

    def out_in(self, data: st.DataObject) -> None:
        row = self.pick(data, "own")
        if row is None:
            return
        before = self.session.text
        self.session.comment_out(row.key)
        commented = self.session.text
        try:
            self.session.comment_in(row.key)
        except RecipeError:  # the place is ambiguous without the key; the text stays commented
            assert self.session.text == commented
            self.session.undo()
        else:
            if self.session.text != before:
                assert squeezed(self.session.text) == squeezed(before)
            self.session.undo()
            assert self.session.text == commented
            self.session.undo()
        assert self.session.text == before
        self.future.clear()
        self.future.extend(
            self.session._steps[number].text
            for number in range(len(self.session._steps) - 1, self.session._now, -1)
        )

    def item(self, data: st.DataObject) -> None:
        rows = [row for row in self.rows("own", "inherited") if row.kind == "list"]
        if not rows:
            return
        row = data.draw(st.sampled_from(rows))
        before = self.session.text
        index = data.draw(st.integers(0, row.size))
        self.session.add(f"{row.key}.{index}", data.draw(st.sampled_from(TEXTS)), inherited=self.recipe)
        gone, new = changed_lines(before, self.session.text)
        assert len(gone) <= 1
        assert new

    def text(self, data: st.DataObject) -> None:
        before = self.session.text
        at = data.draw(st.integers(0, len(before)))
        cut = data.draw(st.integers(0, 5))
        new = before[:at] + data.draw(st.sampled_from(SNIPPETS)) + before[at + cut :]
        self.session.replace_text(new)
        assert self.session.text == new
        assert (self.session.error is None) == self.session.state.is_yaml

    def undo(self, data: st.DataObject) -> None:
        if self.session.undo():
            self.future.append(self.past.pop())

    def redo(self, data: st.DataObject) -> None:
        if self.session.redo():
            self.past.append(self.future.pop())

    def save(self, data: st.DataObject) -> None:
        self.session.save(even_broken=True)
        assert self.path.read_bytes() == self.session.text.encode()
        assert not self.session.dirty
        assert self.session.diff_saved() == ""

    def outside(self, data: st.DataObject) -> None:
        """Another program changes the file: saving is refused until something is decided."""
        theirs = self.path.read_bytes() + b"# theirs\n"
        self.path.write_bytes(theirs)
        assert self.session.disk_change() == "changed"
        mine = self.session.text
        with pytest.raises(ChangedOnDiskError):
            self.session.save(even_broken=True)
        assert self.path.read_bytes() == theirs
        if data.draw(st.booleans()):
            self.session.reload()
            assert self.session.text.encode() == theirs
        else:
            self.session.keep_mine()
            assert self.session.text == mine
        assert self.session.disk_change() == ""


def changed_lines(before: str, after: str) -> tuple[list[int], list[int]]:
    """Return the lines of each text, counted from 1, that the other has not."""
    old, new = before.splitlines(), after.splitlines()
    gone: list[int] = []
    added: list[int] = []
    for tag, first, last, start, stop in difflib.SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            gone += range(first + 1, last + 1)
            added += range(start + 1, stop + 1)
    return gone, added


def squeezed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def run(data: st.DataObject, source: Path, steps: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for path in source.parent.glob("*.yaml"):
            shutil.copy(path, folder / path.name)
        sequence = Sequence(folder / source.name)
        for _ in range(data.draw(st.integers(1, steps))):
            sequence.step(data)
        while sequence.session.undo():
            sequence.past.pop()
            assert sequence.session.text == sequence.past[-1]
        assert sequence.session.text.encode() == source.read_bytes()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chain")
    (folder / "base.yaml").write_text(BASE)
    (folder / "child.yaml").write_text(CHILD)
    return folder / "child.yaml"


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_sequences_on_a_small_chain(chain: Path, data: st.DataObject) -> None:
    run(data, chain, 8)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_many_sequences_on_a_small_chain(chain: Path, data: st.DataObject) -> None:
    run(data, data.draw(st.sampled_from([chain, chain.with_name("base.yaml")])), 16)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_many_sequences_on_stock_recipes(corpus: list[Path], data: st.DataObject) -> None:
    names = [path for path in corpus if "distillation" in path.name and path.parent.name == "configs"]
    run(data, data.draw(st.sampled_from(names)), 8)
