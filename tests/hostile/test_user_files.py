"""The user's own files read back: settings, site files, remembered choices, drafts, marks of editors."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from launcher.errors import InputError
from launcher.fields import FIELDS
from launcher.overview.draft_rows import draft_rows
from launcher.settings import load_settings, set_setting, settings_path
from launcher.site_choices import load_choices, remember_modules
from launcher.sites import site_here, user_file
from launcher.storage import drafts as drafts_module
from launcher.storage import wizard_drafts
from launcher.storage.drafts import DraftStore
from launcher.storage.editors import EditorPresence
from launcher.storage.wizard_drafts import RunDraft, RunDrafts
from launcher.transports.local import LocalTransport
from recipes.errors import ExplainedError
from recipes.limits import FILE_SECONDS
from tests.hostile.documents import VALUES, changed
from tui.pane_settings import load_pane_settings
from tui.screens.wizard.draft_keeping import draft_text
from tui.screens.wizard.draft_request import request_of
from tui.screens.wizard.validation import errors
from tui.screens.wizard.wizard_state import DraftStatus, WizardState


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 36)


WAYS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "sparse": sparse,
    "loop": lambda path: path.symlink_to(path.name),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "proc": lambda path: path.symlink_to("/proc/kmsg"),
    "directory": lambda path: path.mkdir(),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "deep": lambda path: path.write_bytes(b"a = " + b"[" * 100_000),
    "number": lambda path: path.write_bytes(b"a = " + b"9" * 10_000),
    "large": lambda path: path.write_bytes(b"#" * (2 << 20)),
}


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    one = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    settings_path(one).parent.mkdir(parents=True)
    return one


@pytest.mark.parametrize("way", WAYS)
def test_files_of_the_user_that_are_no_such_files(environment: Mapping[str, str], way: str) -> None:
    WAYS[way](settings_path(environment))
    for call in (load_settings, load_pane_settings, lambda one: set_setting(one, "notify", ["bell"])):
        with pytest.raises(InputError, match=r"settings|directory"):
            call(environment)
    settings_path(environment).rename(settings_path(environment).with_name("before.toml"))
    WAYS[way](user_file(environment))
    with pytest.raises(ExplainedError, match="site"):
        site_here(LocalTransport(), environment)
    choices = settings_path(environment).with_name("sites.json")
    WAYS[way](choices)
    with pytest.raises(ExplainedError):
        load_choices(LocalTransport(), environment, "x")
    remember_modules(LocalTransport(), environment, "x", ("a",))  # without effect


@pytest.mark.parametrize("way", WAYS)
def test_drafts_and_marks_that_are_none_hide_no_other(
    environment: Mapping[str, str], tmp_path: Path, way: str
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("a: 1\n")
    store = DraftStore.of(environment)
    gone = store.save("1-aa", recipe, "a: 2\n", b"a: 1\n")
    header, _, body = gone.read_bytes().partition(b"\n")
    gone.write_bytes(json.dumps({**json.loads(header), "pid": 2**31 - 1}).encode() + b"\n" + body)
    WAYS[way](store.file("2-bb", recipe))
    presence = EditorPresence.enter(recipe, environment)
    WAYS[way](presence.file.with_name(f"{presence.id}.3-cc.editor.json"))
    assert [draft.text for draft in store.orphans(recipe)] == ["a: 2\n"]
    assert presence.others() == ()


_WIZARD = {
    "format": 1,
    "texts": {"nodes": "2", "env": "A=1", "recipe": "r.yaml"},
    "overrides": ["a=1"],
    "skipped": ["C1"],
    "both": ["lr"],
}
_STATES = (
    "[" * 100_000,
    '{"format": 1, "texts": ' + '{"a":' * 100_000,
    "NaN",
    '{"format": 1}',
    '{"format": 1, "texts": {}, "both": [[]]}',
    "9" * 10_000,
)


def hostile_state(random: Random) -> str:
    """Return the state of a wizard as a draft may hold it: values of any type, texts that no key types."""
    if random.random() < 0.2:
        return random.choice(_STATES)
    names = random.sample([row.name for row in FIELDS], 5)
    texts = {
        name: random.choice([value for value in VALUES if isinstance(value, str)])[:2000] for name in names
    }
    document = {**_WIZARD, "texts": texts}
    return json.dumps(changed(random, document) if random.random() < 0.5 else document)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_drafts_of_runs_of_any_content(environment: Mapping[str, str], count: int) -> None:
    random, status = Random(count), DraftStatus(path=Path("r.yaml"))
    drafts = RunDrafts.of(environment)
    writer = drafts.writer()
    for _ in range(count):
        state = hostile_state(random)
        writer.put(RunDraft(state, "models", "\x1b[2Jx\u202e", host=random.choice(("", "x\x07"))))
        writer.leave()
        (file,) = drafts._store.directory.glob("*.draft.json")
        header, _, body = file.read_bytes().partition(b"\n")
        if random.random() < 0.3:
            content = (
                json.dumps(changed(random, json.loads(body)))
                if random.random() < 0.7
                else random.choice(_STATES)
            )
            file.write_bytes(header + b"\n" + content.encode("utf-8", "surrogatepass"))
        for row in draft_rows(environment):
            assert not set(row.name + row.reason) & set("\x1b\x07\u202e")
        for draft in drafts.offered():
            assert draft_text(draft).isprintable()
            with suppress(ValueError):
                wizard = WizardState.from_json(draft.state)
                errors(wizard, status)
                with suppress(ExplainedError):
                    request_of(wizard, status)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_changed_values(environment: Mapping[str, str], tmp_path: Path, count: int) -> None:
    random, recipe = Random(count), tmp_path / "recipe.yaml"
    recipe.write_text("a: 1\n")
    store = DraftStore.of(environment)
    file = store.save("1-aa", recipe, "a: 2\n", b"a: 1\n")
    header = json.loads(file.read_bytes().partition(b"\n")[0])
    choices = settings_path(environment).with_name("sites.json")
    known = {
        "sites": {
            "x": {"values": {"A": "1"}, "passed": ["B"], "gpu_memory_gib": {"a100": 40.0}, "modules": ["m"]}
        }
    }
    presence = EditorPresence.enter(recipe, environment)
    other = presence.file.with_name(f"{presence.id}.3-cc.editor.json")
    mark = json.loads(presence.file.read_bytes())
    for _ in range(count):
        file.write_bytes(json.dumps(changed(random, header)).encode() + b"\na: 2\n")
        for draft in store.orphans():
            assert draft.age_s >= 0
            draft.path.name.encode("utf-8", "surrogateescape")
        other.write_text(json.dumps(changed(random, mark)))
        presence.others()
        choices.write_text(json.dumps(changed(random, known)))
        with suppress(ExplainedError):
            load_choices(LocalTransport(), environment, "x")
        value = random.choice([item for item in VALUES if isinstance(item, str | int)])
        key = random.choice(
            (
                "notify",
                "storage.runs",
                "storage.earlier_runs",
                "monitor.layout",
                "monitor.panes",
                "x",
                "monitor",
            )
        )
        text = (
            f"{key} = {json.dumps(value)}\n"
            if random.random() < 0.8
            else f"[{key}]\nruns = [{json.dumps(value)}]\n"
        )
        settings_path(environment).write_text(text, "utf-8", "surrogatepass")
        with suppress(ExplainedError):
            load_pane_settings(environment)
            load_settings(environment)


def test_drafts_in_a_directory_without_answer_are_none(
    environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    for module, store, name in (
        (drafts_module, DraftStore, "_orphans"),
        (wizard_drafts, RunDrafts, "_offered"),
    ):
        monkeypatch.setattr(module, "FILE_SECONDS", FILE_SECONDS._replace(value=0))
        monkeypatch.setattr(store, name, lambda *_: answers.wait(60))
    assert DraftStore.of(environment).orphans() == ()
    assert RunDrafts.of(environment).offered() == ()
    answers.set()
