"""Test data, and NeMo-RL's loader written down from its documented rules with OmegaConf alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DISTILL_TUI_TEST_DATA") or ROOT.parent / "shared")


def data_folder(name: str) -> Path:
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"no test data in {folder} (set DISTILL_TUI_TEST_DATA)")
    return folder


@pytest.fixture(scope="session")
def corpus() -> list[Path]:
    """All stock recipes of NeMo-RL."""
    return sorted(data_folder("corpus/nemo-rl").rglob("*.yaml"))


@pytest.fixture(scope="session")
def sample(corpus: list[Path]) -> list[Path]:
    """Every twelfth of them, by name, so that each run sees the same ones."""
    return corpus[::12]


@pytest.fixture(scope="session")
def distillation(corpus: list[Path]) -> list[Path]:
    """The stock recipes that distil on policy."""
    return [path for path in corpus if "distillation" in path.name]


@pytest.fixture(scope="session")
def yaml_cases() -> list[Path]:
    return sorted(path for path in data_folder("yaml-cases").iterdir() if path.is_dir())


@pytest.fixture(autouse=True, scope="session")
def recipe_environment() -> Iterator[None]:
    """What some stock recipes read from the environment."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HOME", "/somewhere/hf")
    patch.setenv("PERSISTENT_CACHE", "/somewhere/cache")
    yield
    patch.undo()


@pytest.fixture(scope="session")
def nemo_rl() -> Callable[..., Any]:
    """Load a recipe as NeMo-RL documents it: inheritance, Hydra overrides, interpolation."""
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import DictConfig, OmegaConf

    for name, function in {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "max": max,
    }.items():
        OmegaConf.register_new_resolver(name, function, replace=True)  # type: ignore[arg-type]

    def merged(base: Any, over: Any) -> Any:
        for key in list(over):
            if OmegaConf.is_missing(over, key):
                continue
            section = over[key]
            if isinstance(section, DictConfig) and section.get("_override_", False):
                del section["_override_"]
                base.pop(key, None)
        return OmegaConf.merge(base, over)

    def with_parents(path: Path) -> Any:
        config: Any = OmegaConf.load(path)
        assert isinstance(config, DictConfig)
        if "defaults" not in config:
            return config
        named = config.pop("defaults")
        base: Any = OmegaConf.create({})
        for name in [named] if isinstance(named, str) else named:
            base = merged(base, with_parents(path.parent / str(name)))
        return merged(base, config)

    def load(path: Path, *overrides: str) -> Any:
        config = with_parents(path)
        OmegaConf.set_struct(config, True)
        parsed = OverridesParser.create().parse_overrides(overrides=list(overrides))
        ConfigLoaderImpl._apply_overrides_to_config(parsed, config)
        return OmegaConf.to_container(config, resolve=True)

    return load
