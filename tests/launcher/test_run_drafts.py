"""Drafts of runs: written after each change, kept over a kill, offered when nobody has them open."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.storage.wizard_drafts import RunDraft, RunDrafts
from tui.screens.wizard.model import WizardState

TYPING = """\
import sys
from pathlib import Path
from launcher.storage.wizard_drafts import RunDraft, RunDrafts
from tui.screens.wizard.model import WizardState
writer = RunDrafts(Path(sys.argv[1])).writer()
text = ""
for letter in "models/student":
    text += letter
    writer.put(RunDraft(WizardState({"student": text}).as_json(), "models", "draft"))
    writer.flush()
    print(text, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def drafts(tmp_path: Path) -> RunDrafts:
    return RunDrafts(tmp_path / "state" / "run-drafts")


def test_a_state_survives_as_json() -> None:
    state = WizardState(
        {"recipe": "/r.yaml", "student": "ü/é"},
        ("++a.b=[1,2]", "~c"),
        ("C34",),
        frozenset({"length"}),
    )
    assert WizardState.from_json(state.as_json()) == state


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1}', '{"format": 9, "texts": {}}', "{"])
def test_another_text_is_no_state(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is for nobody: the draft is not offered
        WizardState.from_json(text)


def test_a_draft_is_offered_when_its_wizard_was_left(drafts: RunDrafts) -> None:
    first, second = drafts.writer(), drafts.writer()
    first.put(RunDraft("{}", "models", "one"))
    second.put(RunDraft("{}", "data", "two"))
    assert first.flush()
    assert second.flush()
    assert drafts.offered() == ()
    first.leave()
    (offered,) = drafts.offered()
    assert (offered.title, offered.step) == ("one", "models")
    assert offered.file is not None
    assert stat.S_IMODE(offered.file.stat().st_mode) == 0o600
    again = drafts.take(offered)
    assert drafts.offered() == ()
    again.discard()
    second.discard()
    assert drafts.offered() == ()
    assert list(offered.file.parent.iterdir()) == []


def test_a_killed_wizard_loses_at_most_the_last_key(drafts: RunDrafts, tmp_path: Path) -> None:
    directory = tmp_path / "state" / "run-drafts"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", TYPING, str(directory)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    ) as typing:  # fmt: skip
        assert typing.stdin is not None
        assert typing.stdout is not None
        typed = ""
        for _ in range(5):
            typed = typing.stdout.readline().strip()
            assert drafts.offered() == ()
            typing.stdin.write("\n")
            typing.stdin.flush()
        typing.send_signal(signal.SIGKILL)
        typing.wait()
    (offered,) = drafts.offered()
    assert WizardState.from_json(offered.state).texts["student"].startswith(typed)
    assert offered.age_s < 600


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    writer = RunDrafts(tmp_path / "file").writer()
    writer.put(RunDraft("{}"))
    writer.flush()
    assert isinstance(writer.error, OSError)


def test_damaged_drafts_are_left_out(drafts: RunDrafts, tmp_path: Path) -> None:
    writer = drafts.writer()
    writer.put(RunDraft("{}", "models", "good"))
    writer.leave()
    directory = tmp_path / "state" / "run-drafts"
    (directory / "a.draft.json").write_bytes(b"\xff\xfe")
    (directory / "b.draft.json").write_text("{}\n{}")
    assert [draft.title for draft in drafts.offered()] == ["good"]
