"""Origins lead to the place that decides, followers are what changes with it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recipes.document import Document
from recipes.errors import RecipeError
from recipes.inheritance import EffectiveRecipe, Origin, Resolver, resolve
from recipes.keys import format_key
from recipes.origins import chain_of, followers_of, replaced_by
from recipes.values import leaves
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from collections.abc import Callable

LINE = re.compile(r"(\s*(?:- )*(?:[\w.\"'/-]+:\s+|- ))((?:&\w+ )?)(.*?)(\s+#.*|\s*)$")
OTHER = "987654"


def edited(text: str, line: int) -> str:
    """The text with the value on a line replaced."""
    lines = text.splitlines(keepends=True)
    match = LINE.match(lines[line - 1].rstrip("\n"))
    assert match is not None, lines[line - 1]
    lines[line - 1] = f"{match[1]}{match[2]}{OTHER}{match[4]}\n"
    return "".join(lines)


def copied(corpus: list[Path], directory: Path) -> Path:
    root = next(path for path in corpus[0].parents if path.name == "nemo-rl")
    shutil.copytree(root / "examples", directory / "examples")
    return root


def check_origins(recipe: EffectiveRecipe, load: Callable[[Path], dict[str, Any]], every: int) -> int:
    """Edit at each origin in turn; the value must change."""
    places: dict[tuple[str, int], list[str]] = {}
    for path, value in leaves(recipe.merged):
        key = format_key(path)
        origin = recipe.origin(key)
        assert origin is not None
        assert origin == recipe.origin_of(value)
        assert (origin.file == str(recipe.path)) or origin.how != "own"
        places.setdefault((origin.file, origin.line), []).append(key)
    for (file, line), keys in sorted(places.items())[::every]:
        before = Path(file).read_text()
        Path(file).write_text(edited(before, line))
        try:
            values = load(recipe.path)
        except RecipeError as error:
            pytest.fail(f"{file}:{line}: {error}")
        finally:
            Path(file).write_text(before)
        changed = EffectiveRecipe(recipe.path, values, *[None] * 4)  # type: ignore[arg-type]
        for key in keys:
            assert not same(changed.get(key, "gone"), recipe.get(key)), (file, line, key)
    return sum(map(len, places.values()))


def test_editing_at_the_origin_changes_the_value(corpus: list[Path], tmp_path: Path) -> None:
    copied(corpus, tmp_path)
    resolver = Resolver()
    name = "distillation-qwen3-32b-to-1.7b-base-1n8g-megatron-tp2pp2cp2-pack.yaml"
    path = next(tmp_path.rglob(name))
    assert check_origins(resolver.resolve(path), lambda file: resolver.resolve(file).values, 9) > 300


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_editing_at_every_origin_changes_the_value(corpus: list[Path], tmp_path: Path) -> None:
    copied(corpus, tmp_path)
    resolver = Resolver()
    found = sorted(path for path in tmp_path.rglob("*.yaml") if "distillation" in path.name)
    assert len(found) == 20
    for path in found:
        assert check_origins(resolver.resolve(path), lambda file: resolver.resolve(file).values, 1) > 100


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_nemo_rls_loader_sees_the_edits_at_origins_too(
    corpus: list[Path], tmp_path: Path, nemo_rl: Callable[..., Any]
) -> None:
    copied(corpus, tmp_path)
    for path in sorted(path for path in tmp_path.rglob("*.yaml") if "distillation" in path.name)[::4]:
        check_origins(resolve(path), nemo_rl, 12)


def recipe_at(directory: Path, **texts: str) -> EffectiveRecipe:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text)
    return resolve(directory / f"{next(iter(texts))}.yaml", ["o=1", "+p.q=2"] if "o: " in texts["a"] else [])


def test_each_mechanism_has_its_name(tmp_path: Path) -> None:
    recipe = recipe_at(
        tmp_path,
        a="defaults: b.yaml\nown: 1\no: 0\nanchor: &A {x: 1}\nmerged:\n  <<: *A\n"
        "alias: *A\nref: ${own}\nsection: ${anchor}\n",
        b="parent: 2\nown: 0\nseen: ${own}\n",
    )
    a, b = str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")
    assert recipe.origin("own") == Origin(a, 2, "own")
    assert recipe.origin("parent") == Origin(b, 1, "parent")
    assert recipe.origin("merged.x") == Origin(a, 4, "merge")
    assert recipe.origin("alias.x") == Origin(a, 4, "merge")
    assert recipe.origin("ref") == Origin(a, 8, "interpolation")
    assert recipe.origin("section.x") == Origin(a, 9, "interpolation")
    assert recipe.origin("seen") == Origin(b, 3, "interpolation")
    assert recipe.origin("o") == Origin("<override>", 1, "override")
    assert recipe.origin("p.q") == Origin("<override>", 2, "override")
    assert recipe.origin("nothing") is None
    assert [(link.key, link.written) for link in chain_of(recipe, "seen")] == [("seen", "${own}"), ("own", 1)]
    assert [(link.origin.file, link.written) for link in replaced_by(recipe, "own")] == [(b, 0)]
    assert followers_of(recipe, "own") == ["seen", "ref"]
    assert followers_of(recipe, "anchor.x") == ["merged.x", "alias.x", "section.x"]
    assert followers_of(recipe, "merged.x") == []


@pytest.mark.parametrize(
    "key",
    [
        "policy.precision",
        "policy.max_total_sequence_length",
        "policy.train_micro_batch_size",
        "policy.dtensor_cfg.context_parallel_size",
        "policy.model_name",
        "teacher.model_name",
        "policy.megatron_cfg.optimizer.weight_decay",
        "data.train.dataset_name",
        "cluster.num_nodes",
    ],
)
def test_followers_are_what_changes(key: str, corpus: list[Path]) -> None:
    for name in ("distillation_math.yaml", "distillation-qwen3-32b-to-4b-base-2n8g-fsdp2tp2-long.v1.yaml"):
        path = next(path for path in corpus if path.name == name)
        before = resolve(path)
        document = Document.open(path)
        document.set(key, 987654)
        after = Resolver().resolve(path, tree=document.revision.tree)
        changed = [
            other
            for other in after.leaf_keys()
            if not same(after.get(other), before.get(other)) and other != key
        ]
        assert sorted(followers_of(before, key)) == sorted(changed)
