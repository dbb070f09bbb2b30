"""Rehearse an on-policy distillation: NeMo-RL's steps, files and log lines with tiny stand-in models.

    python rehearsal.py --config RECIPE [KEY=VALUE ...]

RECIPE is an effective NeMo-RL recipe: one YAML file, nothing left to resolve. Needs numpy, PyYAML and a
running Ray cluster with `worker_units`. Only the folder `rehearsal_lib` is used beside it: copy the two
anywhere. Exit code 0: finished; 1: the recipe, the cluster or the run failed; 2: wrong usage.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        raise SystemExit(importlib.import_module("rehearsal_lib.driver").main())
    except ModuleNotFoundError as error:
        print(f"The rehearsal cannot start: {error}\n  in {sys.executable}", file=sys.stderr)
        print(
            "  Beside it rehearsal_lib/ is needed, and numpy, PyYAML and ray in this Python.", file=sys.stderr
        )
        raise SystemExit(1) from None
