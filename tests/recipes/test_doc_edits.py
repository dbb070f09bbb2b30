"""Edits of documents: what each leaves alone, what it refuses and which way out it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recipes.document import Document
from recipes.errors import Exit, RecipeError
from recipes.keys import KeyMissingError, format_key, parse_key
from recipes.yaml.check import EditRefusedError
from recipes.yaml.comments import Comment
from recipes.yaml.reader import read

ANCHORED = """\
base: &BASE
  lr: 1.0e-5
  inner: &INNER
    a: 1
    b: 2
teacher:
  <<: *BASE
  name: t
  inner:
    <<: *INNER
    b: 3
alias: *BASE
"""


def after(text: str, **edits: Any) -> str:
    document = Document(text)
    for key, value in edits.items():
        document.set(key, value)
    return document.text


def test_setting_an_anchored_value_says_what_else_changes() -> None:
    document = Document(ANCHORED)
    assert document.shared_with("base.lr") == ["teacher.lr", "alias.lr"]
    assert document.set("base.lr", 1).also == ("teacher.lr", "alias.lr")
    assert document.shared_with("base.inner.b") == ["alias.inner.b"]
    assert document.shared_with("teacher.name") == []


def test_setting_a_merged_key_adds_a_local_one() -> None:
    document = Document(ANCHORED)
    change = document.set("teacher.lr", 2.0e-6)
    assert change.also == ()
    assert document.text == ANCHORED.replace("    b: 3\n", "    b: 3\n  lr: 2.0e-6\n")
    assert document.get("base.lr") == 1e-5


def test_a_key_inside_a_merged_section_is_refused_or_copied() -> None:
    document = Document("b: &B {s: {x: 1, y: 2}}\nc:\n  <<: *B\nd: *B\n")
    with pytest.raises(EditRefusedError, match="as a whole"):
        document.set("c.s.x", 5)
    with pytest.raises(EditRefusedError, match=r"inside|is \*B"):
        document.set("d.s.x", 5)
    document.set("c.s.x", 5, copy=True)
    document.set("d.s.x", 6, copy=True)
    assert document.get("") == {
        "b": {"s": {"x": 1, "y": 2}},
        "c": {"s": {"x": 5, "y": 2}},
        "d": {"s": {"x": 6, "y": 2}},
    }
    assert document.undo()
    assert document.undo()
    assert not document.undo()


@pytest.mark.parametrize("key", ["teacher.lr", "alias.lr", "teacher.inner.a"])
def test_deleting_a_merged_key_is_refused_with_the_way_out(key: str) -> None:
    document = Document(ANCHORED)
    with pytest.raises(EditRefusedError) as caught:
        document.delete(key)
    assert caught.value.exit_code == Exit.FAILED
    assert "&" in caught.value.fix
    assert document.text == ANCHORED


def test_deleting_an_anchor_in_use_is_refused() -> None:
    with pytest.raises(EditRefusedError, match="anchor &BASE"):
        Document(ANCHORED).delete("base")


def test_an_edit_that_breaks_a_later_merge_for_omegaconf_is_refused() -> None:
    # OmegaConf 2.3 finds a duplicate key where a mapping that overrides a merged key is merged again above.
    text = "a: &A {x: 1}\nouter:\n  b: &B\n    <<: *A\nc:\n  <<: *B\n"
    document = Document(text)
    try:
        document.set("outer.b.x", 2)
    except EditRefusedError:
        assert document.text == text
    else:
        assert read(document.text, "t")["outer"]["b"]["x"] == 2


def test_missing_mappings_are_created_in_the_files_own_indentation() -> None:
    text = "a:\n    b:\n        c: 1\n    d:\n      - x\n"
    assert after(text, **{"a.e.f.g": 2}) == text + "    e:\n        f:\n            g: 2\n"
    assert after("", **{"a.b": 1}) == "a:\n  b: 1\n"
    assert after("# head only\n", a=1) == "# head only\na: 1\n"
    assert after("a: {}\n", **{"a.b.c": 1}) == "a: {b: {c: 1}}\n"
    assert after("a:   # later\nb: 1\n", **{"a.x": 1}) == "a:   # later\n  x: 1\nb: 1\n"


def test_list_items_are_set_added_and_removed() -> None:
    text = "l:\n# first\n- a # one\n- b\nm: [1, 2]  # powers\n"
    document = Document(text)
    document.append("l", {"k": 1, "n": [1]})
    document.insert_item("l", 0, "z")
    document.insert_item("m", 1, "no")
    document.delete("l.2")
    document.set("m.0", 7)
    assert document.text == 'l:\n- z\n# first\n- a # one\n- k: 1\n  n:\n  - 1\nm: [7, "no", 2]  # powers\n'
    with pytest.raises(EditRefusedError, match="no item 9"):
        document.set("m.9", 1)
    document.set("m.3", 4)
    assert document.get("m") == [7, "no", 2, 4]


@pytest.mark.parametrize(
    ("old", "typed", "value", "new"),
    [
        ("1.0", "1e-5", 1e-5, "1e-5"),
        ("1.0", "1.0e-06", 1e-6, "1.0e-06"),
        ("1.0", "0.00002", 2e-5, "0.00002"),
        ("False", "true", True, "true"),
        ("'x'", "y", "y", "'y'"),
        ("x", "'y z'", "y z", "'y z'"),
        ('"x"', "yes", True, "yes"),
        ("1", "0x10", 16, "0x10"),
        ("x", "'1:00:00:00'", "1:00:00:00", "'1:00:00:00'"),
        ("x", "1:00:00:00", 216000, "1:00:00:00"),
        ("1", "1_000", 1000, "1_000"),
        ("x", '"caf\\u00e9"', "café", '"caf\\u00e9"'),
        ("x", "2024-01-02", "2024-01-02", "2024-01-02"),
        ("x", "${a.b}", "${a.b}", "${a.b}"),
        ("x", "~", None, "~"),
        ("null", '"no"', "no", '"no"'),
    ],
)
def test_values_are_written_as_typed(old: str, typed: str, value: Any, new: str) -> None:
    from recipes.yaml.typed import read_typed

    document = Document(f"k: {old} # why\n")
    read_value = read_typed(typed)
    assert read_value.value == value
    document.set("k", read_value.value, spelling=read_value.spelling)
    assert document.text == f"k: {new} # why\n"
    assert read(document.text, "t")["k"] == value


def fail_halfway(document: Document) -> None:
    with document.group():
        document.set("a", 9)
        document.delete("nothing")


def test_undo_redo_and_groups() -> None:
    document = Document("a: 1\nb: 2\n")
    with document.group():
        document.set("a", 3)
        document.set("b", 4)
    document.set("a", 5)
    assert document.undo()
    assert document.text == "a: 3\nb: 4\n"
    assert document.undo()
    assert document.text == "a: 1\nb: 2\n"
    assert [document.redo() for _ in range(3)] == [True, True, False]
    assert document.text == "a: 5\nb: 4\n"
    document.undo()
    with pytest.raises(RecipeError):
        fail_halfway(document)
    assert document.text == "a: 3\nb: 4\n"
    assert document.redo()


def test_diff_shows_only_the_edit() -> None:
    document = Document("a: 1\nb: 2\n", "r.yaml")
    assert (document.changed, document.diff()) == (False, "")
    document.set("b", 3)
    assert document.changed
    assert document.diff() == "--- r.yaml\n+++ r.yaml\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n"


COMMENTED = """\
# the file's head
a: 1

