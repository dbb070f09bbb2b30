"""Recipes on another machine: read, checked and edited as if they were here."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from launcher.request import SubmitRequest
from launcher.transports.ssh.host_listings import listing_script
from launcher.transports.ssh.transport import SshTransport
from recipes.checks import Checker, Inputs
from recipes.document import Document
from recipes.files import ChangedOnDiskError
from recipes.inheritance import resolve
from recipes.library import DIRECTORY
from recipes.limits import RECIPE_BYTES
from recipes.reading import IrregularFileError, TooLargeError, read_regular
from recipes.remote_path import RemotePath, on_machine_of
from tests.ssh.laptop import command, laptop, requests_of
from tests.ssh.server import SFTP, Server, running
from tui.headless.saving import with_saved_choices

pytestmark = pytest.mark.long
PARENT = "policy:\n  model_name: a/b\n  path: ${oc.env:FAR_DIRECTORY,none}\nsize: 3\n"
CHILD = "# mine\ndefaults: ../parent.yaml\nsize: 4   # kept\n"


@pytest.fixture
def far(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshTransport:
    """Return a transport whose cache is this test's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "laptop-cache"))
    return SshTransport(server.host())


@pytest.fixture
def tree(odd_path: Path) -> Path:
    """Return a directory with a recipe and its parent, and what may stand in a directory besides."""
    (odd_path / "recipes").mkdir()
    (odd_path / "parent.yaml").write_text(PARENT)
    (odd_path / "recipes" / "mine.yaml").write_text(CHILD)
    (odd_path / "link.yaml").symlink_to("recipes/mine.yaml")
    (odd_path / "broken").symlink_to("nowhere")
    (odd_path / "link").symlink_to("recipes")
    (odd_path / "line\nbreak").write_text("x")
    os.mkfifo(odd_path / "fifo")
    os.utime(odd_path / "parent.yaml", (1_700_000_000, 1_700_000_000))
    return odd_path


def test_a_path_there_answers_as_one_here(far: SshTransport, tree: Path) -> None:
    names = ["", "recipes", "parent.yaml", "link.yaml", "broken", "link", "fifo", "none", "line\nbreak",
             "parent.yaml/below", "none/below", "link/mine.yaml", "recipes/../parent.yaml"]  # fmt: skip
    for name in names:
        here, there = tree / name, far.path(str(tree / name))
        for question in ("exists", "is_file", "is_dir", "resolve"):
            answers = [str(getattr(path, question)()) for path in (here, there)]
            assert answers[0] == answers[1], (name, question)
        if here.exists():
            own, other = here.stat(), there.stat()
            if here.is_file():
                assert other.st_size == own.st_size
            assert other.st_mtime_ns == own.st_mtime_ns
            assert stat.S_IFMT(other.st_mode) == stat.S_IFMT(own.st_mode)
    there = far.path(str(tree))
    assert sorted(path.name for path in there.iterdir()) == sorted(path.name for path in tree.iterdir())
    assert [str(path) for path in there.glob("*.yaml")] == sorted(str(path) for path in tree.glob("*.yaml"))
    assert [str(path) for path in there.glob("rec*/*.yaml")] == [str(tree / "recipes" / "mine.yaml")]
    assert (there / "recipes" / "mine.yaml").read_text() == CHILD
    refusals = {"none": FileNotFoundError, "recipes": IsADirectoryError, "fifo": IrregularFileError}
    for wrong, error in refusals.items():
        with pytest.raises(error):
            read_regular(there / wrong, RECIPE_BYTES)
    far.close()


