"""Paths on another machine, with files that are a table."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from recipes.chain import read_bytes
from recipes.checks import Checker, Inputs
from recipes.document import Document
from recipes.errors import RecipeError
from recipes.inheritance import resolve
from recipes.models import Models
from recipes.remote_path import RemotePath, environment_at, identity_of, on_machine_of, remote_path_type
from recipes.schema.algorithms import holding_checkout


class Table:
    """Files of a machine, as texts by absolute path."""

    machine = "far"
    directory = "/home/me"

    def __init__(self, files: Mapping[str, str], environment: Mapping[str, str] | None = None) -> None:
        self.files = dict(files)
        self.environment = environment or {}

    def status(self, path: str) -> os.stat_result:
        path = posixpath.normpath(path)
        if path in self.files:
            mode, size = stat.S_IFREG, len(self.files[path])
        elif any(name.startswith(f"{path}/") for name in self.files):
            mode, size = stat.S_IFDIR, 0
        else:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return os.stat_result((mode | 0o644, 1, 1, 1, 0, 0, size, 0, 0, 0))

    def look_again(self, path: str) -> None:
        pass

    def names(self, path: str) -> list[str]:
        head = posixpath.normpath(path).rstrip("/") + "/"
        return sorted({name[len(head) :].partition("/")[0] for name in self.files if name.startswith(head)})

    def below(self, path: str) -> list[str]:
        head = posixpath.normpath(path) + "/"
        return sorted(name[len(head) :] for name in self.files if name.startswith(head))

    def read(self, path: str) -> bytes:
        return self.files[posixpath.normpath(path)].encode()

    def real(self, path: str) -> str:
        return posixpath.normpath(path)

    def prefetch_checkout(self, root: str) -> None:
        """Have everything at hand."""

    def save(self, path: str, data: bytes, opened: bytes | None) -> None:
        assert opened == self.files[path].encode()
        self.files[path] = data.decode()


def far(files: Mapping[str, str], **environment: str) -> type[RemotePath]:
    return remote_path_type(Table(files, environment))


def test_relative_paths_and_the_tilde_count_from_the_home_there() -> None:
    path_type = far({"/home/me/a/b.yaml": "x: 1\n"})
    assert str(path_type("a/b.yaml").absolute()) == "/home/me/a/b.yaml"
    assert str(path_type("~/a").expanduser()) == "/home/me/a"
    assert str(path_type("~").expanduser()) == "/home/me"
    assert str(path_type("/x/~/a").expanduser()) == "/x/~/a"
    assert read_bytes(path_type("a/b.yaml")) == b"x: 1\n"


def test_paths_of_two_machines_differ() -> None:
    one, two = far({}), far({})
    assert one("/a") == one("/a")
    assert len({one("/a"), two("/a"), Path("/a")}) == 3
    assert identity_of(one("/a")) == "far:/a"
    assert identity_of(Path("/a")) == "/a"


def test_what_is_made_of_a_path_stays_there() -> None:
    path = far({"/a/b/c.yaml": ""})("/a/b/c.yaml")
    made = (
        path.parent,
        path / "x",
        path.with_name("y"),
        *path.parents,
        path.relative_to("/a"),
        path.resolve(),
    )
    assert {type(item) for item in made} == {type(path)}
    assert type(on_machine_of(path, Path("/z"))) is type(path)
    assert type(on_machine_of(Path("/a"), "/z")) is type(Path())


def test_the_standard_library_does_not_open_it(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("of this machine")
    path = far({})(str(tmp_path / "own"))
    assert not path.exists()
    with pytest.raises(TypeError, match="is a file of far"):
        os.stat(path)
    with pytest.raises(RecipeError, match="There is no recipe"):
        read_bytes(path)


def test_parents_and_variables_are_those_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "here")
    files = {
        "/r/base.yaml": "defaults: ../${oc.env:KIND}.yaml\nname: ${oc.env:WHERE}\nmore: ${oc.env:NONE,no}\n",
        "/parent.yaml": "size: 2\nsum: ${add:${size},1}\n",
    }
    path = far(files, WHERE="there", KIND="parent")("/r/../r/base.yaml")
    recipe = resolve(path, ("size=5",))
    assert recipe.values == {"size": 5, "sum": 6, "name": "there", "more": "no"}
    assert environment_at(path)["WHERE"] == "there"


def test_omegaconf_reads_the_variables_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "here")
    text = "name: ${oc.env:WHERE}\nwhole: ${oc.decode:${oc.env:COUNT}}\n"  # oc.decode is OmegaConf's alone
    assert resolve(far({"/r.yaml": text}, WHERE="there", COUNT="3")("/r.yaml")).values == {
        "name": "there", "whole": 3,
    }  # fmt: skip
    monkeypatch.setenv("COUNT", "7")
    from omegaconf import OmegaConf

    assert OmegaConf.create({"a": "${oc.env:WHERE}"}).a == "here"


def test_a_document_is_saved_there() -> None:
    files = Table({"/r.yaml": "a: 1  # one\n"})
    document = Document.open(remote_path_type(files)("/r.yaml"))
    document.set("a", 2)
    document.save()
    assert files.files["/r.yaml"] == "a: 2  # one\n"


def test_models_and_checkouts_are_looked_up_there() -> None:
    config = '{"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 16}'
    path_type = far({
        "/hf/hub/models--a--b/snapshots/1/config.json": config,
        "/home/me/model/config.json": config,
        "/rl/nemo_rl/algorithms/distillation.py": "",
        "/rl/examples/mine.yaml": "policy: {}\n",
    })  # fmt: skip
    models = Models.of({"HF_HOME": "/hf"}, path_type("/rl"))
    for name in ("a/b", "~/model"):
        assert getattr(models.find(name), "layers", None) == 2, name
    assert holding_checkout(path_type("/rl/examples/mine.yaml")) == path_type("/rl")
    report = Checker(Inputs.of(environment={}, checkout=path_type("/rl"))).check(
        path_type("/rl/examples/mine.yaml")
    )
    assert report.results
