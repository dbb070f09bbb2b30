"""A recipe in memory beside recipes of a host, and the packaged recipes on a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.storage.choice_files import choices_name, remove_leftovers
from launcher.storage.drafts import DraftStore
from launcher.storage.host_library import copy_library, library_on
from launcher.transports.ssh.transport import SshTransport
from recipes.editing import EditSession
from recipes.files import ChangedOnDiskError, save
from recipes.inheritance import resolve
from recipes.library import starting_recipes
from recipes.limits import RECIPE_BYTES
from recipes.overlaid_files import overlaid
from recipes.reading import read_regular
from recipes.remote_path import machine_of
from tests.ssh.laptop import requests_of
from tests.ssh.server import Server

pytestmark = pytest.mark.long


@pytest.fixture
def far(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshTransport:
    """Return a transport whose cache is this test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "laptop-cache"))
    return SshTransport(server.host())


def test_a_file_in_memory_inherits_from_the_host_and_is_never_there(
    far: SshTransport, tmp_path: Path
) -> None:
    (tmp_path / "base.yaml").write_text("size: 3\nname: x\n")
    base = far.path(str(tmp_path / "base.yaml"))
    path = overlaid(base, "choices.yaml", "defaults: base.yaml\nsize: 4\n")
    assert path.is_file()
    assert machine_of(path) == "test"
    assert path.resolve() == path
    assert resolve(path).values == {"size": 4, "name": "x"}
    session = EditSession.open(path)
    session.replace_text(session.text.replace("4", "5"))
    session.save()
    assert resolve(path).values == {"size": 5, "name": "x"}
    assert not session.dirty
    with pytest.raises(ChangedOnDiskError):
        save(path, b"size: 6\n", b"size: 1\n")
    save(path, b"size: 6\n", read_regular(path, RECIPE_BYTES))
    assert path.read_bytes() == b"size: 6\n"
    assert sorted(item.name for item in tmp_path.iterdir() if item.suffix == ".yaml") == ["base.yaml"]
    assert base.read_bytes() == b"size: 3\nname: x\n"


def test_drafts_of_choices_that_a_killed_program_left_are_discarded(
    far: SshTransport, tmp_path: Path
) -> None:
    (tmp_path / "base.yaml").write_text("size: 3\n")
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    base, store = far.path(str(tmp_path / "base.yaml")), DraftStore.of(environment)
    for path in (base, overlaid(base, choices_name(), "")):
        store.save("token", path, "size: 9\n", b"size: 3\n", closed=True)
    assert len(store.orphans()) == 2
    remove_leftovers(environment)
    (left,) = store.orphans()
    assert (left.machine, Path(left.path).name) == ("test", "base.yaml")


def test_packaged_recipes_are_copied_once(
    far: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    library = library_on(far, environment)
    assert not library.exists()
    copy_library(far, library)
    names = {path.name for path in starting_recipes()}
    assert {path.name for path in Path(str(library)).iterdir()} == names
    assert resolve(library / "smoke.yaml").values == resolve(starting_recipes()[-1]).values
    calls = requests_of(far, monkeypatch)
    copy_library(far, library)
    assert calls == []