def test_of_a_directory_too_long_to_list_each_name_is_asked_for(
    far: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launcher.transports.ssh.host_listings._LISTING_BYTES", 4_000)
    long = tmp_path / "long"
    long.mkdir()
    names = [f"file-{number:03}-{'x' * 60}" for number in range(90)]
    for name in names:
        (long / name).write_text(name)
    assert all(far.path(str(long / name)).read_text() == name for name in names)
    assert not far.path(str(long / "none")).exists()
    assert not far.path(str(long / names[0][:30])).exists()


def test_names_in_a_directory_that_may_only_be_entered_are_asked_for() -> None:
    if os.getuid() != 0:
        pytest.skip("another user is needed, whose directory this is")
    with tempfile.TemporaryDirectory(prefix="closed") as name:  # pytest's own may not be entered by others
        (Path(name) / "inner").mkdir()
        Path(name).chmod(0o711)
        for directory, answer in ((name, "E EACCES"), (f"{name}/inner", "= 0")):
            script = ["sh", "-c", listing_script(directory)]
            done = subprocess.run(script, capture_output=True, user=65534, cwd="/", check=True)
            assert done.stdout == f"{answer} {directory}\0".encode()


def test_a_path_there_is_never_opened_here(far: SshTransport, tmp_path: Path) -> None:
    there = far.path(str(tmp_path))
    for action in (os.stat, os.listdir, open, os.path.exists):
        with pytest.raises(TypeError, match="is a file of test"):
            action(there)
    assert there != tmp_path
    assert type(there / "x") is type(there.parent) is type(on_machine_of(there, "y")) is type(there)
    assert isinstance(there, RemotePath)


def test_a_recipe_there_has_the_values_of_one_here(
    far: SshTransport, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = resolve(tree / "recipes" / "mine.yaml", ("size=7",))
    there = resolve(far.path(str(tree / "recipes" / "mine.yaml")), ("size=7",))
    assert (there.values, there.files) == (here.values, here.files)
    monkeypatch.setenv("FAR_DIRECTORY", "of the laptop")
    assert resolve(far.path(str(tree / "recipes" / "mine.yaml"))).get("policy.path") == "none"
    far.close()


def test_an_edit_keeps_the_file_and_finds_others_edits(far: SshTransport, tree: Path) -> None:
    path = tree / "recipes" / "mine.yaml"
    path.chmod(0o640)
    document = Document.open(far.path(str(tree / "link.yaml")))
    document.set("size", 5)
    document.save()
    assert path.read_text() == CHILD.replace("4", "5")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tree / "link.yaml").is_symlink()
    document.set("size", 6)
    path.write_text("size: 99\n")
    with pytest.raises(ChangedOnDiskError, match="was changed"):
        document.save()
    assert path.read_text() == "size: 99\n"
    assert sorted(os.listdir(path.parent)) == ["mine.yaml"]
    far.close()


def test_a_file_is_read_again_only_when_it_has_changed(
    far: SshTransport, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = far.path(str(tree / "parent.yaml"))
    assert there.read_text() == PARENT
    calls = requests_of(far, monkeypatch)
    assert there.read_text() == PARENT
    assert calls == []
    kept = [path for path in (tree.parent / "laptop-cache").rglob("*") if path.is_file()]
    assert [path.read_text() for path in kept] == [PARENT]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    other = SshTransport(far.connection.host)
    (tree / "parent.yaml").write_text(PARENT.replace("3", "8"))
    os.utime(tree / "parent.yaml", (1_700_000_100, 1_700_000_100))
    assert other.path(str(tree / "parent.yaml")).read_text() == PARENT.replace("3", "8")
    other.close()
    far.close()


def test_a_file_that_is_too_large_is_refused_before_it_is_read(far: SshTransport, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(RECIPE_BYTES.value + 1)
    with pytest.raises(TooLargeError):
        read_regular(far.path(str(tmp_path / "large")), RECIPE_BYTES)
    far.close()


def test_checks_of_a_checkout_there_are_those_of_here_in_few_requests(
    far: SshTransport, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tarfile.open(shared / "nemo-versions" / "v0.7.0.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (checkout,) = (path.parent for path in tmp_path.glob("*/nemo_rl"))
    recipe = min((checkout / "examples" / "configs" / "recipes").rglob("*distillation*.yaml"))
    environment = {"HOME": str(tmp_path)}
    here = Checker(Inputs.of(environment=environment, checkout=checkout)).check(recipe)
    calls = requests_of(far, monkeypatch)
    there = far.path(str(checkout))
    inputs = Inputs.of(environment=environment, checkout=there, root=far.path(""))
    found = Checker(inputs).check(far.path(str(recipe)))
    assert [(item.id, item.outcome, item.message, item.where) for item in found.results] == [
        (item.id, item.outcome, item.message, item.where) for item in here.results
    ]
    assert len(calls) <= 12
    far.close()


def test_commands_take_a_host_or_its_name_before_the_path(server: Server, tree: Path, tmp_path: Path) -> None:
    environment = laptop(server, tmp_path)
    path = str(tree / "recipes" / "mine.yaml")
    shown = command(environment, "recipe", "get", "--effective", f"far:{path}", "size")
    assert (shown.returncode, shown.stdout) == (0, "4\n"), shown.stderr
    done = command(environment, "recipe", "set", f"far:{path}", "size", "11")
    assert done.returncode == 0, done.stderr
    assert Path(path).read_text() == CHILD.replace("4", "11")
    missing = command(environment, "check", "--host", "far", str(tree / "no.yaml"))
    assert (missing.returncode, "no such recipe" in missing.stderr) == (2, True), missing.stderr
    here, far = (
        json.loads(command(environment, "check", "--json", *host, path).stdout)
        for host in ((), ("--host", "far"))
    )
    assert far["checks"] == here["checks"]
    refused = command(environment, "--host", "far", "recipe", "get", path, "size")
    assert (refused.returncode, "takes no --host" in refused.stderr) == (2, True)
    assert "far:PATH" in refused.stderr
    shutil.rmtree(tmp_path / "laptop", ignore_errors=True)


def test_choices_become_a_recipe_there_or_lines_of_one(far: SshTransport, tmp_path: Path) -> None:
    recipe = tmp_path / "own.yaml"
    text = f"# kept\n{(DIRECTORY / 'qwen3-1.7b-from-4b.yaml').read_text()}"
    recipe.write_text(text)
    request = SubmitRequest(far.path(str(recipe)), 3, overrides=("distillation.max_num_steps=7",))
    child = with_saved_choices(
        request, save_child=str(tmp_path / "child.yaml"), save_into=False, dry_run=False
    )
    assert isinstance(child.recipe, RemotePath)
    written = resolve(tmp_path / "child.yaml")
    assert (written.get("distillation.max_num_steps"), written.get("cluster.num_nodes")) == (7, 3)
    assert recipe.read_text() == text
    into = with_saved_choices(request, save_child=None, save_into=True, dry_run=False)
    assert into.recipe == request.recipe
    changed = [line for line in recipe.read_text().splitlines() if line not in text.splitlines()]
    assert {line.split("#")[0].strip() for line in changed} == {"max_num_steps: 7", "num_nodes: 3"}
    far.close()


def test_a_setting_of_a_host_is_set_there(tmp_path: Path) -> None:
    (tmp_path / "laptop" / ".config" / "distill-tui").mkdir(parents=True)
    own = tmp_path / "laptop" / ".config" / "distill-tui" / "settings.toml"
    own.write_text('[hosts]\ndefault = "far"\n')
    home = tmp_path / "home"
    (home / ".config" / "distill-tui").mkdir(parents=True)
    there = home / ".config" / "distill-tui" / "settings.toml"
    there.write_text(f'# mine\n[storage]\nruns = "{tmp_path}"\n')
    sshd = tmp_path / "sshd"
    sshd.mkdir()
    with running(sshd, SFTP, f"SetEnv HOME={home}") as own_server:
        environment = laptop(own_server, tmp_path)
        set_there = command(environment, "settings", "storage.runs", "$HOME/runs", "--host", "far")
        assert set_there.returncode == 0, set_there
        assert there.read_text().startswith(f'# mine\n[storage]\nruns = "{home}/runs"\n')
        assert f'earlier_runs = ["{tmp_path}"]' in there.read_text()
        shown = command(environment, "settings", "storage.runs", "--host", "far", "--json")
        assert json.loads(shown.stdout) == {
            "schema": 1, "key": "storage.runs", "value": f"{home}/runs", "file": str(there),
        }  # fmt: skip
        refused = command(environment, "settings", "screen.density", "wide", "--host", "far")
        assert (refused.returncode, "expected" in refused.stderr) == (2, True)
        here = command(environment, "settings", "hosts.default")
        assert here.stdout == "far\n", "not what the host's settings say"
    assert own.read_text() == '[hosts]\ndefault = "far"\n'
