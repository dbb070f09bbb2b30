"""Disk use of runs, moves, removal of checkpoints."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from launcher.errors import InputError, LaunchError
from launcher.runs import RecipeRef, Run, RunSpec, RunStore, load
from launcher.storage import moving
from launcher.storage.disk_use import DiskCounter, disk_use
from launcher.storage.moving import move_run, runs_to_move
from launcher.storage.removal import removal_hint, remove_checkpoints
from launcher.transports.local import LocalTransport

NOW = datetime(2026, 11, 28, 2, 0, tzinfo=UTC)
BLOCK = 4096


def spec(identity: str, kind: Literal["rehearsal", "smoke", "training"] = "smoke") -> RunSpec:
    return RunSpec(
        schema=1,
        id=identity,
        name="a",
        kind=kind,
        created=NOW,
        user="u",
        host=LocalTransport().host,
        recipe=RecipeRef(source="/r.yaml"),
        cluster="local",
        nodes=1,
        gpus_per_node=1,
    )


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(LocalTransport(), str(tmp_path / "runs"))


def ended(store: RunStore, identity: str, state: str = "completed", *, kind: str = "smoke") -> Run:
    """Return a run with logs and a checkpoint, and with a state that was kept."""
    files = {"effective.yaml": b"checkpointing: {checkpoint_dir: /nowhere}\n", "secrets.env": b"K=1\n"}
    run = store.create(spec(identity, kind), files)  # type: ignore[arg-type]
    directory = Path(run.directory)
    summary = {"schema": 1, "state": state, "reason": "", "metrics": {"step": 5, "max_steps": 5}}
    (directory / "summary.json").write_text(json.dumps(summary))
    (directory / "logs" / "driver.log").write_bytes(b"x" * 3 * BLOCK)
    checkpoint = directory / "output" / "checkpoints" / "step_5"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_bytes(b"x" * 10 * BLOCK)
    (directory / "latest").symlink_to("output/checkpoints/step_5")
    return run


def contents(directory: Path) -> dict[str, tuple[int, bytes | str]]:
    """Return everything below a directory: modes and bytes, or the targets of links."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        found[str(path.relative_to(directory))] = (
            mode,
            os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
        )
    return found


# ------------------------------------------------------------ disk use


