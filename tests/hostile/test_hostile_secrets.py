"""Hostile secrets: whatever their form and wherever they stand, none leaves; what only looks like one stays."""

from __future__ import annotations

import base64
import html
import io
import json
import shlex
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from urllib.parse import quote, quote_plus

import pytest

from launcher.logs.events import JobState, Role
from launcher.logs.sources import LogFile
from launcher.monitor.notify import notification_of
from launcher.monitor.redact import Redactor
from launcher.monitor.report import tail
from launcher.monitor.state import RunState
from launcher.runs import SUMMARY
from launcher.saved_summary import save_summary
from launcher.text import clean_lines
from launcher.transports.local import LocalTransport
from recipes.secret_finder import find_secrets, hidden
from recipes.secrets import masked
from tests.hostile.attempts import SECRET, SECRET_NAME
from tests.hostile.secret_inputs import FORMS, PlantedSecret, form, harmless_texts, planted_secrets
from tests.tui.replay import make_run
from tui.crash_report import crash_report
from tui.logview.line import line_of

Run = Callable[..., tuple[int, str, str]]
SHOWN = 4
"""Characters of a secret that may be left."""
REDACT = Redactor()


def left_of(secret: str, text: str) -> str:
    """Return the longest part of a secret that is in a text, beyond the characters that may be left."""
    for length in range(len(secret), SHOWN, -1):
        for start in range(len(secret) - length + 1):
            if secret[start : start + length] in text:
                return secret[start : start + length]
    return ""


def leaks(planted: Iterable[PlantedSecret], redact: Callable[[str], str] = REDACT) -> list[str]:
    """Return what is left of secrets after redaction, and texts that change at a second one."""
    bad = []
    for item in planted:
        once = redact(item.text)
        rest = left_of(item.secret, clean_lines(once))
        if rest:
            bad.append(f"{item.kind}: {rest!r} of {item.text!r} is left in {once!r}")
        elif redact(once) != once:
            bad.append(f"{item.kind}: {once!r} is not left alone")
    return bad


def test_secrets_of_every_kind_are_removed() -> None:
    assert leaks(planted_secrets(Random(1), 240)) == []


def test_what_only_looks_like_a_secret_stays() -> None:
    assert [text for text in harmless_texts(Random(1), 120) if REDACT(text) != text] == []
    assert [text for text in harmless_texts(Random(2), 120) if masked(text, {}) != text] == []


@pytest.mark.slow
def test_many_secrets_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    planted, harmless = list(planted_secrets(Random(3), 4000)), list(harmless_texts(Random(3), 2000))
    bad = leaks(planted)
    changed = [text for text in harmless if REDACT(text) != text]
    with capsys.disabled():
        print(f"\nsecrets: tried {len(planted) + len(harmless)}, bad {len(bad) + len(changed)}")
    assert (bad, changed) == ([], [])


def test_whatever_is_printed_has_no_key_of_a_service() -> None:
    random = Random(4)
    for kind in FORMS:
        if kind not in ("wandb", "wandb capitals"):  # a commit looks the same
            secret = form(random, kind)
            assert masked(f"x {secret} y", {}).startswith("x «removed: "), kind
            assert not left_of(secret.rpartition("/")[2], masked(f"x {secret} y", {})), kind


def test_a_value_is_masked_in_every_way_of_writing_it() -> None:
    environment = {"DB_PASSWORD": 'a"b c/ü%9', "MULTI_TOKEN": "line-one-of-secret\nline-two-of-secret"}
    text = 'a"b c/ü%9 a%22b%20c%2F%C3%BC%259 a%22b%20c/%C3%BC%259 a\\"b c/\\u00fc%9 YSJiIGMvw7wlOQ== line-two-of-secret'
    assert masked(text, environment) == " ".join([*["«DB_PASSWORD»"] * 4, "«DB_PASSWORD»==", "«MULTI_TOKEN»"])
    assert masked("https://u:pa/ss-word@h", {"PROXY": "https://u:pa/ss-word@h"}) == "«PROXY»"
    assert masked("x pa/ss-word", {"PROXY": "https://u:pa/ss-word@h"}) == "x «PROXY»"


