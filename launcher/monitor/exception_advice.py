"""Advice for exceptions without a signature, by their class, with the place in the code that raised them."""

from __future__ import annotations

import re

_ADVICE = {
    "ModuleNotFoundError": (
        "The Python of that process lacks it: worker environments have packages of their own, and your own"
        " modules must be on PYTHONPATH before Ray is started, on every node."
    ),
    "ImportError": (
        "Two packages do not fit, or two environments are mixed: unset PYTHONPATH, load no module with Python"
        " packages, and rebuild the worker environments (NRL_FORCE_REBUILD_VENVS=true once)."
    ),
    "FileNotFoundError": (
        "The path must exist on every node, and within the container; a relative one counts from the"
        " directory that the process was started in."
    ),
    "KeyError": (
        "The key is missing in the recipe, or in a row of the data: compare it with the recipes of this"
        " release, or with the columns of the data set."
    ),
}  # fmt: skip
_BY_WORDS = (
    (
        re.compile("unexpected keyword argument"),
        "This version does not know the setting: correct it in the recipe (kwargs), or use code and packages"
        " of one release.",
    ),
    (
        re.compile("^AttributeError: module .* has no attribute"),
        "Code and packages are of different releases: compare the checkout with its environments"
        " (NRL_FORCE_REBUILD_VENVS=true once).",
    ),
)
_GENERAL = "Read the traceback above this line."


def class_name(message: str) -> str:
    """Return the name of an exception's class, without its module, from the line that reports it."""
    return message.partition(":")[0].rpartition(".")[2].strip()


def advice_for(message: str, frame: str) -> str:
    """Return what to do about an exception; `frame`: place that raised it, empty where unknown."""
    by_words = (text for pattern, text in _BY_WORDS if pattern.search(message))
    advice = next(by_words, _ADVICE.get(class_name(message), _GENERAL))
    return f"Raised at {frame}. {advice}" if frame else advice
