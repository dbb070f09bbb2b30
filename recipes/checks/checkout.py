"""The abilities of a NeMo-RL checkout, found by looking at its sources (version numbers mislead)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks.rule_sources import FEATURES, SOURCES, Anchor
from recipes.drivers import driver_scripts
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe
    from recipes.reads import Found

_PACKAGE = "nemo_rl"
_BASE_RECIPE = "examples/configs/distillation_math.yaml"
_DATASETS = "data/datasets/response_datasets/__init__.py"
_ENVIRONMENTS = "environments/utils.py"
_PACKERS = "data/packing/algorithms.py"
_CONFIG = "utils/config.py"
_ALGORITHM = "algorithms/distillation.py"
_REGISTRY = re.compile(r"^(DATASET_REGISTRY|ENV_REGISTRY)\b[^=]*= \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'^    "([^"]+)":', re.MULTILINE)
_COMPARED_NAME = re.compile(r'dataset_name == "([^"]+)"')  # v0.4 and v0.5 have no registry
_PACKER = re.compile(r'^    ([A-Z_]+) = "', re.MULTILINE)
_FUNCTION = re.compile(r"""register_new_resolver\(\s*(?:name\s*=\s*)?["']([^"']+)["']""")
_TEACHER_CLUSTER = re.compile(r"teacher_(?:cluster|resources|num_nodes)\b")

BUILT_IN_DATASETS = frozenset(
    (
        "audiomcq",
        "arrow_text",
        "avqa",
        "AIME2024",
        "AIME2025",
        "AIME2026",
        "clevr-cogent",
        "daily-omni",
        "general-conversation-jsonl",
        "DAPOMath17K",
        "DAPOMathAIME2024",
        "DeepScaler",
        "GSM8K",
        "gsm8k",
        "geometry3k",
        "mmpr-tiny",
        "HelpSteer3",
        "intent-train",
        "intent-bench",
        "open_assistant",
        "OpenMathInstruct-2",
        "NuminaMath-1.5",
        "OpenR1-Math-220k",
        "refcoco",
        "squad",
        "tulu3_sft_mixture",
        "Nemotron-Cascade-2-SFT-Math",
        "openai_format",
        "NemoGymDataset",
        "ResponseDataset",
    )
)
"""Data sets that NeMo-RL of August 2026 knows by name."""

BUILT_IN_ENVIRONMENTS = frozenset(
    (
        "math_default",
        "math",
        "math_multi_reward",
        "code",
        "code_jaccard",
        "reward_model",
        "vlm",
        "nemo_gym",
    )
)
"""Environments that NeMo-RL of August 2026 knows by name."""


PACKERS = frozenset(
    ("CONCATENATIVE", "FIRST_FIT_DECREASING", "FIRST_FIT_SHUFFLE", "MODIFIED_FIRST_FIT_DECREASING")
)
"""Packing algorithms that NeMo-RL of August 2026 knows by name."""


@dataclass(frozen=True)
class Checkout:
    """A NeMo-RL checkout and its abilities; without any sources it counts as the newest release.

    Sources are read when something is asked of them, each once; a file that a fork has moved is found by
    its name.
    """

    path: Path
    cache: Path | None = None
    _texts: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    _features: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    _rules: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    _reads: dict[str, Found | None] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def at(cls, path: Path, cache: Path | None = None) -> Checkout:
        """Return a checkout; `cache` is the directory for what is read from it."""
        return cls(path, cache)

    @cached_property
    def has_sources(self) -> bool:
        """Return whether NeMo-RL's algorithms are there at all."""
        return (self.path / _PACKAGE / "algorithms").is_dir()

    def text(self, file: str) -> str:
        """Return a source below `nemo_rl/`; "" where it is nowhere."""
        if file not in self._texts:
            self._texts[file] = _read(self.path / _PACKAGE / file)
        return self._texts[file]

    def _moved(self, file: str) -> str:
        """Return a file of the same name elsewhere in the package: a fork may have moved it."""
        key = f"*/{file}"
        if key not in self._texts:
            name = file.rpartition("/")[2]
            matches = () if name == "__init__.py" else sorted((self.path / _PACKAGE).rglob(name))
            self._texts[key] = "\n".join(_read(path) for path in matches)
        return self._texts[key]

    @cached_property
    def _everything(self) -> str:
        """The whole package, for texts of a file that a fork has given another name."""
        return "\n".join(_read(path) for path in sorted((self.path / _PACKAGE).rglob("*.py")))

    def _matches(self, files: tuple[str, ...], pattern: str, *, literal: bool = False) -> bool:
        """Return whether a source matches a pattern."""
        texts = [text for file in files if (text := self.text(file))]
        if not texts:
            texts = [text for file in files if (text := self._moved(file))]
        if literal:
            return any(pattern in text for text in texts or [self._everything])
        return any(re.search(pattern, text) is not None for text in texts)

    def has(self, feature: str) -> bool:
        """Return whether a feature on which a rule's form depends is there."""
        if feature not in self._features:
            anchor = FEATURES[feature]
            self._features[feature] = (
                self._matches(anchor.files, anchor.pattern) if self.has_sources else anchor.newest
            )
        return self._features[feature]

    def has_rule(self, id_: str) -> bool:
        """Return whether this checkout can fail as a rule predicts."""
        if id_ not in self._rules:
            self._rules[id_] = self._has_source(SOURCES.get(id_, Anchor()))
        return self._rules[id_]

    def _has_source(self, source: Anchor) -> bool:
        if source.never:
            return False
        if not self.has_sources or source.dependency or not source.files:
            return True
        if source.needs and not self.has(source.needs):
            return False
        if source.quote:
            return self._matches(source.files, source.quote, literal=True)
        return self._matches(source.files, source.code)

    @property
    def validates(self) -> bool:
        """Return whether the driver validates the recipe with pydantic before Ray starts (v0.7 and later)."""
        return self.has("validates")

    @cached_property
    def datasets(self) -> frozenset[str]:
        """Data sets that it knows by name."""
        text = self.text(_DATASETS)
        return _names(text) or frozenset(_COMPARED_NAME.findall(text)) or BUILT_IN_DATASETS

    @cached_property
    def environments(self) -> frozenset[str]:
        """Environments that it knows by name."""
        return _names(self.text(_ENVIRONMENTS)) or BUILT_IN_ENVIRONMENTS

    @cached_property
    def packers(self) -> frozenset[str]:
        """Packing algorithms that it knows by name, in capitals."""
        return frozenset(_PACKER.findall(self.text(_PACKERS))) or PACKERS

    def functions(self, script: str | None) -> frozenset[str]:
        """Return the functions that interpolations may call: those that the package or the driver registers.

        Up to v0.5 each driver registers its own, since v0.6 nemo_rl/utils/config.py does for all.
        """
        drivers = (script,) if script is not None else self.scripts
        texts = [self.text(_CONFIG), *(_read(self.path / driver) for driver in drivers)]
        return frozenset(name for text in texts for name in _FUNCTION.findall(text))

    def registers(self, name: str) -> bool:
        """Return whether anything in the package or beside its drivers registers a function of a name."""
        examples = (_read(path) for path in sorted((self.path / "examples").glob("*.py")))
        return any(name in _FUNCTION.findall(text) for text in (self._everything, *examples))

    @cached_property
    def scripts(self) -> tuple[str, ...]:
        """Driver scripts, relative to the checkout."""
        return driver_scripts(self.path)

    def reads(self, script: str) -> Found | None:
        """Return the keys that a driver script reads without a default."""
        if script not in self._reads:
            from recipes.reads import find_reads

            self._reads[script] = find_reads(self.path, script, self.cache)
        return self._reads[script]

    @cached_property
    def base_recipe(self) -> EffectiveRecipe | None:
        """The recipe that its own distillation recipes begin with; None if it is missing or broken."""
        from recipes.errors import RecipeError
        from recipes.inheritance import Resolver

        try:
            return Resolver().resolve(self.path / _BASE_RECIPE, ())
        except RecipeError:
            return None

    @cached_property
    def has_teacher_pool(self) -> bool:
        """Return whether the teacher has GPUs of its own: a fork with three pools."""
        return _TEACHER_CLUSTER.search(self.text(_ALGORITHM)) is not None


def _read(path: Path) -> str:
    try:
        stamp = path.stat()
    except OSError:
        return ""
    return _text(path, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=64)
def _text(path: Path, modified: int, size: int) -> str:
    try:
        return read_regular(path, SOURCE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _names(text: str) -> frozenset[str]:
    match = _REGISTRY.search(text)
    return frozenset(_NAME.findall(match[2])) if match else frozenset()
