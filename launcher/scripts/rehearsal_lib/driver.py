"""Command `rehearsal.py`: reads the recipe, connects to Ray, runs the distillation, explains failures."""

from __future__ import annotations

import argparse
import io
import logging
import sys
from pathlib import Path

from . import report
from .cluster import RayPool
from .settings import RehearsalError, load_recipe, read_settings
from .training import Distillation

NOTICE = (
    "REHEARSAL with stand-in models: a tiny neural student learns from a tiny n-gram teacher, both in numpy. "
    "No model, data set or GPU of the recipe is touched."
)


def main(arguments: list[str] | None = None) -> int:
    """Run the rehearsal; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="rehearsal.py", description="Rehearse a distillation with stand-in models."
    )
    parser.add_argument("--config", type=Path, required=True, help="effective recipe (YAML)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="change keys of the recipe")
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    logging.basicConfig(format="%(levelname)s:%(name)s:%(filename)s:%(lineno)d: %(message)s")
    logging.getLogger("rehearsal").setLevel(logging.INFO)
    report.say(NOTICE)
    try:
        return _rehearse(options.config, options.overrides)
    except RehearsalError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    except OSError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        print("KeyboardInterrupt", file=sys.stderr, flush=True)
        return 130


def _rehearse(config: Path, overrides: list[str]) -> int:
    settings = read_settings(load_recipe(config, overrides), str(config))
    report.say("Applied CLI overrides")
    import ray

    try:
        pool = RayPool(settings.gpus)
        run = Distillation(settings, pool, report.next_experiment(settings.log_dir))
        run.set_up(pool.nodes)
        run.train()
    except ray.exceptions.RayError as error:
        print(f"ray.exceptions.{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    finally:
        ray.shutdown()
    return 0