VALUES = (
    "ab\x1b[1mcdefghij", "abcd\u200befgh-ij", "abc\x07defghij", "abcd\udcffefghij", "\u202eabcdefghij", "abc\tdefghijk",
    "abcd\u00a0efghij", "ab'cd\"efgh", "ab$HOME`x`cdef", "ab%41cdefgh", "ab&cd<ef>gh", "\u043f\u0430\u0440\u043e\u043b\u044c-x",
    "abc\U0001f511defgh", "ab\\ncd\\efgh", "ab+cd/ef=gh", "plain1234value",
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_masked_in_the_spelling_of_any_program(value: str) -> None:
    data = value.encode("utf-8", "surrogateescape")
    spelled = [
        value, json.dumps(value), json.dumps(json.dumps(value)), json.dumps(value, ensure_ascii=False), repr(value), ascii(value),
        shlex.quote(value), html.escape(value), base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode(),
        quote(data), quote_plus(data), data.hex(), data.hex().upper(), repr(data),
        *(base64.b64encode(user + data).decode() for user in (b"u:", b"me:", b"bob:")),
    ]  # fmt: skip
    for text in spelled:
        result = masked(f"is <{text}> end", {"MY_TOKEN": value})
        assert "«MY_TOKEN»" in result
        assert len(result) <= len("is <«MY_TOKEN»> end") + 14  # quotes, and letters of the user's name


def test_a_secret_in_pieces_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = f"a {SECRET[:5]}\x1b[31m{SECRET[5:9]}\u200b{SECRET[9:]} b"
    assert masked(pieces, {SECRET_NAME: SECRET}) == f"a «{SECRET_NAME}» b"
    assert [span.kind for span in find_secrets("hf" + "_\x1b[0mAbCdEfGhIjKl")] == ["Hugging Face token"]
    monkeypatch.setenv("X", "1")
    assert masked("İ HF_TOKEN=abcdefgh", {}) == "İ HF_TOKEN=«removed: secret by its name»"


def test_a_log_line_on_the_screen_has_dots_of_the_same_length() -> None:
    secret = "hf" + "_" + "AbCdEfGhIjKl"
    assert hidden(f"a {secret} b") == f"a {'•' * 15} b"
    assert line_of(f"a {secret} b".encode()).text == f"a {'•' * 15} b"
    coloured = line_of(f"\x1b[31ma {secret[:6]}\x1b[32m{secret[6:]}\x1b[0m b".encode())
    assert coloured.text == f"a {'•' * 15} b"
    assert [(span.start, span.stop) for span in coloured.spans] == [(0, 8), (8, 17)]


def test_a_key_over_several_lines_leaves_no_line() -> None:
    begin, end = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"
    prefixed = [f"(W pid=7) {line}" for line in ("a", begin, "short", "zz9", end, "b")]
    assert REDACT.lines(prefixed) == ["(W pid=7) a", "(W pid=7) «removed»", *["«removed»"] * 3, "(W pid=7) b"]
    assert REDACT.lines(["tail of it", end, "b"]) == ["«removed»", "«removed»", "b"]


def planted_log(directory: Path, seed: int, count: int) -> list[PlantedSecret]:
    """Make a run's logs with secrets in them; return these."""
    directory.mkdir()
    planted = list(planted_secrets(Random(seed), count))
    lines = "\n".join(f"{item.text}\n-- {number} ok\n" for number, item in enumerate(planted))
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB"
    key = "hf" + "_" + "AbCdEfGhIjKlMnOp"
    text = f"{lines}\n{oom} with HF_TOKEN={key}\n{lines}"
    (directory / "ray-driver.log").write_bytes(text.encode("utf-8", "surrogateescape"))
    (directory / "ray-worker-\udcff\x1b[2J.log").write_bytes(b"\xff\x00\x1b]52;c;eA==\x07 " + text.encode())
    return [*planted, PlantedSecret("finding", oom, key)]


def leaking(planted: Iterable[PlantedSecret], text: str) -> list[str]:
    plain = clean_lines(text)
    return [f"{item.kind}: {item.text!r}" for item in planted if item.secret in plain]


def report_and_archive(run: Run, tmp_path: Path, seed: int, count: int) -> tuple[list[str], str]:
    planted = planted_log(tmp_path / "logs", seed, count)
    code, out, err = run("report", "logs", "--json", "--tar", "r.tgz", "--lines", "100000")
    assert code == 0, err
    _, watched, _ = run("watch", "--once", "--json", "logs")
    assert left_of(planted[-1].secret, watched) == ""
    texts = [out, run("report", "logs")[1]]
    with tarfile.open(tmp_path / "r.tgz") as archive:
        files = [archive.extractfile(item) or io.BytesIO() for item in archive.getmembers()]
        assert len(files) == 4
        texts += [file.read().decode() for file in files]
    return [leak for text in texts for leak in leaking(planted, text)], texts[0]


def test_no_secret_leaves_by_a_report_or_its_archive(run: Run, tmp_path: Path) -> None:
    leaks, printed = report_and_archive(run, tmp_path, 5, 120)
    assert leaks == []
    report = json.loads(printed)
    assert report["redacted"]["Hugging Face token"] >= 1
    assert sum(report["redacted"].values()) >= 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_secret_leaves_by_many_reports(run: Run, tmp_path: Path) -> None:
    assert report_and_archive(run, tmp_path, 6, 1500)[0] == []


def test_an_archive_with_a_secret_is_not_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted_log(tmp_path / "logs", 7, 1)
    monkeypatch.setattr(
        "launcher.monitor.report.tail",
        lambda *_: "DB_PASSWORD=correct-horse-9",  # a rule that failed
    )
    code, _, err = run("report", "logs", "--tar", "r.tgz")
    assert (code, (tmp_path / "r.tgz").exists()) == (3, False)
    assert "a secret would be left in report/logs/" in err
    assert "correct-horse" not in err


def test_the_end_of_a_log_that_begins_within_a_key(tmp_path: Path) -> None:
    end = "-----END OPENSSH PRIVATE" + " KEY-----"
    (tmp_path / "x.log").write_text(f"{'b3Blbn' * 3}\nzz9\n{end}\nafter\n")
    log = LogFile("x", str(tmp_path / "x.log"), Role.DRIVER)
    assert tail(LocalTransport(), log, 10, REDACT) == "«removed»\n«removed»\n«removed»\nafter\n"


def test_a_change_of_a_secret_key_of_the_recipe_is_removed(run: Run, tmp_path: Path) -> None:
    from launcher.monitor.report import ReportFacts, report_json
    from launcher.monitor.watch import watch_directory

    watch = watch_directory(LocalTransport(), str(tmp_path))
    facts = ReportFacts("r.yaml", (("logger.wandb.api_key", "'old-value'", "'new-value'"), ("a.b", "1", "2")))
    changes = report_json("run", watch, facts, Redactor())["recipe"]["changes"]
    assert [(item["parent"], item["value"]) for item in changes] == [
        ("'«removed»'", "'«removed»'"),
        ("1", "2"),
    ]


def test_a_secret_in_a_reason_is_not_notified_and_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    run = make_run(tmp_path)
    save_summary(LocalTransport(), run, {"reason": f"bad {SECRET} \udcff", "findings": [{"text": SECRET}]})
    stored = Path(run.directory, SUMMARY).read_text()
    assert SECRET not in stored
    assert json.loads(stored)["reason"] == f"bad «{SECRET_NAME}» \udcff"

    class Failed(RunState):
        @property
        def reason(self) -> str:
            return f"bad {SECRET}"

        @property
        def state(self) -> JobState:
            return JobState.FAILED

    from launcher.monitor.notify import Kind

    note = notification_of("run", Kind.FAILURE, Failed())
    assert SECRET not in str(note.environment())


def test_a_crash_report_has_no_secret_and_follows_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_NAME, SECRET)
    error = RuntimeError(f"no \x1b[2J {SECRET}")
    message = crash_report(error, tmp_path / "runs")
    written = tmp_path / "crash.txt"
    assert SECRET not in written.read_text() + message
    assert written.stat().st_mode & 0o777 == 0o600
    victim = tmp_path / "victim"
    victim.write_text("kept")
    written.unlink()
    written.symlink_to(victim)
    message = crash_report(error, tmp_path / "runs")
    assert (victim.read_text(), SECRET in message) == ("kept", False)
    assert f"{written} cannot be written" in message
