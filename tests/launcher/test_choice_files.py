"""Directories of the choices' editor: a killed process's are removed, those of living ones stay."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launcher.storage.choice_files import make_directory, remove_directory, remove_leftovers
from launcher.storage.drafts import DraftStore
from launcher.storage.editors import drafts_root


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}


def made_by_another(environment: dict[str, str]) -> Path:
    """Return the directory of a process that has ended without removing it."""
    code = (
        "import os; from launcher.storage.choice_files import make_directory;"
        "print(make_directory(os.environ), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    return Path(done.stdout.strip())


def test_what_a_killed_process_left_is_removed_with_its_drafts(environment: dict[str, str]) -> None:
    left, own = made_by_another(environment), make_directory(environment)
    recipe, other = left / "choices.yaml", drafts_root(environment) / "mine.yaml"
    recipe.write_text("a: 1\n")
    store = DraftStore.of(environment)
    for path in (recipe, other):
        store.save("0-0", path, "a: 2\n", b"", closed=True)
    assert remove_leftovers(environment) == (left,)
    assert (left.exists(), own.exists()) == (False, True)
    assert [draft.path for draft in store.orphans()] == [other]
    assert remove_leftovers(environment) == ()
    remove_directory(own)
    assert not own.exists()


def test_a_directory_is_the_user_s_alone(environment: dict[str, str]) -> None:
    own = make_directory(environment)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (own, *own.iterdir())]
    assert modes == [0o700, 0o600]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"host": "x"}', '{"pid": "many"}'])
def test_a_directory_that_names_no_process_is_kept_for_a_day(
    environment: dict[str, str], text: str | None
) -> None:
    own = make_directory(environment)
    (own / "process.json").unlink()
    if text is not None:
        (own / "process.json").write_text(text)
    assert remove_leftovers(environment) == ()
    day_before = time.time() - 2 * 86400
    os.utime(own, (day_before, day_before))
    assert remove_leftovers(environment) == (own,)


def test_another_host_s_directory_stays(environment: dict[str, str]) -> None:
    own = make_directory(environment)
    record = json.loads((own / "process.json").read_text())
    (own / "process.json").write_text(json.dumps({**record, "host": "elsewhere"}))
    assert remove_leftovers(environment) == ()
    (own / "process.json").write_text(json.dumps({**record, "boot": "an earlier one"}))
    assert remove_leftovers(environment) == (own,)


def test_a_link_is_not_followed(environment: dict[str, str], tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.mkdir()
    (target / "file").touch()
    make_directory(environment)
    (drafts_root(environment) / "choices-link").symlink_to(target)
    os.utime(target, (0, 0))
    assert remove_leftovers(environment) == ()
    assert (target / "file").exists()


def test_without_a_directory_there_is_nothing_to_remove(environment: dict[str, str]) -> None:
    assert remove_leftovers(environment) == ()
