"""Saving: at any moment the old or the new file is there whole."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recipes.document import Document
from recipes.errors import Exit
from recipes.files import TEMPORARY_SUFFIX, ChangedOnDiskError, SaveError

OLD = "# head\na: 1\n" + "".join(f"key_{number}: value  # {number}\n" for number in range(2000))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(OLD)
    return path


def new() -> str:
    return OLD.replace("a: 1", "a: 2")


def leftovers(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.iterdir() if entry.name.endswith(TEMPORARY_SUFFIX)]


def save(path: Path, before: str = "", after: str = "") -> subprocess.CompletedProcess[str]:
    """Edit and save in another process, with statements before the save."""
    code = (
        "import os, signal, sys, resource\nfrom pathlib import Path\n"
        "from recipes import files\nfrom recipes.document import Document\n"
        "from recipes.errors import ExplainedError\n"
        # Another user may not read the checkout: what is imported late is imported now.
        "import omegaconf, yaml.cyaml\nstr(ExplainedError('key=value', fix='-'))\n"
        f"document = Document.open(Path({str(path)!r}))\ndocument.set('a', 2)\n{before}\n"
        "try:\n    document.save()\nexcept ExplainedError as error:\n"
        "    print(error)\n    raise SystemExit(int(error.exit_code))\n" + after
    )
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False, timeout=60
    )


def test_mode_and_links_stay(recipe: Path, tmp_path: Path) -> None:
    recipe.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(recipe.name)
    document = Document.open(link)
    document.set("a", 2)
    saved = document.save()
    assert saved.path == recipe
    assert link.is_symlink()
    assert recipe.read_text() == new()
    assert stat.S_IMODE(recipe.stat().st_mode) == 0o640
    assert not leftovers(recipe)
    document.set("a", 3)
    document.save()
    assert not document.changed


def test_a_hard_link_keeps_the_old_text_and_that_is_said(recipe: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    os.link(recipe, other)
    document = Document.open(recipe)
    document.set("a", 2)
    assert document.save().other_names == 1
    assert recipe.read_text() == new()
    assert other.read_text() == OLD


def test_a_file_changed_meanwhile_is_not_overwritten(recipe: Path) -> None:
    document = Document.open(recipe)
    document.set("a", 2)
    recipe.write_text(OLD.replace("key_5: value", "key_5: theirs"))
    with pytest.raises(ChangedOnDiskError) as caught:
        document.save()
    assert "+key_5: theirs" in caught.value.diff
    assert caught.value.exit_code == Exit.FAILED
    assert "theirs" in recipe.read_text()
    recipe.unlink()
    with pytest.raises(ChangedOnDiskError):
        document.save()
    assert not recipe.exists()
    assert not leftovers(recipe)


def test_a_new_file_does_not_replace_another(recipe: Path, tmp_path: Path) -> None:
    document = Document("a: 1\n")
    with pytest.raises(ChangedOnDiskError):
        document.save(recipe)
    assert document.save(tmp_path / "new.yaml").path.read_text() == "a: 1\n"


def test_a_file_size_limit_leaves_the_old_file(recipe: Path) -> None:
    done = save(recipe, "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))")
    assert done.returncode == Exit.OUTSIDE
    assert "size limit" in done.stdout
    assert recipe.read_text() == OLD
    assert not leftovers(recipe)


def test_a_full_disk_leaves_the_old_file(recipe: Path) -> None:
    """On a real file system of 128 KiB, in a mount namespace of its own."""
    disk = recipe.parent / "disk"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size=128k none {disk} && cp {recipe} {disk}/recipe.yaml && "
        f'head -c 57344 /dev/zero > {disk}/rest && exec "$@"'
    )
    code = (
        "from pathlib import Path\nfrom recipes.document import Document\n"
        "from recipes.errors import ExplainedError\n"
        f"path = Path({str(disk / 'recipe.yaml')!r})\nold = path.read_bytes()\n"
        "document = Document.open(path)\ndocument.set('a', 2)\n"
        "try:\n    document.save()\n    print('saved')\nexcept ExplainedError as error:\n"
        "    print(error, path.read_bytes() == old, sorted(p.name for p in path.parent.iterdir()))\n"
    )
    command = ["unshare", "-rm", "sh", "-c", script, "sh", sys.executable, "-c", code]
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert "the disk is full" in done.stdout, done
    assert "True ['recipe.yaml', 'rest']" in done.stdout


@pytest.mark.parametrize("where", ["directory", "file"])
def test_what_is_read_only_is_not_written(where: str) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        path = directory / "recipe.yaml"
        path.write_text(OLD)
        directory.chmod(0o555 if where == "directory" else 0o777)
        path.chmod(0o666 if where == "directory" else 0o444)
        done = save(path, "os.geteuid() or os.setresuid(65534, 65534, 65534)")
        assert done.returncode == Exit.OUTSIDE, done
        assert "no permission" in done.stdout or "read-only" in done.stdout
        assert path.read_text() == OLD
        assert not leftovers(path)
    finally:
        directory.chmod(0o755)
        shutil.rmtree(directory)


@pytest.mark.long
@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)", OLD),
        ("files._refuse_if_changed = lambda *_: os.kill(os.getpid(), signal.SIGKILL)", OLD),
        ("Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)", OLD),
        ("files._flush_directory = lambda *_: os.kill(os.getpid(), signal.SIGKILL)", new()),
    ],
    ids=["written", "flushed", "renaming", "renamed"],
)
def test_kill_at_any_moment_leaves_a_whole_file(moment: str, expected: str, recipe: Path) -> None:
    done = save(recipe, moment)
    assert done.returncode == -signal.SIGKILL
    assert recipe.read_text() == expected
    again = save(recipe) if expected == OLD else None
    assert again is None or again.returncode == 0
    assert recipe.read_text() == new()


def test_a_directory_and_a_loop_of_links_are_refused(tmp_path: Path) -> None:
    document = Document("a: 1\n")
    with pytest.raises(SaveError, match="not a regular file"):
        document.save(tmp_path)
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    with pytest.raises(SaveError):
        document.save(loop)
    with pytest.raises(SaveError, match="does not exist"):
        document.save(tmp_path / "none" / "x.yaml")
