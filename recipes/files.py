"""Atomic saving of a recipe, and look-ups of paths that a recipe may hold."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from recipes.attributes import Attributes
from recipes.errors import Exit, ExplainedError, RecipeError
from recipes.limits import RECIPE_BYTES
from recipes.locks import RecipeLock
from recipes.reading import read_regular
from recipes.remote_path import RemotePath, on_machine_of

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
"""Lines as `patch` counts them: U+0085 and its like end none."""
TEMPORARY_SUFFIX = ".distill-tui.tmp"


class SaveError(RecipeError):
    """Error of the file system; what was there before is still there."""

    exit_code = Exit.OUTSIDE


class AttributesError(SaveError):
    """Error for a file whose owner or access rights would change by saving; `changes` says how."""

    exit_code = Exit.FAILED

    def __init__(self, path: Path, changes: tuple[str, ...]) -> None:
        what = f"Not saved: the file would change besides its text: {', '.join(changes)}"
        super().__init__(what, where=path, fix="Save with --accept-changes, or under another name.")
        self.changes = changes


class ChangedOnDiskError(RecipeError):
    """Error for a file that changed since it was opened; `diff` shows how."""

    exit_code = Exit.FAILED

    def __init__(self, path: Path, diff: str) -> None:
        fix = "Open it again and repeat the edit, or save under another name."
        super().__init__(f"{path} was changed by someone else since it was opened", where=path, fix=fix)
        self.diff = diff


@dataclass(frozen=True, slots=True)
class Saved:
    """Result of saving; `other_names` counts hard links that still hold the old text."""

    path: Path
    other_names: int


def is_file(path: Path) -> bool:
    """Return whether a path is a file; False also where that cannot be looked up, as for a name too long.

    `Path.is_file` raises there, and a recipe may hold any text where a path belongs.
    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_directory(path: Path) -> bool:
    """Return whether a path is a directory; see `is_file`."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_taken(path: Path) -> bool:
    """Return whether there is something of this name, also a link to nowhere."""
    return path.exists() or path.is_symlink()


def is_writable(path: Path) -> bool:
    """Return whether the user can write a file or directory; one of another machine may still refuse."""
    return isinstance(path, RemotePath) or os.access(path, os.W_OK)


def with_home(name: str, root: Path = Path()) -> Path:
    """Return a path on the machine of `root` with `~` replaced, as it stands where there is no such user."""
    path = on_machine_of(root, name)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def save(
    path: Path,
    data: bytes,
    opened: bytes | None,
    *,
    lock: RecipeLock | None = None,
    accept_changes: bool = False,
) -> Saved:
    """Replace a file's content atomically; `opened` is what it held when it was opened (None: no file).

    The bytes go to a temporary file beside it, are flushed to disk, get the old file's owner, mode, access
    list and extended attributes, and take its name in one rename. A symlink stays and its target is
    replaced. A hard link does not follow: its other names keep the old text, because writing through it
    could not be atomic.

    Args:
        path: The file.
        data: Its new content.
        opened: Its content when it was opened.
        lock: The lock that the caller holds; without one it is taken for the time of saving.
        accept_changes: Save also where the owner or other attributes cannot be kept.

    Raises:
        ChangedOnDiskError: the file has another content than when it was opened.
        AttributesError: its owner or other attributes would change.
        LockedError: somebody else is editing it.
        SaveError: the file system refuses. In all cases nothing has changed.
    """
    if isinstance(path, RemotePath):
        path.remote.save(str(path.absolute()), data, opened)
        return Saved(path, 0)
    with contextlib.nullcontext() if lock is not None else RecipeLock(path):
        return _save(path, data, opened, accept_changes=accept_changes)


def _fix_of_read_only(target: Path, attributes: os.stat_result) -> str:
    """Return what helps where a file may not be written: only its owner can change its mode."""
    if os.statvfs(target).f_flag & os.ST_RDONLY:
        return "Its file system is mounted read-only: save elsewhere."
    if attributes.st_uid != os.geteuid():
        return "It belongs to somebody else: save under another name."
    return f"chmod u+w {target}, or save under another name."


def _save(path: Path, data: bytes, opened: bytes | None, *, accept_changes: bool) -> Saved:
    target = _target(path)
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise _explained(error, target) from error
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise SaveError(f"{target} is not a regular file", where=path, fix="Save under another name.")
    if before is not None and not os.access(target, os.W_OK):
        raise SaveError(f"{target} is read-only", where=path, fix=_fix_of_read_only(target, before))
    temporary = _write_temporary(target, data, before)
    try:
        if before is not None and not accept_changes:
            _refuse_other_attributes(path, target, temporary)
        _refuse_if_changed(path, target, opened)
        temporary.replace(target)
    except OSError as error:
        raise _explained(error, target) from error
    finally:
        temporary.unlink(missing_ok=True)
    _flush_directory(target.parent)
    return Saved(target, before.st_nlink - 1 if before is not None else 0)


def _target(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise SaveError(
            f"{path} is a loop of symlinks", where=path, fix="Save under another name."
        ) from error


def _write_temporary(target: Path, data: bytes, before: os.stat_result | None) -> Path:
    """Write the bytes to a new file in the target's directory and flush them to disk."""
    try:
        # A name has at most 255 bytes, and the recipe's may have all of them.
        head = os.fsencode(target.name)[:200].decode("utf-8", "ignore")
        handle, name = tempfile.mkstemp(TEMPORARY_SUFFIX, f".{head}.", target.parent)
    except OSError as error:
        raise _explained(error, target) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _take_over(file.fileno(), before)
            if before is not None:
                Attributes.of(target).give_extended(file.fileno())
            os.fsync(file.fileno())
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _explained(error, target) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _take_over(handle: int, before: os.stat_result | None) -> None:
    """Give the new file the old one's owner and mode; without an old one, the mode of any new file."""
    if before is None:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        return
    Attributes(before.st_uid, before.st_gid, stat.S_IMODE(before.st_mode), {}).give_owner_and_mode(handle)


