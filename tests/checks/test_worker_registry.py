"""Environments of workers, as the registry of each release names them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.checks import Context, Inputs
from recipes.checks.checkout import Checkout
from recipes.checks.offline import Need, prefetch_command, worker_environments
from recipes.checks.worker_registry import actor_environments, environment_of_class
from recipes.inheritance import resolve
from tests.checks.releases import RELEASES, release
from tests.checks.world import World

EXECUTABLES = """\
class PY_EXECUTABLES:
    SYSTEM = sys.executable
    BASE = f"uv run --locked --directory {git_root}"
    VLLM = "uv run --locked --extra vllm"
    MCORE = f"uv run --locked --extra mcore --extra te --directory {git_root}"
"""
FORMS = {
    "PY_EXECUTABLES.SYSTEM": None,
    "PY_EXECUTABLES.BASE": ((), False),
    "PY_EXECUTABLES.VLLM": (("vllm",), False),
    "OWN": (("mcore", "te"), True),
    "PLAIN": (("vllm",), False),
    '"uv run --extra a --extra=b-c"': (("a", "b-c"), False),
    "PY_EXECUTABLES.GONE": None,
    "unknown()": None,
}
"""Expression -> extras, and whether a switch puts the driver's Python in its place."""
HEAD = """\
from nemo_rl.distributed.virtual_cluster import PY_EXECUTABLES
OWN = (
    PY_EXECUTABLES.SYSTEM if USE_SYSTEM_EXECUTABLE else PY_EXECUTABLES.MCORE
)
PLAIN = PY_EXECUTABLES.VLLM
"""


def checkout_with(root: Path, registry: str, **files: str) -> Checkout:
    texts = {"ray_actor_environment_registry": registry, "virtual_cluster": EXECUTABLES, **files}
    folder = root / "nemo_rl" / "distributed"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return Checkout.at(root)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}(\.[a-z_0-9]{1,5}){0,2}\.[A-Z][a-z]{1,5}", fullmatch=True).filter(
            lambda name: not any(part[0].isdigit() for part in name.split("."))
        ),
        st.sampled_from(sorted(FORMS)),
        max_size=8,
    )
)
def test_a_registry_means_what_python_makes_of_it(entries: Mapping[str, str]) -> None:
    rows = "".join(f'    "{actor}": {value},  # x\n' for actor, value in entries.items())
    text = f"{HEAD}ACTOR_ENVIRONMENT_REGISTRY: dict[str, str] = {{\n{rows}}}\n"
    folder = "distributed"
    texts = {
        f"{folder}/ray_actor_environment_registry.py": text,
        f"{folder}/virtual_cluster.py": EXECUTABLES,
    }
    checkout = Checkout(Path("/nowhere"), _texts=texts)
    read = {
        item.actor: (item.extras, item.system_on_request) for item in actor_environments(checkout).values()
    }
    assert read == {actor: FORMS[value] for actor, value in entries.items() if FORMS[value] is not None}


@pytest.mark.parametrize("text", ["", "def", "ACTOR_ENVIRONMENT_REGISTRY = [", "\0", "x = " + "(" * 500])
def test_a_registry_that_is_no_python_names_nothing(text: str, tmp_path: Path) -> None:
    assert actor_environments(checkout_with(tmp_path, text)) == {}


def test_names_of_somebody_s_checkout_reach_no_shell(tmp_path: Path) -> None:
    rows = "".join(f'    "a.{name}": PLAIN,\n' for name in ("$(touch x)", "b; c", "../d", "e f", "Good"))
    checkout = checkout_with(tmp_path, f"{HEAD}ACTOR_ENVIRONMENT_REGISTRY = {{\n{rows}}}\n")
    assert list(actor_environments(checkout)) == ["a.Good"]


OF_V04 = {
    "nemo_rl.models.policy.dtensor_policy_worker.DTensorPolicyWorker": ("PLAIN", "vllm"),
    "nemo_rl.models.policy.dtensor_policy_worker_v2.DTensorPolicyWorkerV2": ("PY_EXECUTABLES.BASE", ""),
    "nemo_rl.models.generation.vllm.vllm_worker.VllmGenerationWorker": ("OWN", "mcore"),
}


def needed(world: World, checkout: Checkout, *overrides: str, **variables: str) -> dict[str, Need]:
    inputs = replace(Inputs.of(environment={**world.environment, **variables}), checkout=checkout)
    context = Context(resolve(world.root / "recipe.yaml", overrides), inputs)
    return {need.actor: need for need in worker_environments(context, world.root / "venvs")}


