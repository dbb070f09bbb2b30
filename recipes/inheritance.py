"""A recipe's `defaults:` chain and overrides, resolved to effective values with their origins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit, Place, RecipeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from; `how` is own, parent, merge, override or interpolation."""

    file: str
    line: int
    how: str


@dataclass(frozen=True)
class EffectiveRecipe:
    """What NeMo-RL sees: values after inheritance, overrides and interpolation."""

    path: Path
    values: dict[str, Any]
    origins: dict[str, Origin] = field(repr=False)

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401
        """Return the value at a dotted key (list items by number), or the default."""
        value: Any = self.values
        for part in key.split("."):
            if isinstance(value, dict) and part in value:
                value = value[part]
            elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            else:
                return default
        return value

    def origin(self, key: str) -> Origin | None:
        """Return where the value at a dotted key was written, None if there is no such key."""
        return self.origins.get(key)


def resolve(path: Path, overrides: Sequence[str] = ()) -> EffectiveRecipe:
    """Resolve a recipe file and Hydra overrides; raises `RecipeError` with the place of the fault."""
    from omegaconf import DictConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    origins: dict[str, Origin] = {}
    try:
        config = _load(path, (), origins)
        _register_resolvers()
        OmegaConf.set_struct(config, value=True)
        config = _override(config, overrides, origins)
        values = OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        what = str(error).strip().splitlines()[0]
        raise RecipeError(f"The recipe does not resolve: {what}", where=path) from error
    assert isinstance(config, DictConfig)
    assert isinstance(values, dict)
    return EffectiveRecipe(path=path, values={str(k): v for k, v in values.items()}, origins=origins)


def _read(path: Path, chain: tuple[Path, ...]) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if not chain:
            raise RecipeError(f"There is no recipe file {path}", where=path, fix="Check the path.") from error
        what = f"Parent recipe {path} does not exist"
        raise RecipeError(
            what, where=" -> ".join(map(str, (*chain, path))), fix="Correct `defaults:`."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        failed = RecipeError(f"Cannot read the recipe: {error}", where=path)
        failed.exit_code = Exit.OUTSIDE if isinstance(error, OSError) else Exit.USAGE
        raise failed from error


def _load(path: Path, chain: tuple[Path, ...], origins: dict[str, Origin]) -> Any:  # noqa: ANN401
    import yaml
    from omegaconf import OmegaConf
    from omegaconf._utils import get_yaml_loader

    if path.resolve() in {file.resolve() for file in chain}:
        cycle = " -> ".join(map(str, (*chain, path)))
        raise RecipeError("The recipe inherits from itself", where=cycle, fix="Remove one `defaults:` line.")
    text = _read(path, chain)
    try:
        data = yaml.load(text, Loader=get_yaml_loader()) or {}  # noqa: S506 - OmegaConf's safe loader
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(str(path), mark.line + 1, mark.column + 1) if mark else Place(str(path))
        raise RecipeError(f"Not valid YAML: {error.problem or error.context}", where=place) from error
    if not isinstance(data, dict):
        raise RecipeError("A recipe must be a mapping of keys to values", where=path)
    parents = data.pop("defaults", None) or []
    merged: Any = OmegaConf.create({})
    for parent in [parents] if isinstance(parents, str) else parents:
        merged = OmegaConf.merge(merged, _load(path.parent / str(parent), (*chain, path), origins))
    if node is not None:
        _mark(node, "", str(path), "parent" if chain else "own", origins)
    return OmegaConf.merge(merged, OmegaConf.create(data))


def _mark(node: Any, key: str, file: str, how: str, origins: dict[str, Origin]) -> None:  # noqa: ANN401
    if key:
        origins[key] = Origin(file, node.start_mark.line + 1, how)
    prefix = f"{key}." if key else ""
    if node.id == "mapping":
        pairs = sorted(node.value, key=lambda pair: bool(pair[0].value != "<<"))
        for name, child in pairs:
            if name.value == "<<":
                _mark(child, key, file, "merge", origins)
            elif prefix or name.value != "defaults":
                _mark(child, f"{prefix}{name.value}", file, how, origins)
    elif node.id == "sequence":
        for index, child in enumerate(node.value):
            _mark(child, f"{prefix}{index}", file, how, origins)
    elif isinstance(node.value, str) and "${" in node.value:
        origins[key] = Origin(file, node.start_mark.line + 1, "interpolation")


def _override(config: Any, overrides: Sequence[str], origins: dict[str, Origin]) -> Any:  # noqa: ANN401
    from hydra._internal.config_loader_impl import ConfigLoaderImpl
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_overrides(overrides=list(overrides))
        ConfigLoaderImpl._apply_overrides_to_config(parsed, config)
    except HydraException as error:
        what = f"Bad override: {str(error).strip().splitlines()[0]}"
        raise RecipeError(
            what, where=" ".join(overrides), fix="Write KEY=VALUE, +KEY=VALUE or ~KEY."
        ) from error
    for number, override in enumerate(parsed, 1):
        origins[str(override.key_or_group)] = Origin("override", number, "override")
    return config


def _register_resolvers() -> None:
    from omegaconf import OmegaConf

    functions: dict[str, Callable[..., Any]] = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "max": max,
    }
    for name, function in functions.items():
        if not OmegaConf.has_resolver(name):
            OmegaConf.register_new_resolver(name, function)
