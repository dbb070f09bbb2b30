"""What NeMo-RL would resume from a checkpoint directory."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from recipes.files import is_directory
from recipes.models import UnknownModel

if TYPE_CHECKING:
    from pathlib import Path

_STEP = re.compile(r"step_(\d+)")
_SECTIONS = ("policy", "teacher", "loss_fn", "distillation", "data")
_EXPECTED = ("distillation.max_num_steps", "distillation.max_num_epochs")
"""Keys that may differ when a run goes on."""


def checkpoint_root(value: object, root: Path) -> Path | None:
    """Return a checkpoint directory, relative to where the driver runs; None if there is none."""
    if not isinstance(value, str) or not value:
        return None
    folder = root / value
    return folder if is_directory(folder) else None


def latest_step(folder: Path) -> int | None:
    """Return the step that NeMo-RL would resume: the highest `step_N`."""
    try:
        steps = [int(match[1]) for path in folder.iterdir() if (match := _STEP.fullmatch(path.name))]
    except OSError:
        return None
    return max(steps, default=None)


def changes(saved: Path, values: dict[str, Any]) -> list[str] | UnknownModel:
    """Return the keys in which a checkpoint's recipe differs from the present one."""
    from omegaconf import OmegaConf

    try:
        old = OmegaConf.to_container(OmegaConf.load(io.StringIO(saved.read_text())), resolve=False)
    except Exception as error:  # noqa: BLE001 - a foreign file; YAML's and OmegaConf's errors share no base
        return UnknownModel(
            f"{saved} cannot be read ({type(error).__name__})", "Look at the directory yourself."
        )
    if not isinstance(old, dict):
        return UnknownModel(f"{saved} holds no recipe", "Look at the directory yourself.")
    found: list[str] = []
    for section in _SECTIONS:
        before, now = _flat(old.get(section), section), _flat(values.get(section), section)
        # NeMo-RL adds keys of its own while it runs: only what both have can differ.
        found.extend(key for key in now if key in before and before[key] != now[key] and key not in _EXPECTED)
    return found


def _flat(value: object, key: str) -> dict[str, object]:
    if not isinstance(value, dict):
        return {key: value}
    found: dict[str, object] = {}
    for name, item in value.items():
        found.update(_flat(item, f"{key}.{name}"))
    return found