def test_the_directories_are_those_of_the_checkout_s_release(tmp_path: Path) -> None:
    world = World.at(tmp_path)
    rows = "".join(f'    "{actor}": {value},\n' for actor, (value, _) in OF_V04.items())
    checkout = checkout_with(world.root, f"{HEAD}ACTOR_ENVIRONMENT_REGISTRY = {{\n{rows}}}\n")
    first, second, vllm = OF_V04
    found = needed(world, checkout)
    assert list(found) == [second, vllm]
    # The world has the environments of the newest release, whose policy workers have other names.
    assert [need.present for need in found.values()] == [False, True]
    assert found[second].command.endswith("dtensor_policy_worker_v2.DTensorPolicyWorkerV2")
    old = needed(world, checkout, "policy.dtensor_cfg._v2=false", "teacher.dtensor_cfg._v2=false")
    assert list(old) == [first, vllm]
    both = needed(world, checkout, "++policy.dtensor_cfg._v2=true", "++teacher.dtensor_cfg._v2=false")
    assert list(both) == [first, second, vllm]
    assert both[first].key == "teacher.dtensor_cfg.enabled"
    assert list(needed(world, checkout, NEMO_RL_PY_EXECUTABLES_SYSTEM="1")) == [second]


def test_single_environments_are_built_where_the_release_can(tmp_path: Path) -> None:
    checkout = checkout_with(tmp_path, "")
    (tmp_path / "nemo_rl" / "utils").mkdir()
    source = tmp_path / "nemo_rl" / "utils" / "prefetch_venvs.py"
    command = prefetch_command(checkout, Path("/v"), ("a.b.C", "d.E"))
    assert command.endswith("prefetch_venvs b.C d.E")
    source.write_text("def prefetch_venvs():\n    ...\n")
    assert prefetch_command(Checkout.at(tmp_path), Path("/v"), ("a.b.C",)).endswith("prefetch_venvs")
    source.write_text("def prefetch_venvs(filters=None):\n    ...\n")
    assert prefetch_command(Checkout.at(tmp_path), Path("/v"), ("a.b.C",)).endswith("prefetch_venvs b.C")


def executed(root: Path) -> dict[str, str]:
    """Return a release's own table, by running its registry with executables of ours."""
    lines = (root / "nemo_rl" / "distributed" / "virtual_cluster.py").read_text().split("\n")
    begin = lines.index("class PY_EXECUTABLES:")
    end = next(number for number in range(begin + 1, len(lines)) if lines[number][:1].strip())
    cluster = ModuleType("nemo_rl.distributed.virtual_cluster")
    vars(cluster).update(git_root="/git", sys=sys)
    exec("\n".join(lines[begin:end]), vars(cluster))
    modules = {"nemo_rl.distributed.virtual_cluster": cluster}
    for name in ("nemo_rl.modelopt.registry", "nemo_rl.distributed.ray_actor_environment_registry"):
        path = root / f"{name.replace('.', '/')}.py"
        if path.exists():
            modules[name] = ModuleType(name)
            with pytest.MonkeyPatch.context() as patch:
                for known, module in modules.items():
                    patch.setitem(sys.modules, known, module)
                exec(path.read_text(), vars(modules[name]))
    table: dict[str, str] = vars(modules[name])["ACTOR_ENVIRONMENT_REGISTRY"]
    return table


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_every_release_s_registry_is_read_as_python_reads_it(
    name: str, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = release(shared, tmp_path_factory, name)
    checkout = Checkout.at(root)
    table = executed(root)
    read = actor_environments(checkout)
    own = {actor: command for actor, command in table.items() if command.startswith("uv ")}
    assert read.keys() == own.keys()
    for actor, command in own.items():
        assert [f"--extra {extra}" for extra in read[actor].extras] == [
            f"--extra {word}" for flag, word in zip(command.split(), command.split()[1:], strict=False)
            if flag == "--extra"
        ]  # fmt: skip
    worker = environment_of_class(checkout, "DTensorPolicyWorkerV2")
    assert worker is not None
    folder = "policy" if name == "v0.4.0" else "policy.workers"
    assert worker.actor == f"nemo_rl.models.{folder}.dtensor_policy_worker_v2.DTensorPolicyWorkerV2"
