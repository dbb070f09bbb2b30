"""Unsaved edits on disk: nothing that was written is lost, and two editors are told of each other."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launcher.storage.drafts import DraftStore
from launcher.storage.editors import EditorPresence, EditorRecord, drafts_root, file_id
from launcher.storage.private_files import write_private
from launcher.transports.local import this_process

ROOT = Path(__file__).resolve().parents[2]
_TYPING = """
import sys
from pathlib import Path
from launcher.storage.drafts import DraftStore
from launcher.storage.editors import EditorPresence
path = Path(sys.argv[1])
presence = EditorPresence.enter(path)
writer = DraftStore.of().writer(path, presence.token)
text = path.read_text()
number = 0
while True:
    number += 1
    writer.put(text + "x" * number, path.read_bytes())
    writer.flush()
    print(number, flush=True)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text("a: 1\n")
    return path


def start(recipe: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start an editor that types one character after another."""
    return subprocess.Popen(
        [sys.executable, "-c", _TYPING, str(recipe)],
        env={**os.environ, **environment},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def killed_after(process: subprocess.Popen[str], lines: int, pause_s: float = 0.0) -> int:
    """Kill an editor some time after its n-th line; return how many characters it said to have written."""
    assert process.stdout is not None
    count = 0
    for line in process.stdout:
        count = int(line)
        if count >= lines:
            break
    time.sleep(pause_s)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    process.stdout.close()
    whole = [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    return max([count, *whole])


def test_the_draft_of_a_killed_editor_is_offered(recipe: Path, environment: dict[str, str]) -> None:
    written = killed_after(start(recipe, environment), 3)
    store = DraftStore.of(environment)
    (draft,) = store.orphans(recipe)
    assert draft.path == recipe
    assert len(draft.text) - len("a: 1\n") in (written, written + 1)
    assert draft.differs_from(recipe.read_bytes())
    assert draft.is_of(recipe.read_bytes())
    assert draft.age_s < 60
    recipe.write_text("a: 2\n")
    assert not draft.is_of(recipe.read_bytes())
    assert store.orphans() == (draft,)
    store.discard(draft)
    assert store.orphans() == ()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_at_most_the_last_change_is_lost_at_200_kills(recipe: Path, environment: dict[str, str]) -> None:
    store = DraftStore.of(environment)
    choice = random.Random(13)
    for _ in range(200):
        written = killed_after(start(recipe, environment), choice.randint(1, 20), choice.random() * 0.01)
        (draft,) = store.orphans(recipe)
        typed = draft.text.removeprefix("a: 1\n")
        assert set(typed) == {"x"}
        assert len(typed) >= written
        store.discard(draft)
    assert [file for file in drafts_root(environment).iterdir() if file.name.endswith(".draft.json")] == []


def test_files_are_private(recipe: Path, environment: dict[str, str]) -> None:
    presence = EditorPresence.enter(recipe, environment)
    file = DraftStore.of(environment).save("token", recipe, "text", None)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(presence.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert file.parent == drafts_root(environment)
    assert list(recipe.parent.glob("*.yaml*")) == [recipe]


def test_any_text_comes_back(recipe: Path, environment: dict[str, str]) -> None:
    texts = ["", "é\r\n\ttab", "half \ud83d of a pair", "\x1b[31m\n\n", "{}\n{}"]
    store = DraftStore(drafts_root(environment))
    stranger = EditorRecord(path="", host="elsewhere", boot="", pid=1, started=1, opened_at=0, renewed_at=0)
    for number, text in enumerate(texts):
        file = store.save(f"token{number}", recipe, text, b"a: 1\n")
        body = file.read_bytes().replace(this_process().host.encode(), stranger.host.encode())
        file.write_bytes(body)
    assert sorted(draft.text for draft in store.orphans(recipe)) == sorted(texts)


def test_a_path_that_is_no_utf8_comes_back(tmp_path: Path, environment: dict[str, str]) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff\x1b[31m.yaml"))
    store = DraftStore.of(environment)
    file = store.save("token", path, "text", None)
    file.write_bytes(file.read_bytes().replace(this_process().host.encode(), b"elsewhere"))
    (draft,) = store.orphans(path)
    assert draft.path == path


def test_the_draft_of_an_open_editor_is_not_offered(recipe: Path, environment: dict[str, str]) -> None:
    store = DraftStore.of(environment)
    writer = store.writer(recipe)
    writer.put("mine", b"a: 1\n")
    assert writer.flush()
    assert writer.error is None
    assert store.orphans(recipe) == ()
    writer.discard()
    assert list(drafts_root(environment).iterdir()) == []


def test_the_draft_of_an_editor_that_was_left_is_offered_while_its_process_goes_on(
    recipe: Path, environment: dict[str, str]
) -> None:
    store = DraftStore.of(environment)
    writer = store.writer(recipe)
    writer.put("mine", b"a: 1\n")
    writer.close()
    (draft,) = store.orphans(recipe)
    assert draft.text == "mine"
    saved = store.writer(recipe)
    saved.put("saved", b"a: 1\n")
    saved.discard()
    saved.close()
    store.writer(recipe).close()  # nothing was typed
    assert store.orphans(recipe) == (draft,)


def test_the_latest_text_wins(recipe: Path, environment: dict[str, str]) -> None:
    store = DraftStore.of(environment)
    writer = store.writer(recipe, "token")
    for number in range(200):
        writer.put(f"text {number}", None)
    assert writer.flush()
    assert store.file("token", recipe).read_bytes().endswith(b"\ntext 199")
    writer.discard()
    writer.put("again", None)
    assert writer.flush()
    assert store.file("token", recipe).read_bytes().endswith(b"\nagain")


def test_a_draft_that_cannot_be_written_is_reported(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    writer = DraftStore(tmp_path / "file" / "drafts").writer(recipe)
    writer.put("text", None)
    assert writer.flush()
    assert writer.error is not None


def test_damaged_files_are_passed_over(recipe: Path, environment: dict[str, str]) -> None:
    folder = drafts_root(environment)
    write_private(folder / f"{file_id(recipe)}.x.draft.json", b"{}\ntext")
    write_private(folder / f"{file_id(recipe)}.y.draft.json", b"\xff\xfe")
    write_private(folder / f"{file_id(recipe)}.z.editor.json", b"[")
    assert DraftStore.of(environment).orphans(recipe) == ()
    assert EditorPresence.enter(recipe, environment).others() == ()


def test_two_editors_of_one_file_are_told_of_each_other(recipe: Path, environment: dict[str, str]) -> None:
    link = recipe.with_name("link.yaml")
    link.symlink_to(recipe)
    first = EditorPresence.enter(recipe, environment)
    assert first.others() == ()
    process = start(link, environment)
    assert process.stdout is not None
    process.stdout.readline()
    (other,) = first.others()
    assert other.pid == process.pid
    assert other.host == this_process().host
    second = EditorPresence.enter(link, environment)
    assert {one.pid for one in second.others()} == {process.pid, os.getpid()}
    assert EditorPresence.enter(recipe.with_name("x.yaml"), environment).others() == ()
    second.leave()
    killed_after(process, 1)
    assert first.others() == ()
    first.leave()
    assert not first.file.exists()


def test_an_editor_on_another_host_counts_while_it_renews_its_file(
    recipe: Path, environment: dict[str, str]
) -> None:
    folder = drafts_root(environment)
    presence = EditorPresence.enter(recipe, environment)
    now = time.time()
    for age, expected in ((10.0, 1), (1000.0, 0)):
        record = presence.record.model_copy(update={"host": "elsewhere", "renewed_at": now - age})
        write_private(folder / f"{file_id(recipe)}.1-x.editor.json", record.model_dump_json().encode())
        assert len(presence.others()) == expected
