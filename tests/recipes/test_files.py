"""Saving a file: what is written, in which order, with whose mode, and what each failure says."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recipes import files
from recipes.errors import Exit
from recipes.files import (
    TEMPORARY_SUFFIX,
    ChangedOnDiskError,
    SaveError,
    is_directory,
    is_file,
    save,
    unified_diff,
    with_home,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    one = tmp_path / "recipe.yaml"
    one.write_bytes(b"old\n")
    return one


@pytest.fixture
def mask() -> Iterator[None]:
    before = os.umask(0o026)
    yield
    os.umask(before)


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir())


def fails_with(number: int, only: str = "") -> Callable[..., Any]:
    """Return a function that fails as the system does; of methods, for names that hold `only`."""

    def fail(*arguments: Any, **_: Any) -> Any:
        if only and not any(only in str(argument) for argument in arguments):
            raise AssertionError(f"called for {arguments}")
        raise OSError(number, os.strerror(number))

    return fail


def test_the_bytes_are_flushed_before_the_name_changes_and_the_directory_after(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def flushed(handle: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        size = os.fstat(handle).st_size
        steps.append(
            f"flush {kind}"
            + (f" of {size} bytes, mode {os.fstat(handle).st_mode & 0o777:o}" if kind == "file" else "")
        )
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        assert self.parent == target.parent
        assert self.name.startswith(f".{target.name}.")
        assert self.name.endswith(TEMPORARY_SUFFIX)
        assert TEMPORARY_SUFFIX == ".distill-tui.tmp"
        steps.append(f"rename to {target.name}")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed)
    path.chmod(0o604)
    saved = save(path, b"new text\n", b"old\n")
    assert (saved.path, saved.other_names) == (path, 0)
    assert steps == ["flush file of 9 bytes, mode 604", "rename to recipe.yaml", "flush directory"]
    assert path.read_bytes() == b"new text\n"
    assert names(path) == ["recipe.yaml"]


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        save(path, b"old\n", b"old\n")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("mask")
def test_a_new_file_has_the_mode_of_any_new_file(path: Path) -> None:
    new = path.with_name("new.yaml")
    saved = save(new, b"x\n", None)
    assert (saved.path, saved.other_names) == (new, 0)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    assert os.umask(0o026) == 0o026


@pytest.mark.usefixtures("mask")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755, 0o2644])
def test_a_file_keeps_its_mode_whatever_the_mask(path: Path, mode: int) -> None:
    path.chmod(mode)
    save(path, b"new\n", b"old\n")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_hard_links_are_counted(path: Path) -> None:
    for name in ("a", "b"):
        os.link(path, path.with_name(name))
    assert save(path, b"new\n", b"old\n").other_names == 2
    assert path.with_name("a").read_bytes() == b"old\n"


def test_a_name_of_the_longest_length(path: Path) -> None:
    long = path.with_name("x" * 250 + ".yaml")
    save(long, b"x\n", None)
    assert long.read_bytes() == b"x\n"


class _Owner:
    """Gives a file the owner that a test wants to have had."""

    def __init__(self, before: os.stat_result, owner: tuple[int, int]) -> None:
        self.st_mode, (self.st_uid, self.st_gid) = before.st_mode, owner


@pytest.mark.parametrize(
    ("allowed", "tried"),
    [
        ((True, True), [(4, 5)]),
        ((False, True), [(4, 5), (-1, 5)]),
        ((False, False), [(4, 5), (-1, 5)]),
    ],
)
@pytest.mark.parametrize("owner", [(4, 5)])
def test_the_owner_is_taken_over_where_that_is_permitted(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: tuple[int, int],
    allowed: tuple[bool, bool],
    tried: list[Any],
) -> None:
    calls: list[tuple[int, int]] = []

    def fchown(handle: int, uid: int, gid: int) -> None:
        calls.append((uid, gid))
        assert handle >= 0
        if not allowed[len(calls) - 1]:
            raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "fchown", fchown)
    path.chmod(0o640)
    before = path.stat()
    path.chmod(0o600)
    with path.open("rb+") as file:
        files._take_over(file.fileno(), _Owner(before, owner))  # type: ignore[arg-type]
    assert calls == tried
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(("uid", "gid"), [(0, 1), (1, 0)])
def test_an_owner_or_a_group_that_differs_is_taken_over(
    path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, gid: int
) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _, *owner: calls.append(owner))
    now = path.stat()
    owner = (now.st_uid + uid, now.st_gid + gid)
    with path.open("rb+") as file:
        files._take_over(file.fileno(), _Owner(now, owner))  # type: ignore[arg-type]
        files._take_over(file.fileno(), now)
    assert calls == [owner]


def test_what_someone_else_changed_is_shown_and_kept(path: Path) -> None:
    with pytest.raises(ChangedOnDiskError) as raised:
        save(path, b"new\n", b"opened\n")
    error = raised.value
    assert error.what == f"{path} was changed by someone else since it was opened"
    assert (error.where, error.exit_code) == (path, Exit.FAILED)
    assert "another name" in error.fix
    assert error.diff == f"--- {path} (as opened)\n+++ {path} (now)\n@@ -1 +1 @@\n-opened\n+old\n"
    assert path.read_bytes() == b"old\n"
    assert names(path) == ["recipe.yaml"]


def test_a_file_that_was_removed_or_made_meanwhile(path: Path) -> None:
    with pytest.raises(ChangedOnDiskError) as raised:
        save(path, b"new\n", None)
    assert raised.value.diff.endswith("@@ -0,0 +1 @@\n+old\n")
    path.unlink()
    with pytest.raises(ChangedOnDiskError) as raised:
        save(path, b"new\n", b"old\n")
    assert raised.value.diff.endswith("@@ -1 +0,0 @@\n-old\n")
    assert names(path) == []
    # An empty file is not the same as none.
    path.touch()
    with pytest.raises(ChangedOnDiskError):
        save(path, b"new\n", None)


def test_a_link_stays_and_its_target_is_replaced(path: Path) -> None:
    link = path.with_name("link.yaml")
    link.symlink_to(path.name)
    assert save(link, b"new\n", b"old\n").path == path
    assert (link.is_symlink(), path.read_bytes()) == (True, b"new\n")


def test_a_loop_of_links(path: Path) -> None:
    loop = path.with_name("loop.yaml")
    loop.symlink_to(loop)
    with pytest.raises(SaveError) as raised:
        save(loop, b"x", None)
    assert raised.value.exit_code == Exit.OUTSIDE
    assert raised.value.fix


def test_a_loop_of_links_as_older_pythons_report_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(self: Path) -> Path:
        raise RuntimeError("Symlink loop")

    monkeypatch.setattr(Path, "resolve", resolve)
    with pytest.raises(SaveError) as raised:
        save(path, b"x", None)
    error = raised.value
    assert (error.what, error.where) == (f"{path} is a loop of symlinks", path)
    assert error.fix == "Save under another name."


def test_a_directory_is_not_replaced(path: Path) -> None:
    with pytest.raises(SaveError) as raised:
        save(path.parent, b"x", None)
    error = raised.value
    assert (error.what, error.where) == (f"{path.parent} is not a regular file", path.parent)
    assert error.fix == "Save under another name."


def test_a_file_that_is_read_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = path.with_name("link.yaml")
    link.symlink_to(path.name)
    asked: list[tuple[Any, int]] = []

    def access(target: Path, mode: int) -> bool:
        asked.append((target, mode))
        return False

    monkeypatch.setattr(os, "access", access)
    with pytest.raises(SaveError) as raised:
        save(link, b"x", b"old\n")
    error = raised.value
    assert asked == [(path, os.W_OK)]
    assert (error.what, error.where) == (f"{path} is read-only", link)
    assert error.fix == f"chmod u+w {path}, or save under another name."
    assert path.read_bytes() == b"old\n"


@pytest.mark.parametrize(
    ("flags", "uid", "fix"),
    [
        (os.ST_RDONLY, 0, "Its file system is mounted read-only: save elsewhere."),
        (0, 1, "It belongs to somebody else: save under another name."),
    ],
)
def test_a_file_that_no_chmod_makes_writable(
    path: Path, monkeypatch: pytest.MonkeyPatch, flags: int, uid: int, fix: str
) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    monkeypatch.setattr(os, "geteuid", lambda: owner + uid)
    with pytest.raises(SaveError) as raised:
        save(path, b"x", b"old\n")
    assert raised.value.fix == fix


@pytest.mark.parametrize(
    ("number", "what", "fix"),
    [
        (errno.ENOSPC, "the disk is full", "Free some space"),
        (errno.EDQUOT, "the quota is used up", "quota"),
        (errno.EFBIG, "the file size limit is reached", "ulimit"),
        (errno.EROFS, "the file system is read-only", "somewhere else"),
        (errno.EACCES, "no permission to write in this directory", "chmod"),
        (errno.EPERM, "no permission to write in this directory", "somewhere else"),
        (errno.ENOENT, "the directory does not exist", "Create the directory"),
        (errno.EIO, os.strerror(errno.EIO), "Save somewhere else."),
    ],
)
@pytest.mark.parametrize("step", ["mkstemp", "fsync", "replace", "fchmod"])
def test_each_failure_says_what_it_is_and_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, what: str, fix: str
) -> None:
    owner: Any = {"mkstemp": tempfile, "replace": Path}.get(step, os)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fails_with(number))
        with pytest.raises(SaveError) as raised:
            save(path, b"new\n", b"old\n")
    error = raised.value
    assert error.what == f"Cannot save: {what}; the old file is unchanged"
    assert (error.where, error.exit_code) == (path, Exit.OUTSIDE)
    assert fix in error.fix
    assert path.read_bytes() == b"old\n"
    assert names(path) == ["recipe.yaml"]


def test_a_failure_without_a_number(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("something odd")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SaveError, match="Cannot save: something odd; the old file is unchanged"):
        save(path, b"new\n", b"old\n")


def test_a_file_that_cannot_be_looked_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = path / "below"  # a file is no directory
    with pytest.raises(SaveError) as raised:
        save(target, b"x", None)
    assert raised.value.where == target
    assert os.strerror(errno.ENOTDIR) in raised.value.what


def test_an_interrupt_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(path, b"new\n", b"old\n")
    assert names(path) == ["recipe.yaml"]
    assert path.read_bytes() == b"old\n"


def test_a_directory_that_cannot_be_flushed_is_no_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def flush(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", flush)
    before = len(os.listdir("/proc/self/fd"))
    save(path, b"new\n", b"old\n")
    assert path.read_bytes() == b"new\n"
    assert len(os.listdir("/proc/self/fd")) == before


def test_differences_of_bytes_and_texts() -> None:
    expected = (
        "--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n"
        "+z�\n\\ No newline at end of file\n"
    )
    assert unified_diff(b"x\ny", b"x\nz\xff", "a", "b") == expected
    assert unified_diff("x\ny", "x\nz�", "a", "b") == expected
    assert unified_diff("x\n", "x\ny\n", "a", "b") == "--- a\n+++ b\n@@ -1 +1,2 @@\n x\n+y\n"
    assert unified_diff("x\r\n", "x\n", "a", "b") == "--- a\n+++ b\n@@ -1 +1 @@\n-x\r\n+x\n"
    assert unified_diff("x", "x", "a", "b") == ""


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_what_no_path_can_be_is_neither_file_nor_directory(name: str, path: Path) -> None:
    assert (is_file(Path(name)), is_directory(Path(name))) == (False, False)
    assert (is_file(path), is_directory(path)) == (True, False)
    assert (is_file(path.parent), is_directory(path.parent)) == (False, True)


def test_a_tilde_is_a_home_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert with_home("~/recipe.yaml") == Path("/home/someone/recipe.yaml")
    assert with_home("~nobody-of-this-name/x") == Path("~nobody-of-this-name/x")
