"""`check`, `memory`, `models`: what would fail, what would fit. What they do is in `foresight_run`."""

from __future__ import annotations

import argparse
from typing import Any


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the commands."""
    check = commands.add_parser(
        "check",
        help="foretell what would fail",
        description="Foretell what would fail at the start of a run. Exit code 1 if something would.",
    )
    _about_a_recipe(check)
    check.add_argument(
        "--fix", metavar="ID[:N]", help="apply the first (or Nth) fix of a finding to FILE, and show the diff"
    )
    check.add_argument("--dry-run", action="store_true", help="with --fix: print the diff and change nothing")
    check.add_argument("--all", action="store_true", help="list what passed, too")
    check.add_argument(
        "--offline", action="store_true", help="the nodes have no internet: files that are not here fail"
    )
    check.set_defaults(handler=_check)
    memory = commands.add_parser(
        "memory",
        help="estimate GPU and host memory",
        description="Estimate the memory of every phase. Exit code 1 if one does not fit.",
    )
    _about_a_recipe(memory)
    memory.add_argument("--no-search", action="store_true", help="do not look for settings that would fit")
    memory.set_defaults(handler=_memory)
    models = commands.add_parser(
        "models",
        help="tell what is known of a model",
        description="Tell a model's shape from its directory, the Hugging Face cache, or a built-in table.",
    )
    models.add_argument("id", metavar="ID", help="a Hugging Face id, or a directory with a config.json")
    models.add_argument(
        "--download", action="store_true", help="fetch config.json and tokenizer.json into the cache first"
    )
    models.add_argument("--json", action="store_true", help="as one JSON object")
    models.set_defaults(handler=_models)


def _about_a_recipe(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="the recipe")
    command.add_argument("override", metavar="OVERRIDE", nargs="*", help="KEY=VALUE, +KEY=VALUE, ~KEY")
    command.add_argument("--nodes", metavar="N", type=int, help="nodes of the job; default: the recipe's")
    command.add_argument("--gpus-per-node", metavar="N", type=int, help="default: the recipe's")
    command.add_argument("--gpu-memory", metavar="GIB", type=float, help="memory of one GPU; default: 40")
    command.add_argument("--time", metavar="T", help="limit of the job: MM, HH:MM:SS, D-HH:MM:SS")
    command.add_argument(
        "--checkout", metavar="DIR", help="NeMo-RL; default: $NEMO_RL_ROOT, or the one that holds FILE"
    )
    command.add_argument("--json", action="store_true", help="as one JSON object")


def _check(options: argparse.Namespace) -> int:
    from tui.headless import foresight_run

    return foresight_run.check(options)


def _memory(options: argparse.Namespace) -> int:
    from tui.headless import foresight_run

    return foresight_run.memory(options)


def _models(options: argparse.Namespace) -> int:
    from tui.headless import foresight_run

    return foresight_run.models(options)
