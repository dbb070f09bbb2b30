"""The effective recipe against NeMo-RL's loader, and every way in which there is none."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recipes.chain import RecipeReader
from recipes.errors import Exit, FilePosition, RecipeError
from recipes.inheritance import Resolver, resolve
from recipes.values import Leaf, leaves, plain
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from collections.abc import Callable


class WithoutFallback(Resolver):
    """Fails where only OmegaConf can judge, so that a test sees which path was taken."""

    def _by_omegaconf(self, chain: Any, overrides: Any) -> Any:
        pytest.fail(f"{chain.source.path} was left to OmegaConf")


def equal(files: list[Path], nemo_rl: Callable[..., Any]) -> None:
    resolver = WithoutFallback()
    for path in files:
        assert same(resolver.resolve(path).values, nemo_rl(path)), path


@pytest.mark.long
def test_a_sample_equals_nemo_rls_loader(sample: list[Path], nemo_rl: Callable[..., Any]) -> None:
    equal(sample[::6], nemo_rl)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_stock_recipes_equal_nemo_rls_loader(corpus: list[Path], nemo_rl: Callable[..., Any]) -> None:
    assert len(corpus) == 339
    equal(corpus, nemo_rl)


OVERRIDES = [
    ["policy.precision=float16"],
    ["distillation.max_num_steps=3", "++policy.new.deep.key=1e-5", "+teacher.extra=null"],
    ["~loss_fn.zero_outside_topk", "policy.scheduler.0.kwargs.total_iters=5"],
    ["policy.optimizer.kwargs.betas=[0.8,0.9]", "data.train={dataset_name:X}"],
    ["policy.model_name='a,b'", "checkpointing.checkpoint_dir=/p/scratch/x_1", "cluster.num_nodes=2"],
    ["+env.other={a:{b:1}}", "++cluster.gpus_per_node=4", "policy.scheduler=null"],
    ["teacher.model_name=${policy.model_name}", "logger.wandb.name=x-${loss_fn.kl_type}"],
    [
        "policy.max_grad_norm=0.5",
        "policy.max_grad_norm=1",
        "checkpointing.checkpoint_must_save_by='1:00:00:00'",
    ],
    ["policy.dtensor_cfg={tensor_parallel_size:1}", "policy.generation.vllm_kwargs.a=1"],
    ["+policy.generation.vllm_kwargs={a:1}", "++policy.generation.vllm_kwargs={b:[1,{c:x}]}"],
    ["policy.precision=float16", "policy.tokenizer.name=abc.d-e", "loss_fn.kl_type=reverse"],
    ["policy.make_sequence_length_divisible_by=8", "+a.b=-1.5", "+a.c=true", "~policy.optimizer.kwargs.eps"],
]


@pytest.mark.parametrize("overrides", OVERRIDES, ids=" ".join)
def test_overrides_mean_what_they_mean_to_nemo_rl(
    overrides: list[str], corpus: list[Path], nemo_rl: Callable[..., Any]
) -> None:
    path = next(path for path in corpus if path.name == "distillation_math.yaml")
    try:
        expected = nemo_rl(path, *overrides)
    except Exception:  # noqa: BLE001 - OmegaConf's and Hydra's refusals have many types
        with pytest.raises(RecipeError, match="override cannot be applied"):
            resolve(path, overrides)
    else:
        assert same(resolve(path, overrides).values, expected)


@pytest.mark.parametrize(
    "override",
    [
        "a=1",
        "+policy.precision=1",
        "~nothing",
        "policy.precision=a,b",
        "x=a=b",
        "--foo=1",
        "policy.scheduler.9=1",
        "",
    ],
)
def test_a_bad_override_is_explained(override: str, corpus: list[Path]) -> None:
    path = next(path for path in corpus if path.name == "distillation_math.yaml")
    with pytest.raises(RecipeError) as caught:
        resolve(path, [override])
    assert caught.value.exit_code == Exit.USAGE
    assert "KEY=VALUE" in str(caught.value)


@pytest.mark.long
def test_random_edits_keep_equal_to_nemo_rls_loader(
    distillation: list[Path], nemo_rl: Callable[..., Any], tmp_path: Path
) -> None:
    run_random_edits(distillation[::10], nemo_rl, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_random_edits_keep_equal_to_nemo_rls_loader(
    corpus: list[Path], nemo_rl: Callable[..., Any], tmp_path: Path
) -> None:
    run_random_edits(corpus, nemo_rl, tmp_path, 2)


def run_random_edits(files: list[Path], nemo_rl: Callable[..., Any], tmp_path: Path, rounds: int) -> None:
    """Edit a recipe in memory, resolve it there, and let NeMo-RL's loader read the saved text."""
    from recipes.document import Document

    values = [
        "${policy.model_name}",
        "${..x}",
        None,
        3,
        {"a": "${.b}", "b": 2},
        [1],
        "???",
        {},
        "x-${policy.precision}",
    ]
    resolver = Resolver()
    for path in files:
        document = Document.open(path)
        chooser = random.Random(path.name)
        for _ in range(rounds):
            held = document.revision.values
            assert held is not None
            keys = [key for key, value in leaves(held) if isinstance(value, Leaf) and key[0] != "defaults"]
            written = [key for key in keys if document.is_written(key)]
            if not written:
                continue
            key = chooser.choice(written)
            document.set(key, chooser.choice(values))  # type: ignore[arg-type]
            copied = _beside(path, document.to_bytes(), tmp_path)
            try:
                expected: Any = nemo_rl(copied)
            except Exception:  # noqa: BLE001 - OmegaConf's refusals have many types
                expected = None
            revision = document.revision
            try:
                got: Any = resolver.resolve(path, tree=revision.tree, composed=revision.composed).values
            except RecipeError:
                got = None
            assert same(got, expected), (path, key, document.get(key))