def _refuse_other_attributes(path: Path, target: Path, temporary: Path) -> None:
    changes = Attributes.of(target).changes_to(Attributes.of(temporary))
    if changes:
        raise AttributesError(path, changes)


def _refuse_if_changed(path: Path, target: Path, opened: bytes | None) -> None:
    try:
        now: bytes | None = read_regular(target, RECIPE_BYTES)
    except FileNotFoundError:
        now = None
    if now != opened:
        raise ChangedOnDiskError(
            path, unified_diff(opened or b"", now or b"", f"{path} (as opened)", f"{path} (now)")
        )


def _flush_directory(directory: Path) -> None:
    """Make the rename survive a crash; not every file system lets a directory be flushed."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_FIXES = {
    errno.ENOSPC: ("the disk is full", "Free some space, then save again."),
    errno.EDQUOT: ("the quota is used up", "Free some space or files (quota), then save again."),
    errno.EFBIG: ("the file size limit is reached", "Raise it (ulimit -f), then save again."),
    errno.EROFS: ("the file system is read-only", "Save somewhere else."),
    errno.EACCES: (
        "no permission to write in this directory",
        "Save somewhere else, or chmod the directory.",
    ),
    errno.EPERM: ("no permission to write in this directory", "Save somewhere else."),
    errno.ENOENT: ("the directory does not exist", "Create the directory first."),
}


def _explained(error: OSError, target: Path) -> ExplainedError:
    what, fix = _FIXES.get(error.errno or 0, (str(error.strerror or error), "Save somewhere else."))
    return SaveError(f"Cannot save: {what}; the old file is unchanged", where=target, fix=fix)


def unified_diff(before: bytes | str, after: bytes | str, name_before: str, name_after: str) -> str:
    """Return a unified diff, with the usual remark where the last line has no line break."""
    old, new = (
        text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in (before, after)
    )
    lines = difflib.unified_diff(_LINE.findall(old), _LINE.findall(new), name_before, name_after)
    marked = (line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
    return "".join(marked)
