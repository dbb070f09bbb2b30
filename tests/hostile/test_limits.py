"""Smallest examples of files that are none, and of bombs: refused with file and line."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes import reading
from recipes.chain import read_bytes
from recipes.editing import EditSession, RecipeAnalyser
from recipes.errors import Exit, RecipeError
from recipes.inheritance import Resolver
from recipes.limits import LIMITS, RECIPE_BYTES, SCALAR_CHARACTERS, VALUES, Limit, table
from recipes.reading import IrregularFileError, TooLargeError, read_limited, within
from recipes.yaml.check import EditRefusedError
from recipes.yaml.parser_events import scanners_differ
from tests.hostile.attempts import ROOT

HEAD = "distillation: {max_num_steps: 10}\n"
SMALL = Limit("test", 10, "bytes", "")
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("fifo", "a FIFO"),
        ("/dev/zero", "a device"),
        ("/proc/kmsg", "a file of /proc"),
        ("/proc/self/environ", "a file of /proc"),
    ],
)
def test_what_is_no_regular_file_is_neither_recipe_nor_parent(
    run: Run, tmp_path: Path, target: str, kind: str
) -> None:
    if target == "fifo":
        os.mkfifo(tmp_path / "r.yaml")
    else:
        (tmp_path / "r.yaml").symlink_to(target)
    (tmp_path / "child.yaml").write_text(f"{HEAD}defaults: r.yaml\n")
    for command in (("recipe", "resolve"), ("recipe", "lint"), ("memory",), ("recipe", "unset")):
        code, _, err = run(*command, "r.yaml", *(["a"] if command[-1] == "unset" else []))
        assert (code, err.splitlines()[:2]) == (
            2,
            [f"distill-tui: Not a recipe: {kind}, not a regular file", "  in r.yaml"],
        )
    code, _, err = run("recipe", "resolve", "child.yaml")
    assert code == 2
    assert f"The parent recipe r.yaml cannot be read (child.yaml -> r.yaml): Not a recipe: {kind}" in err
    assert "  in child.yaml:2:11\n" in err
    code, out, _ = run("check", "r.yaml")
    assert code == 2 or kind in out


def test_a_read_ends_at_the_limit_and_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "r.yaml"
    file.write_bytes(b"0123456789")
    assert read_limited(file, SMALL) == b"0123456789"
    file.write_bytes(b"01234567890")
    with pytest.raises(TooLargeError, match="larger than 10 bytes"):
        read_limited(file, SMALL)
    with pytest.raises(IsADirectoryError):
        read_limited(tmp_path, SMALL)
    with pytest.raises(OSError, match="null byte"):
        read_limited(tmp_path / "a\0b", SMALL)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(IrregularFileError, match="a FIFO, not a regular file"):
        read_limited(tmp_path / "fifo", SMALL)
    monkeypatch.setattr(reading, "read_regular", lambda *_: time.sleep(3))
    with pytest.raises(TimeoutError, match=r"no answer from the file system for 0\.05 s"):
        read_limited(file, SMALL, deadline_s=0.05)


def test_a_file_that_grows_while_it_is_read_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "r.yaml"
    file.write_bytes(b"0123456789")
    read = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, size) or b"x")
    with pytest.raises(TooLargeError):
        reading.read_regular(file, SMALL)


def test_a_mount_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object) -> bytes:
        raise TimeoutError(110, "no answer from the file system for 15 s")

    monkeypatch.setattr("recipes.chain.read_limited", hang)
    with pytest.raises(RecipeError) as raised:
        read_bytes(tmp_path / "r.yaml")
    assert raised.value.exit_code == Exit.OUTSIDE
    assert raised.value.what == "Cannot read the recipe: no answer from the file system for 15 s"


def test_what_an_action_on_a_thread_raises_is_raised() -> None:
    def fail() -> None:
        raise KeyError("a")

    with pytest.raises(KeyError):
        within(fail, 5)
    assert within(lambda: 3, 5) == 3


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: " + "9" * 5000, 2, "number longer than 128 characters: 9999"),
        ("a: 0x" + "f" * 5000, 2, "number longer than 128 characters: 0xff"),
        ("a: !!int " + "1" * 5000, 2, "number longer than 128 characters: 1111"),
        ("a: !!int ''", 2, "OmegaConf cannot read the value"),
        (f"a: '{'x' * (SCALAR_CHARACTERS.value + 1)}'", 2, "A text longer than 65,536 characters"),
        ("a: " + "[" * 199 + "]" * 199, 2, "Nested deeper than 40 levels"),
        pytest.param("a: [" + "x," * (2 * VALUES.value) + "]", 2, "More than 20,000 values", marks=pytest.mark.slow),
        ("a: &a [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join(['*a' + str(n - 1 or '')] * 9)}]\n" for n in range(1, 9)), 6, "aliases expand to more than"),
        ("a: &a '" + "y" * 60_000 + "'\nb: [" + "*a, " * 20 + "]", 3, "aliases expand to more than 1,048,576 characters"),
        ("a: x${b}\nb: ${a}", 0, "NeMo-RL would refuse"),
        ("k0: xxxxxxxxxx\n" + "".join(f"k{n}: {f'${{k{n - 1}}}' * 10}\n" for n in range(1, 10)), 7, "would make more text than 1,048,576 characters"),
        ("k0: {x: 1}\n" + "".join(f"k{n}: {{x: '${{k{n - 1}}}', y: '${{k{n - 1}}}'}}\n" for n in range(1, 18)), 0, "20,000 values"),
        ("k0: 1\n" + "".join(f"k{n}: ${{k{n - 1}}}\n" for n in range(1, 40)), 0, "20 links"),
        ("a: ${mul:x,1000000000}", 2, "longer than 65,536 (the limit)"),
        ('a: ${mul:"x",1000000000}', 2, "longer than 65,536 (the limit)"),
        ("a: ${x:" + "[" * 30 + "}", 2, "nests brackets deeper than 20 levels"),
        ("a: '${x} " + "y" * 9000 + "'", 2, "text with interpolations longer than 8,192 characters"),
    ],
    ids=["digits", "hex digits", "tagged digits", "empty int", "long text", "brackets", "values", "aliases", "text of aliases", "circle", "text", "sections", "chain", "mul of a word", "mul of a text", "nested brackets", "long interpolation"],
)  # fmt: skip
def test_a_bomb_is_refused_with_file_and_line(
    run: Run, tmp_path: Path, text: str, line: int, what: str
) -> None:
    (tmp_path / "r.yaml").write_text(f"{HEAD}{text}\n")
    code, out, err = run("recipe", "resolve", "r.yaml")
    assert (code, out) == (2, "")
    assert what in err
    assert f"in r.yaml:{line}" in err if line else "in r.yaml" in err
    assert len(err) < 600


def test_products_of_products_are_refused(run: Run, tmp_path: Path) -> None:
    lines = "".join(f"k{n}: ${{mul:${{k{n - 1}}},${{k{n - 1}}}}}\n" for n in range(1, 8))
    (tmp_path / "r.yaml").write_text(f"{HEAD}k0: 99999999999999\n{lines}")
    code, _, err = run("recipe", "resolve", "r.yaml")
    assert code == 2
    assert "a number of more than 512 bits" in err


def test_a_parent_that_is_named_many_times_is_read_and_merged_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d0.yaml").write_text(f"{HEAD}a: 1\n")
    for level in range(1, 23):
        (tmp_path / f"d{level}.yaml").write_text(
            f"defaults: [d{level - 1}.yaml, d{level - 1}.yaml]\nk{level}: 1\n"
        )
    reads: list[Path] = []

    def read(path: Path, limit: Limit) -> bytes:
        reads.append(path)
        return read_limited(path, limit)

    monkeypatch.setattr("recipes.chain.read_limited", read)
    recipe = Resolver().resolve(tmp_path / "d22.yaml")
    assert len(reads) == len(recipe.files) == 23
    # OmegaConf's way, too.
    (tmp_path / "x.yaml").write_text('defaults: d22.yaml\nx: "${oc.create:{a: 1}}"\n')
    assert Resolver().resolve(tmp_path / "x.yaml").values["x"] == {"a": 1}
    (tmp_path / "many.yaml").write_text(f"defaults: [{', '.join(['d0.yaml'] * 101)}]\n")
    code, _, err = run("recipe", "resolve", "many.yaml")
    assert (code, "more than 100 entries of `defaults:`" in err, "in many.yaml:1:11" in err) == (
        2,
        True,
        True,
    )


def test_quotes_in_a_long_line_take_linear_time() -> None:
    started = time.process_time()
    assert not scanners_differ("a: 1 # " + "\"'" * 400_000 + "\u00e9\n")
    assert time.process_time() - started < 2


def test_limits_are_in_the_documentation() -> None:
    assert table() in (ROOT / "docs" / "security.md").read_text(encoding="utf-8"), "python -m recipes.limits"
    assert len({limit.what for limit in LIMITS}) == len(LIMITS)
    assert str(RECIPE_BYTES) == "1 MiB"


@pytest.mark.parametrize("value", ["-5e-6", "-.5", "-1_000", "-0x1f", "-.inf", "-1:30", "-7"])
def test_a_negative_number_is_a_value(run: Run, tmp_path: Path, value: str) -> None:
    for number, words in enumerate(
        (("k", value), (f"k={value}",), ("k", "--", value), ("--copy", "k", value))
    ):
        file = tmp_path / f"{number}.yaml"
        file.write_text(HEAD)
        code, _, err = run("recipe", "set", str(file), *words)
        assert code == 0, err
        assert file.read_text() == f"{HEAD}k: {value}\n"


@pytest.mark.parametrize(
    "words",
    [("get", "r.yaml", "l.²"), ("get", "r.yaml", "l." + "9" * 5000), ("insert", "r.yaml", "l", "²", "1")],
    ids=["power", "digits", "new"],
)
def test_digits_that_are_no_index(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "r.yaml").write_text("l: [1, 2]\n")
    code, _, err = run("recipe", *words)
    assert code in (1, 2)
    assert err.startswith("distill-tui: ")


def test_any_number_of_keys_that_are_commented_out_is_an_outline_in_time(tmp_path: Path) -> None:
    """Alternatives are gathered once: 100,000 of one key took a minute."""
    path = tmp_path / "r.yaml"
    path.write_text("b: 1\n" + "# a: 1\n" * 8000 + "".join(f"# k{number}: 1\n" for number in range(3000)))
    session = EditSession.open(path)
    before = time.process_time()
    rows = RecipeAnalyser(path, environment={}).read(session.state).outline.rows
    assert time.process_time() - before < 30
    assert len(next(row for row in rows if row.key == "a").alternatives) == 8000
    assert 1900 < sum(row.state == "commented" for row in rows) <= 2000
    with pytest.raises(EditRefusedError, match=r"more than once \(lines 2, 3, .*, 11 and 7990 more\)"):
        session.comment_in("a")
