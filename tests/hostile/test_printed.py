"""Smallest examples of hostile names and of secrets: visible, masked, never stored."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.request import SubmitRequest
from recipes.checks import Checker, Inputs
from recipes.errors import ExplainedError
from recipes.inheritance import Resolver
from recipes.printable import escaped_json, visible, visible_lines
from recipes.secrets import is_secret_name, masked
from tests.hostile.attempts import SECRET, SECRET_NAME
from tests.launcher.ordering import Desk
from tui.headless.output import ask, print_json, say, show, write_document

HEAD = "distillation: {max_num_steps: 10}\n"
Run = Callable[..., tuple[int, str, str]]


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