def test_allocated_bytes_are_counted_once_by_part(store: RunStore, tmp_path: Path) -> None:
    run = ended(store, "20261128-a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(b"x" * 100 * BLOCK)
    Path(run.directory, "link").symlink_to(outside)
    os.link(Path(run.directory, "logs/driver.log"), Path(run.directory, "logs/again.log"))
    with Path(run.directory, "sparse").open("wb") as file:
        file.truncate(1 << 30)
    (use,) = disk_use(store.transport, [run])
    assert 10 * BLOCK <= use.checkpoints < 14 * BLOCK
    assert 3 * BLOCK <= use.logs < 5 * BLOCK
    assert use.total < 40 * BLOCK
    assert use.complete


def test_checkpoints_elsewhere_are_counted_for_one_run(store: RunStore, tmp_path: Path) -> None:
    shared = tmp_path / "results"
    (shared / "step_1").mkdir(parents=True)
    (shared / "step_1" / "weights").write_bytes(b"x" * 50 * BLOCK)
    runs = [ended(store, f"20261128-{name}", kind="training") for name in "ab"]
    for run in runs:
        Path(run.directory, "effective.yaml").write_text(f"checkpointing: {{checkpoint_dir: {shared}}}\n")
    uses = disk_use(store.transport, runs)
    assert [use.checkpoint_dir for use in uses] == [str(shared)] * 2
    assert uses[0].checkpoints >= 60 * BLOCK
    assert uses[1].checkpoints < 14 * BLOCK


def test_the_work_is_bounded(store: RunStore) -> None:
    runs = [ended(store, f"20261128-{name}") for name in "ab"]
    uses = disk_use(store.transport, runs, DiskCounter(entries=3))
    assert [use.complete for use in uses] == [False, False]
    assert uses[1].total == 0


# ------------------------------------------------------------ moves


@pytest.fixture(params=["one file system", "two file systems"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let a rename across directories fail as between two file systems, in one of two cases."""
    if request.param == "two file systems":
        rename = os.rename

        def separate(source: str | Path, target: str | Path) -> None:
            if Path(source).parent != Path(target).parent:
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            rename(source, target)

        monkeypatch.setattr(os, "rename", separate)
    return str(request.param)


@pytest.mark.usefixtures("device")
def test_a_moved_run_is_complete_and_still_listed(store: RunStore, tmp_path: Path) -> None:
    run = ended(store, "20261128-a")
    before, target = contents(Path(run.directory)), tmp_path / "big"
    target.mkdir()
    move = move_run(store, run, target)
    assert (move.problem, move.remark) == ("", "")
    assert contents(target / "20261128-a") == before
    assert (target / "20261128-a" / "secrets.env").stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(target)) == ["20261128-a"]
    assert sorted(os.listdir(store.root)) == ["20261128-a"]
    assert Path(run.directory).is_symlink()
    for listed in (store, RunStore(store.transport, str(target), (store.root,))):
        (found,) = listed.list()
        assert isinstance(found, Run)
        assert found.spec == run.spec
        assert Path(found.logs, "driver.log").is_file()
    assert load(store.transport, run.directory).spec.id == "20261128-a"


@pytest.mark.usefixtures("device")
def test_a_run_that_is_moved_again_and_back_leaves_links_that_lead_to_it(
    store: RunStore, tmp_path: Path
) -> None:
    run = ended(store, "20261128-a")
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        assert move_run(store, store.find("20261128-a"), directory).problem == ""
    assert os.path.realpath(run.directory) == str(second / "20261128-a")
    assert os.path.realpath(first / "20261128-a") == str(second / "20261128-a")
    assert move_run(store, run, Path(store.root)).problem == ""
    assert not Path(run.directory).is_symlink()
    assert os.path.realpath(second / "20261128-a") == run.directory
    assert move_run(store, run, Path(store.root)).problem == "it is there already"


@pytest.mark.parametrize("state", ["running", "queued", "starting", "unknown"])
def test_a_run_that_may_live_is_not_moved(store: RunStore, tmp_path: Path, state: str) -> None:
    run = ended(store, "20261128-a", state)
    move = move_run(store, run, tmp_path)
    assert state in move.problem
    assert not Path(run.directory).is_symlink()
    with pytest.raises(LaunchError, match="has not ended"):
        remove_checkpoints(store, run)


def test_another_directory_of_the_name_is_not_touched(store: RunStore, tmp_path: Path) -> None:
    run = ended(store, "20261128-a")
    (tmp_path / "20261128-a").mkdir()
    assert move_run(store, run, tmp_path).problem == "another directory of this name is there"
    assert list((tmp_path / "20261128-a").iterdir()) == []
    assert move_run(store, run, Path(run.directory, "logs")).problem == "the directory lies inside the run"


def test_an_interrupted_copy_leaves_the_run_and_is_made_good(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, target = ended(store, "20261128-a"), tmp_path / "big"
    target.mkdir()
    before = contents(Path(run.directory))
    monkeypatch.setattr(moving, "_move", moving._copy)
    monkeypatch.setattr(moving, "_copy_file", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        move_run(store, run, target)
    assert (os.listdir(target), contents(Path(run.directory))) == ([], before)
    monkeypatch.undo()
    moving._copy(Path(run.directory), target / "20261128-a")  # then killed, before the old one was removed
    assert len(RunStore(store.transport, str(target), (store.root,)).list()) == 1
    assert move_run(store, run, target).problem == ""
    assert contents(target / "20261128-a") == before
    assert Path(run.directory).is_symlink()


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_run_that_changes_while_it_is_copied_stays(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended(store, "20261128-a")
    copy = moving._copy_file

    def changing(source: str, target: Path) -> None:
        copy(source, target)
        with Path(run.directory, "logs", "driver.log").open("a") as file:
            file.write("more")

    monkeypatch.setattr(moving, "_copy_file", changing)
    with pytest.raises(moving._NotMovedError, match="changed while it was copied"):
        moving._copy(Path(run.directory), tmp_path / "20261128-a")
    assert not (tmp_path / "20261128-a").exists()


def test_all_runs_or_those_that_are_named(store: RunStore) -> None:
    for name in "ab":
        ended(store, f"20261128-{name}")
    assert [run.spec.id for run in runs_to_move(store, ())] == ["20261128-b", "20261128-a"]
    assert [run.spec.id for run in runs_to_move(store, ("-a",))] == ["20261128-a"]
    with pytest.raises(InputError, match="no run 'zz'"):
        runs_to_move(store, ("zz",))


# ------------------------------------------------------------ removal


def test_the_checkpoints_of_a_trial_run_are_removed_and_nothing_else(store: RunStore) -> None:
    run = ended(store, "20261128-a")
    before = contents(Path(run.directory))
    assert "runs --remove-checkpoints 20261128-a" in removal_hint(run)
    removed = remove_checkpoints(store, run)
    assert removed.bytes >= 10 * BLOCK
    after = contents(Path(run.directory))
    assert {name for name in before if name not in after} == {
        "output/checkpoints",
        "output/checkpoints/step_5",
        "output/checkpoints/step_5/weights",
    }
    assert removal_hint(run) == ""
    assert remove_checkpoints(store, run).bytes == 0


def test_the_checkpoints_of_a_training_run_stay(store: RunStore) -> None:
    run = ended(store, "20261128-a", kind="training")
    with pytest.raises(InputError, match="its checkpoints are its result"):
        remove_checkpoints(store, run)
    assert removal_hint(run) == ""


def test_a_link_to_checkpoints_is_not_followed(store: RunStore, tmp_path: Path) -> None:
    run = ended(store, "20261128-a")
    checkpoints = Path(run.directory, "output", "checkpoints")
    checkpoints.rename(tmp_path / "precious")
    checkpoints.symlink_to(tmp_path / "precious")
    assert remove_checkpoints(store, run).bytes == 0
    assert (tmp_path / "precious" / "step_5" / "weights").exists()
