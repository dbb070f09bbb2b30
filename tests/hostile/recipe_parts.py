"""Parts of hostile recipes: the commands that read them, and characters that must not be printed."""

from __future__ import annotations

from random import Random

from tests.hostile.attempts import Attempt

GROUP = "recipes"
HEAD = "distillation: {max_num_steps: 10}\npolicy: {model_name: org/student, precision: bfloat16}\n"
HOSTILE = "\x00\x07\x1b\x7f\x85\x90\x9b\x9d\u061c\u200b\u200f\u2028\u2029\u202e\u2066\ufeff\U000e0041\ud800\udcff\r\n\t"
"""Characters that a terminal obeys, that turn the direction of text, that are not seen, or that are no text."""
PLACE = r"[^\n]*:\d+"
"""Pattern of a file and a line."""
READERS: tuple[tuple[str, ...], ...] = (
    ("recipe", "resolve", "--json"),
    ("recipe", "resolve"),
    ("recipe", "get", "KEY"),
    ("recipe", "get", "KEY", "--effective"),
    ("recipe", "show", "--effective"),
    ("recipe", "show", "--expand"),
    ("recipe", "origin", "KEY"),
    ("recipe", "lint"),
    ("recipe", "set", "zz", "5"),
    ("recipe", "unset", "policy.precision"),
    ("check",),
    ("memory",),
)


def command(reader: tuple[str, ...], file: str, key: str = "a") -> tuple[str, ...]:
    """Return the arguments of a command for a file and a key."""
    words = 2 if reader[0] == "recipe" else 1
    return (*reader[:words], file, *(key if word == "KEY" else word for word in reader[words:]))


def attempt_of(kind: str, text: str, random: Random, refused: str = "", **more: bytes) -> Attempt:
    """Return an attempt on a recipe of some text, by any command."""
    argv = command(random.choice(READERS), "r.yaml")
    refused = "" if argv[0] == "check" else refused  # it reports the error as a finding
    files = {"r.yaml": (HEAD + text).encode("utf-8", "surrogatepass"), **more}
    return Attempt(GROUP, kind, argv, files, refused=refused)


def hostile_text(random: Random, length: int = 12) -> str:
    """Return a short text with characters that must not reach a terminal."""
    letters = [
        random.choice(("a", "b", "é", "中", "\x1b[2J", "\x1b]52;c;eHg=\x07", *HOSTILE)) for _ in range(length)
    ]
    return "".join(letters)