def _beside(path: Path, data: bytes, tmp_path: Path) -> Path:
    """Save a text where its relative `defaults:` lead to the same parents."""
    text = data.decode()
    for line in text.splitlines():
        if line.startswith("defaults:") and len(line.split()) > 1:
            name = line.split()[1].strip("\"'")
            text = text.replace(line, f"defaults: {path.parent / name}")
    target = tmp_path / path.name
    target.write_text(text)
    if "defaults:\n" in text:
        target.write_text(text.replace("\n  - ", f"\n  - {path.parent}/"))
    return target


def write(directory: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory / f"{next(iter(texts))}.yaml"


def test_override_sections_are_merged_without_omegaconf(tmp_path: Path) -> None:
    text = "defaults: b.yaml\nx: {_override_: true, p: 1}\n"
    path = write(tmp_path, a=text, b="x: {q: 2}\ny: ${x}\n")
    reader = RecipeReader()
    chain = reader.chain(path)
    merged = reader.merged(chain)  # raises UnsupportedError where only OmegaConf can decide
    assert plain(merged) == {"y": "${x}", "x": {"p": 1}}


@pytest.mark.parametrize(
    "texts",
    [
        {
            "a": "defaults: [b.yaml, c.yaml]\nx: {p: 1}\n",
            "b": "x: {p: 0, q: 2}\ny: 1\n",
            "c": "y: 2\nx: {r: 3}\n",
        },
        {"a": "defaults: b.yaml\nx: {_override_: true, p: 1}\n", "b": "x: {q: 2}\n"},
        {"a": "defaults: b.yaml\nx: {y: {_override_: true, p: 1}}\n", "b": "x: {y: {q: 2}}\n"},
        {"a": "defaults: b.yaml\nx: {_override_: false, p: 1}\n", "b": "x: {q: 2}\n"},
        {
            "a": "defaults: b.yaml\nx: ${y}\ny: {_override_: true, p: 1}\n",
            "b": "x: {q: 2}\ny: {r: 3}\n",
        },
        {
            "a": "defaults: b.yaml\ny: {_override_: true, p: 1}\nx: ${y}\n",
            "b": "x: {q: 2}\ny: {r: 3}\n",
        },
        {"a": "defaults: b.yaml\nx: {p: 1}\n", "b": "x: ${y}\ny: {q: 2}\n"},
        {"a": "defaults: b.yaml\nx: ???\nz: {y: '${x}'}\n", "b": "x: 3\n"},
        {"a": "defaults: b.yaml\nx: 1\n", "b": "x: {q: 2}\n"},
        {"a": "defaults: b.yaml\nx: {q: 2}\n", "b": "x: 1\n"},
        {"a": "defaults: b.yaml\nx: null\n", "b": "x: {q: 2}\n"},
        {"a": "x: ${y}\ny: {a: '${.b}', b: 2}\nl: [1, '${l.0}', '${y}']\n"},
        {"a": "x: \"\\\\${y}\"\ny: 'it''s ${z}'\nz: ${oc.decode:\"[1,2]\"}\n"},
        {"a": "x: ${mul:2,3}\ny: ${div:8,2}\nz: ${max:${x},${y}}\nw: ${add:a,b}\nv: ${oc.env:NO_SUCH,x}\n"},
        {"a": "1: a\ntrue: b\n2.5: c\nx: ${y}\ny: [yes, 0x10, 1:30, 1e3]\n"},
        {"a": "b: &B {x: 1, y: {z: 2}}\nc: {<<: *B, x: 3}\nd: [*B, *B]\ne: {<<: [*B, {w: 4}]}\n"},
        {"a": "b: &B {x: 1, y: 2}\nc: &C {<<: *B, x: 3}\nd: {<<: *C}\n"},
        {"a": "b: !!str 12\nc: !!float 3\nd: !!binary aGk=\n"},
        {"a": ""},
        {"a": "# nothing\n"},
        {"a": "x: ${oc.dict.keys:y}\ny: {a: 1}\n"},
    ],
    ids=lambda texts: texts["a"][:40],
)
def test_small_recipes_equal_nemo_rls_loader(
    texts: dict[str, str], tmp_path: Path, nemo_rl: Callable[..., Any]
) -> None:
    path = write(tmp_path, **texts)
    assert same(resolve(path).values, nemo_rl(path))


@pytest.mark.parametrize(
    ("texts", "what", "line", "column"),
    [
        ({"a": "x: 1\nx: 2\n"}, "Duplicate key", 2, 1),
        ({"a": "x:\n\ty: 1\n"}, "tab", 2, 1),
        ({"a": "x: [1,\n"}, "Not YAML", 2, 1),
        ({"a": "x: 'open\ny: 1\n"}, "Not YAML", 3, 1),
        ({"a": "- 1\n"}, "must be a mapping", 1, 1),
        ({"a": "x: *y\n"}, "has no anchor", 1, 4),
        ({"a": "x: !thing 1\n"}, "cannot read", 1, 4),
        ({"a": "x: 1\n---\ny: 2\n"}, "several documents", 3, 1),
        ({"a": "x: 1\ndefaults: nowhere.yaml\n"}, "does not exist", 2, 11),
        ({"a": "defaults:\nx: 1\n"}, "invalid `defaults:`", 1, 10),
        ({"a": "defaults: {b: 1}\n"}, "invalid `defaults:`", 1, 11),
        ({"a": "defaults: b.yaml\n", "b": "x: 1\ny: [\n"}, "Not YAML", 3, 1),
        ({"a": "x: 1\ny: ${z}\n"}, "'z' not found", 2, 0),
        ({"a": "x: ${y}\ny: ${x}\n"}, "", 1, 0),
        ({"a": "x: ${no_such_resolver:1}\n"}, "no_such_resolver", 1, 0),
        ({"a": "x: [1]\ndefaults: b.yaml\n", "b": "x: {y: 1}\n"}, "Cannot merge", 0, 0),
        ({"a": "x: ${div:1,0}\n"}, "division", 1, 0),
        ({"a": "x: ${\n"}, "", 1, 0),
        ({"a": "defaults: b.yaml\nx: ???\nz: ${x}\n", "b": "x: 3\n"}, "Missing mandatory value: x", 3, 0),
    ],
    ids=lambda value: str(value)[:40],
)
def test_every_fault_has_its_place(
    texts: dict[str, str], what: str, line: int, column: int, tmp_path: Path
) -> None:
    path = write(tmp_path, **texts)
    with pytest.raises(RecipeError) as caught:
        resolve(path)
    assert what in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3
    place = caught.value.where
    assert isinstance(place, FilePosition)
    assert (place.line, place.column) == (line, column)


def test_a_cycle_is_reported_with_the_chain(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        a="defaults: b.yaml\n",
        b="defaults: ./c.yaml\n",
        c="defaults: ../" + tmp_path.name + "/a.yaml\n",
    )
    with pytest.raises(RecipeError) as caught:
        resolve(path)
    names = [Path(part).name for part in str(caught.value.where).split(" -> ")]
    assert names == ["a.yaml", "b.yaml", "c.yaml", "a.yaml"]


def test_a_missing_parent_is_reported_with_the_chain(tmp_path: Path) -> None:
    path = write(tmp_path, a="defaults: b.yaml\n", b="defaults: gone.yaml\n")
    with pytest.raises(RecipeError) as caught:
        resolve(path)
    assert "a.yaml -> " in str(caught.value)
    assert "gone.yaml" in str(caught.value)
    assert isinstance(caught.value.where, FilePosition)
    assert caught.value.where.file.endswith("b.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no recipe file") as caught:
        resolve(tmp_path / "none.yaml")
    assert caught.value.exit_code == Exit.USAGE
    with pytest.raises(RecipeError, match="not a file"):
        resolve(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(RecipeError, match="0xff") as caught:
        resolve(tmp_path / "bytes.yaml")
    assert caught.value.where == FilePosition(str(tmp_path / "bytes.yaml"), 2, 4)


def test_parents_are_read_again_when_they_change(tmp_path: Path) -> None:
    path = write(tmp_path, a="defaults: b.yaml\n", b="defaults: c.yaml\ny: 1\n", c="x: 1\n")
    resolver = Resolver()
    assert resolver.resolve(path).values == {"x": 1, "y": 1}
    first = resolver.reader.base(resolver.reader.chain(path))
    assert resolver.reader.base(resolver.reader.chain(path)) is first
    (tmp_path / "c.yaml").write_text("x: 2\n")
    assert resolver.resolve(path).values == {"x": 2, "y": 1}


def test_an_alias_bomb_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = write(tmp_path, a="\n".join(lines) + "\n")
    with pytest.raises(RecipeError, match="expand to more"):
        resolve(path)
