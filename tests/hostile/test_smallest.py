"""Smallest example of each kind of hostile recipe, name, secret and save."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.request import SubmitRequest
from recipes import reading
from recipes.attributes import Attributes
from recipes.chain import read_bytes
from recipes.checks import Checker, Inputs
from recipes.document import Document
from recipes.errors import Exit, ExplainedError, RecipeError
from recipes.files import AttributesError, save
from recipes.inheritance import Resolver
from recipes.limits import LIMITS, RECIPE_BYTES, SCALAR_CHARACTERS, VALUES, Limit, table
from recipes.locks import Holder, LockedError, RecipeLock
from recipes.printable import escaped_json, visible, visible_lines
from recipes.reading import IrregularFileError, TooLargeError, read_limited, within
from recipes.secrets import is_secret_name, masked
from recipes.yaml.parser_events import scanners_differ
from tests.hostile.attempts import ROOT, SECRET, SECRET_NAME
from tests.launcher.ordering import Desk
from tui.cli import main
from tui.headless.output import ask, print_json, say, show, write_document

HEAD = "distillation: {max_num_steps: 10}\n"
SMALL = Limit("test", 10, "bytes", "")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command in a directory of its own: exit code, output, messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)

    def run_command(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main("0", list(argv))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_command


# Files that are none


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


# Bombs


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


# What is printed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a␛[2Jb"),
        ("a\x00\x07\nb\x7f", "a␀␇␊b␡"),
        ("a\x9b2Jb\x9d", "a␛[2Jb␛]"),
        ("a\u202eb\u061c\u2028\ufeff", "a<U+202E>b<U+061C><U+2028><U+FEFF>"),
        ("a\ud800\udcff", "a<U+D800><U+DCFF>"),
        ("\U000e0041", "<U+E0041>"),
        ("größe 中文 ✓ ▶ 🔍 \u2764\ufe0f", "größe 中文 ✓ ▶ 🔍 \u2764"),
        ("tab\there", "tab     here"),
    ],
)
def test_hostile_characters_become_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(visible(text)) == shown
    assert json.loads(escaped_json(json.dumps([text], ensure_ascii=False))) == json.loads(json.dumps([text]))
    assert escaped_json(json.dumps([text], ensure_ascii=False)).encode()


def test_lines_stay_lines() -> None:
    assert visible_lines("a\r\nb\x1b\n") == "a\nb␛\n"


def test_an_error_has_three_lines_whatever_it_quotes() -> None:
    error = ExplainedError("bad\nname \x1b[2J", where=Path("a\nb\u202e"), fix="do\x9bthat")
    assert str(error) == "bad␊name ␛[2J\n  in a␊b<U+202E>\n  do␛[that"


def test_names_and_keys_are_printed_visibly(run: Run, tmp_path: Path) -> None:
    name = "r\x1b]52;c;eA==\x07\u202e.yaml"
    (tmp_path / name).write_text(f'{HEAD}defaults: "x\\e[2J.yaml"\n')
    for words in (("resolve", name), ("get", name, "\x1b[2J\u061c"), ("resolve", f"{name}x"), ("lint", name)):
        code, out, err = run("recipe", *words)
        assert code in (1, 2)
        assert err.startswith("distill-tui: ")
        assert "␛" in err
        assert not {"\x1b", "\u202e", "\u061c"} & set(out + err)


def test_json_escapes_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "\x9b\u202e\u2028\ud800\U000e0041"})
    out = capsys.readouterr().out
    assert out == '{\n "a": "\\u009b\\u202e\\u2028\\ud800\\udb40\\udc41"\n}\n'
    assert json.loads(out) == {"a": "\x9b\u202e\u2028\ud800\U000e0041"}


def test_output_goes_to_terminals_of_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = (io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    show("ü中\u202e")
    write_document("a: ü\n")
    print_json({"a": "ü中\U0001f50d\ud800"})
    say("ü")
    printed = [stream.buffer.getvalue() for stream in (out, err)]
    assert printed == [
        b'\\xfc\\u4e2d<U+202E>\na: \\xfc\n{\n "a": "\\u00fc\\u4e2d\\ud83d\\udd0d\\ud800"\n}\n',
        b"\\xfc\n",
    ]


def test_a_document_is_visible_on_a_terminal_and_untouched_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_document("a: \u202e1\n")
    assert capsys.readouterr().out == "a: \u202e1\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_document("a: \u202e1\n")
    write_document("b: \u2028\n".encode())
    assert capsys.readouterr().out == "a: <U+202E>1\nb: <U+2028>\n"


# Secrets


def test_a_secret_of_the_environment_stays_an_interpolation(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    monkeypatch.setenv("PLAIN_SETTING", "shown")
    text = (
        f"{HEAD}key: ${{oc.env:{SECRET_NAME}}}\nname: {SECRET_NAME}\nodd: \"${{oc.env: '{SECRET_NAME}'}}\"\n"
        "dynamic: ${oc.env:${name}}\nsection: {inner: 'x ${key}'}\ncopy: ${section}\nplain: ${oc.env:PLAIN_SETTING}\n"
    )
    (tmp_path / "r.yaml").write_text(text)
    code, out, _ = run("recipe", "resolve", "r.yaml", "--json")
    assert code == 0
    assert json.loads(out)["recipe"] == {
        "distillation": {"max_num_steps": 10},
        "key": f"${{oc.env:{SECRET_NAME}}}",
        "name": SECRET_NAME,
        "odd": f"${{oc.env: '{SECRET_NAME}'}}",
        "dynamic": "${oc.env:${name}}",
        "section": {"inner": "x ${key}"},
        "copy": "${section}",
        "plain": "shown",
    }
    assert Resolver().resolve(tmp_path / "r.yaml").get("copy.inner") == f"x {SECRET}"
    for words in (
        ("get", "r.yaml", "key", "--effective"),
        ("origin", "r.yaml", "copy.inner"),
        ("show", "--effective", "r.yaml"),
    ):
        _, out, err = run("recipe", *words)
        assert SECRET not in out + err
    (tmp_path / "parent.yaml").write_text(f"defaults: /x/${{oc.env:{SECRET_NAME}}}/y.yaml\n")
    code, _, err = run("recipe", "resolve", "parent.yaml")
    assert (code, f"/x/«{SECRET_NAME}»/y.yaml" in err) == (2, True)


def test_a_secret_is_not_stored_with_a_run_and_reaches_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk.at(tmp_path)
    monkeypatch.setenv(SECRET_NAME, SECRET)
    desk = replace(desk, environment={**desk.environment, SECRET_NAME: SECRET})
    overrides = (f"++logger.wandb.key=${{oc.env:{SECRET_NAME}}}",)
    plan = desk.plan_of(SubmitRequest(desk.recipe, 1, "2:00:00", overrides=overrides))
    stored = plan.submission.files["effective.yaml"].decode()
    assert f"key: ${{oc.env:{SECRET_NAME}}}" in stored
    holders = [name for name, data in plan.submission.files.items() if SECRET.encode() in data]
    assert holders == ["secrets.env"]
    assert SECRET not in plan.submission.spec.model_dump_json() + repr(plan.submission.plans)


def test_a_check_does_not_quote_a_secret(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    (tmp_path / "r.yaml").write_text(
        f"{HEAD}policy: {{model_name: x, precision: '${{oc.env:{SECRET_NAME}}}'}}\n"
    )
    report = Checker(Inputs.of(environment={}, checkout=tmp_path)).check(tmp_path / "r.yaml", [])
    assert SECRET not in repr(report.results)
    (tmp_path / "r.yaml").write_text(f"{HEAD}defaults: ${{oc.env:{SECRET_NAME}}}.yaml\n")
    report = Checker(Inputs.of(environment={}, checkout=tmp_path)).check(tmp_path / "r.yaml", [])
    assert f"«{SECRET_NAME}».yaml" in report.results[0].message


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "MYSQL_PWD", "SSHPASS", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "DB_PASS", "GITHUB_PAT", "secret", "LLM_JUDGE_X"]
)  # fmt: skip
def test_names_that_mark_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["HOME", "PWD", "OLDPWD", "PATH", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "HF_TOKEN_PATH", "SSH_AUTH_SOCK", "KEYBOARD", "PASSAGE"]
)  # fmt: skip
def test_names_that_mark_none(name: str) -> None:
    assert not is_secret_name(name)


def test_values_of_secrets_are_masked_wherever_they_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "A_TOKEN": "abc",
        "B_TOKEN": "hunter2",
        "C_TOKEN": "hunter2-and-more",
        "PROXY": "http://me:pass-word@host",
    }
    assert (
        masked("abc hunter2 xhunter2x hunter2-and-more/x", environment)
        == "abc «B_TOKEN» xhunter2x «C_TOKEN»/x"
    )
    assert masked("to pass-word at host", environment) == "to «PROXY» at host"
    assert masked("true", {"X_TOKEN": "true"}) == "true"


def test_every_way_of_printing_masks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    show(f"a {SECRET}")
    say(f"a {SECRET}")
    print_json({SECRET: [SECRET, {"x": f"b{SECRET}"}]})
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert not ask(f"{SECRET}?")
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert printed.out.count(f"«{SECRET_NAME}»") == 4


# Saving


def test_an_access_list_and_attributes_are_kept(tmp_path: Path) -> None:
    from tests.hostile.write_inputs import access_list

    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    try:
        os.setxattr(path, "user.note", b"kept")
        os.setxattr(path, "system.posix_acl_access", access_list({4711: 6}, 0))
    except OSError:
        pytest.skip("no extended attributes in this file system")
    before = Attributes.of(path)
    save(path, b"a: 2\n", b"a: 1\n")
    assert Attributes.of(path) == before
    assert before.extended.keys() == {"user.note", "system.posix_acl_access"}


def test_what_cannot_be_kept_is_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    with contextlib.suppress(OSError):
        os.setxattr(path, "user.x", b"1")
    real = Attributes.of

    def of(file: Path | int) -> Attributes:
        own = real(file)
        return replace(own, uid=own.uid + 4711) if file == path else replace(own, extended={})

    monkeypatch.setattr(Attributes, "of", of)
    code, _, err = run("recipe", "set", "r.yaml", "a", "2")
    assert code == 1
    assert "Not saved: the file would change besides its text: owner " in err
    assert "attribute user.x lost" in err or not os.listxattr(path)
    assert path.read_text() == "a: 1\n"
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdin, "readline", lambda: "n\n")
    assert run("recipe", "set", "r.yaml", "a", "2")[0] == 1
    monkeypatch.setattr(sys.stdin, "readline", lambda: "y\n")
    assert run("recipe", "set", "r.yaml", "a", "2")[0] == 0
    assert path.read_text() == "a: 2\n"
    assert run("recipe", "set", "r.yaml", "a", "3", "--accept-changes")[0] == 0
    assert path.read_text() == "a: 3\n"
    with pytest.raises(AttributesError) as raised:
        save(path, b"a: 4\n", b"a: 3\n")
    assert raised.value.exit_code == Exit.FAILED


@pytest.mark.parametrize("name", ["x" * 255, "é" * 125 + ".yaml", "中" * 80], ids=["x", "é", "中"])
def test_the_longest_names_are_saved(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("a: 1\n")
    document = Document.open(path)
    document.set("a", 2)
    document.save()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert path.read_text() == "a: 2\n"


# The lock


def test_a_held_lock_says_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    with RecipeLock(path) as held:
        assert json.loads(held.file.read_bytes())["pid"] == os.getpid()
        with (
            pytest.raises(LockedError, match=rf"is being edited by .* \(process {os.getpid()} on "),
            RecipeLock(path, wait_s=0.05),
        ):
            raise AssertionError
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]
    with RecipeLock(path, wait_s=0):
        pass


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    code = f"import os, signal\nfrom pathlib import Path\nfrom recipes.locks import RecipeLock\nRecipeLock(Path({str(path)!r})).__enter__()\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert RecipeLock(path).file.exists()
    with RecipeLock(path, wait_s=0):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]


@pytest.mark.parametrize("kernel_locks", [True, False])
def test_a_holder_on_another_machine_is_waited_for_and_then_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kernel_locks: bool
) -> None:
    def no_lock(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    if not kernel_locks:
        monkeypatch.setattr(fcntl, "flock", no_lock)
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    lock = RecipeLock(path, wait_s=5, stale_s=0.2)
    lock.file.write_text('{"user": "alice", "host": "another", "pid": 1, "started": 2}')
    with pytest.raises(LockedError, match=r"edited by alice \(process 1 on another\)"):
        RecipeLock(path, wait_s=0.05, stale_s=60).__enter__()
    started = time.monotonic()
    with lock:
        assert time.monotonic() - started >= 0.2
        with pytest.raises(LockedError):
            RecipeLock(path, wait_s=0.05).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]


def test_without_kernel_locks_a_holder_on_this_machine_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    lock = RecipeLock(path, wait_s=2)
    gone = Holder.this()._replace(started=1)
    lock.file.write_text(json.dumps(gone._asdict()))
    with lock:
        assert json.loads(lock.file.read_bytes())["started"] != 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 2000, b'{"pid": {}}', b"\xff"],
    ids=["empty", "cut", "deep", "other", "bytes"],
)
def test_a_damaged_lock_file_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("a: 1\n")
    RecipeLock(path).file.write_bytes(content)
    with RecipeLock(path, wait_s=0):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.yaml"]


def test_where_no_lock_can_be_made_saving_says_what_is_wrong(tmp_path: Path) -> None:
    with RecipeLock(tmp_path / "none" / "r.yaml") as lock:
        assert lock.file.parent.name == "none"
    os.mkfifo(RecipeLock(tmp_path / "r.yaml").file)
    with RecipeLock(tmp_path / "r.yaml", wait_s=0):
        pass
