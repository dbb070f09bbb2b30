"""The commit of a checkout and its local changes, from a real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from launcher.checkout_state import CheckoutState, checkout_state
from launcher.transports.local import LocalTransport


def git(root: Path, *arguments: str) -> str:
    own = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null"}  # fmt: skip
    return subprocess.run(
        ["git", "-C", str(root), *arguments], env=own, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "nemo rl"
    root.mkdir()
    git(root, "init", "-q", "-b", "mine")
    (root / "a.py").write_text("a = 1\n")
    git(root, "add", "a.py")
    git(root, "commit", "-q", "-m", "first")
    return root


def state(root: Path) -> CheckoutState:
    return checkout_state(LocalTransport(), os.environ, str(root))


def test_commit_branch_and_changes(checkout: Path) -> None:
    clean = state(checkout)
    assert (clean.commit, clean.branch) == (git(checkout, "rev-parse", "HEAD"), "mine")
    assert not clean.dirty
    (checkout / "a.py").write_text("a = 2\nb = 3\n")
    (checkout / "new.yaml").write_text("x: 1\n")
    dirty = state(checkout)
    assert dirty.dirty
    assert "a.py | 3 ++-" in dirty.changes
    assert dirty.untracked == 1


def test_many_changes_are_cut_with_their_sum(checkout: Path) -> None:
    for number in range(90):
        (checkout / f"f{number:02}.py").write_text("x\n")
    git(checkout, "add", ".")
    lines = state(checkout).changes.split("\n")
    assert len(lines) == 60
    assert "90 files changed" in lines[-1]


def test_names_with_escape_sequences_are_cleaned(checkout: Path) -> None:
    (checkout / "x\x1b]0;t\x07.py").write_text("x\n")
    git(checkout, "add", ".")
    assert "\x1b" not in state(checkout).changes


def test_a_directory_without_git_has_no_state(tmp_path: Path) -> None:
    assert state(tmp_path) == CheckoutState()
    assert checkout_state(LocalTransport(), {"PATH": "/nowhere"}, str(tmp_path)) == CheckoutState()


def test_an_unpacked_release_in_another_repository_has_none_of_its_commits(checkout: Path) -> None:
    release = checkout / "NeMo-RL"
    (release / "nemo_rl").mkdir(parents=True)
    (release / "nemo_rl" / "package_info.py").write_text("")
    assert state(release) == CheckoutState()


def test_a_release_that_another_repository_keeps_has_that_one_s_commit(checkout: Path) -> None:
    """As a vendored directory: changes outside of it are none of its own."""
    release = checkout / "NeMo-RL"
    (release / "nemo_rl").mkdir(parents=True)
    (release / "nemo_rl" / "package_info.py").write_text("")
    git(checkout, "add", "NeMo-RL")
    git(checkout, "commit", "-q", "-m", "vendored")
    (checkout / "outside.txt").write_text("x")
    kept = state(release)
    assert (len(kept.commit), kept.dirty) == (40, False)
    (release / "nemo_rl" / "package_info.py").write_text("# mine\n")
    assert "package_info.py" in state(release).changes
