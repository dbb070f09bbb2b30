"""Compare, minimise, rebase and expand: nothing of them changes what a recipe means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from omegaconf import OmegaConf

from recipes.compare import ABSENT, ValueDifference, differences, minimise, rebase
from recipes.document import Document
from recipes.expand import expand
from recipes.inheritance import Resolver
from recipes.yaml.check import EditRefusedError
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from collections.abc import Callable

PARENT = """\
# head
a: 1  # one
# about b
b:
  c: 1e-5
  # deep
  d: [1, 2]  # pair
  l:
  - name: x
    # inner
    kwargs: {k: 1}
text: |
  two
  lines
ref: ${a}
"""


def write(directory: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory / f"{next(iter(texts))}.yaml"


def test_differences_are_by_value_and_type() -> None:
    a = {"x": 1, "y": {"z": [1, {"q": 2}]}, "only": None, "t": 1}
    b = {"y": {"z": [1, {"q": 3}]}, "x": 1, "new": 2, "t": True}
    assert list(differences(a, b)) == [
        ValueDifference("y.z", [1, {"q": 2}], [1, {"q": 3}]),
        ValueDifference("only", None, ABSENT),
        ValueDifference("t", 1, True),
        ValueDifference("new", ABSENT, 2),
    ]


def test_minimise_removes_what_is_inherited_anyway(tmp_path: Path) -> None:
    child = (
        "defaults: p.yaml\n# mine\na: 1\nb:\n  c: 1.0e-5\n  d: [1, 3]\n"
        "  l:\n    - {name: x, kwargs: {k: 1}}\nn: null\n"
    )
    path = write(tmp_path, c=child, p=PARENT)
    document, resolver = Document.open(path), Resolver()
    before = resolver.resolve(path).values
    assert minimise(document, resolver) == ["a", "b.c", "b.l"]
    assert document.text == "defaults: p.yaml\n# mine\nb:\n  d: [1, 3]\nn: null\n"
    document.save()
    assert same(resolver.resolve(path).values, before) or resolver.resolve(path).values == before
    assert minimise(document, resolver) == []


def test_minimise_keeps_sections_that_replace_their_parents(tmp_path: Path) -> None:
    path = write(tmp_path, c="defaults: p.yaml\nb:\n  _override_: true\n  c: 1e-5\na: 1\n", p=PARENT)
    document = Document.open(path)
    assert minimise(document, Resolver()) == ["a"]
    with pytest.raises(EditRefusedError, match="has no parent"):
        minimise(Document.open(tmp_path / "p.yaml"), Resolver())


def test_stock_recipes_mean_the_same_when_minimised(sample: list[Path], nemo_rl: Callable[..., Any]) -> None:
    resolver = Resolver()
    for path in sample[::5]:
        document = Document.open(path)
        if document.has("defaults"):
            before = resolver.resolve(path).values
            minimise(document, resolver)
            revision = document.revision
            after = resolver.resolve(path, tree=revision.tree, composed=revision.composed).values
            assert list(differences(before, after)) == []


def test_rebase_keeps_the_meaning_or_refuses(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        c="defaults: p.yaml\na: 2\n",
        p=PARENT,
        q="a: 2\nb: {c: 3}\ntext: x\n",
        r=PARENT + "more: 1\n",
    )
    document, resolver = Document.open(path), Resolver()
    before = resolver.resolve(path).values
    rebase(document, resolver, tmp_path / "q.yaml")
    assert document.get("defaults") == "q.yaml"
    after = resolver.resolve(path, tree=document.revision.tree).values
    assert list(differences(before, after)) == []
    assert document.undo()
    with pytest.raises(EditRefusedError, match="more"):
        rebase(document, resolver, tmp_path / "r.yaml")
    assert not document.changed


def test_expand_keeps_comments_spelling_and_meaning(tmp_path: Path) -> None:
    path = write(tmp_path, c="defaults: p.yaml\nb:\n  # ours\n  c: 2e-5\n", p=PARENT)
    resolver = Resolver()
    recipe = resolver.resolve(path)
    tree = resolver.reader.source(path).tree
    text = expand(recipe, resolver.reader, tree)
    assert text == (
        "a: 1 # one\n\n# about b\nb:\n  # ours\n  c: 2e-5\n  # deep\n  d: [1, 2] # pair\n  l:\n"
        "    - name: x\n      # inner\n      kwargs: {k: 1}\n\ntext: |\n  two\n  lines\n\nref: ${a}\n"
    )
    resolved = expand(recipe, resolver.reader, tree, resolved=True)
    assert resolved == text.replace("${a}", "1")


def check_expand(files: list[Path]) -> None:
    resolver = Resolver()
    for path in files:
        recipe = resolver.resolve(path)
        tree = resolver.reader.source(path).tree
        loaded = OmegaConf.to_container(OmegaConf.create(expand(recipe, resolver.reader, tree)), resolve=True)
        assert same(loaded, recipe.values), path
        resolved = expand(recipe, resolver.reader, tree, resolved=True)
        assert "${" not in yaml.safe_dump(yaml.safe_load(resolved))


@pytest.mark.long
@pytest.mark.usefixtures("nemo_rl")
def test_expanded_stock_recipes_mean_the_same(distillation: list[Path]) -> None:
    check_expand(distillation[::7])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("nemo_rl")  # it registers the resolvers
def test_all_expanded_stock_recipes_mean_the_same(corpus: list[Path]) -> None:
    check_expand(corpus)