# about b
# and more
b:  # beside b
  c: |  # beside c
    # text
  d: [1, 2]
"""


def test_comments_are_read_set_and_removed() -> None:
    document = Document(COMMENTED)
    assert document.comment("a") == Comment("", "")
    assert document.comment("b") == Comment("about b\nand more", "beside b")
    assert document.comment("b.c") == Comment("", "beside c")
    assert document.comment("b.d.0") == Comment("", "")
    document.set_comment("b", "new")
    document.set_comment("b.d", "pair")
    document.set_comment("b.c", "")
    document.set_comment("b", "one\n\nthree", above=True)
    document.set_comment("a", "ours", above=True)
    assert document.text == (
        "# the file's head\n# ours\na: 1\n\n# one\n#\n# three\nb:  # new\n"
        "  c: |\n    # text\n  d: [1, 2]  # pair\n"
    )
    document.set_comment("b", "", above=True)
    assert "# one" not in document.text
    with pytest.raises(EditRefusedError, match="one line"):
        document.set_comment("a", "two\nlines")
    with pytest.raises(EditRefusedError, match="share"):
        document.set_comment("b.d.0", "first of two")


def test_delete_takes_the_comments_above_only_if_asked() -> None:
    text = "a: 1\n\n# about b\nb: 2  # beside\n# about c\nc: 3\n"
    document = Document(text)
    document.delete("b")
    assert document.text == "a: 1\n\n# about b\n# about c\nc: 3\n"
    document.undo()
    document.delete("b", with_comments=True)
    assert document.text == "a: 1\n\n# about c\nc: 3\n"


def test_bom_crlf_and_missing_line_ends_stay() -> None:
    assert Document("\ufeffa: 1\r\nb: 2").to_bytes() == "\ufeffa: 1\r\nb: 2".encode()
    assert after("\ufeffa: 1\r\nb: 2", b=3, c=4) == "\ufeffa: 1\r\nb: 3\r\nc: 4"
    assert after("a: 1 # a\ttab\nb: 'x\ty'\nc: False\n", a=2, c=True) == "a: 2 # a\ttab\nb: 'x\ty'\nc: True\n"
    assert after("a: 1", a="x\n") == 'a: "x\\n"'
    assert after("a: 1\nb: 2", a="x\n", c="y\nz") == 'a: |\n  x\nb: 2\nc: "y\\nz"'
    assert after("t: |\n  text", a=1) == "t: |-\n  text\na: 1"


def test_files_with_problems_open_and_take_only_the_repair() -> None:
    document = Document("a: 1\nb: 2\na: 3\n", "dup.yaml")
    assert document.problems == ("dup.yaml:3:1: duplicate key 'a'",)
    with pytest.raises(EditRefusedError, match="duplicate key"):
        document.set("b", 3)
    document.delete("a")
    assert document.text == "a: 1\nb: 2\n"
    assert not document.problems


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"a: 1\n\tb: 2\n", 2, 1),
        (b"a: 'x\n", 2, 1),
        (b"a: [1\nb: 2\n", 2, 2),
        (b"\xff\xfea: 1", 1, 1),
        (b"a: \x00", 1, 4),
    ],
)
def test_what_is_no_yaml_says_where(data: bytes, line: int, column: int, tmp_path: Path) -> None:
    from recipes.errors import FilePosition

    path = tmp_path / "r.yaml"
    path.write_bytes(data)
    with pytest.raises(RecipeError) as caught:
        Document.open(path)
    assert caught.value.where == FilePosition(str(path), line, column)


def test_keys_are_read_and_written_back() -> None:
    for text in ["a", "a.b.0", 'a."b.c".d', '"".x', '"with space"', r'"q\"uote".back\slash', r'"a \\b"']:
        assert format_key(parse_key(text)) == text
    assert parse_key(".") == ()
    for bad in ["a..b", "a.", '"open', 'a."b"c']:
        with pytest.raises(RecipeError, match="invalid key"):
            parse_key(bad)


def test_keys_that_are_no_strings_are_found_by_their_spelling() -> None:
    document = Document("1: a\nfalse: b\n'2': c\n2: d\n")
    assert document.get("1") == "a"
    assert document.get("false") == "b"
    assert document.get("2") == "c"
    document.set("1", "e")
    assert document.text.startswith("1: e\n")
    with pytest.raises(KeyMissingError):
        document.get("3")


def test_insert_refuses_what_is_there() -> None:
    document = Document(ANCHORED)
    for parent, key in (("base", "lr"), ("teacher", "lr"), ("", "base")):
        with pytest.raises(EditRefusedError, match="already exists"):
            document.insert(parent, key, 1)
    document.insert("new.section", "key", 1)
    assert document.get("new.section.key") == 1


def test_what_the_scanners_read_differently_is_quoted_and_never_taken_on_trust(tmp_path: Path) -> None:
    from recipes.inheritance import resolve

    document = Document("a: []\n")
    document.append("a", {"0?": None, "q": "x?"})
    assert document.text == 'a: [{"0?": null, q: "x?"}]\n'
    for text in ("a: [b?]\n", "a: {b:\t1}\n"):  # libyaml and ruamel.yaml read these, OmegaConf does not
        (tmp_path / "r.yaml").write_text(text)
        with pytest.raises(RecipeError, match="OmegaConf"):
            resolve(tmp_path / "r.yaml")


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "hello\n"])
def test_a_key_is_refused_where_the_recipe_holds_none(text: str) -> None:
    with pytest.raises(EditRefusedError, match="The recipe is not a mapping of keys to values"):
        Document(text).set("a.b", 1)
