"""Limits of what is read, and of what a recipe may make of it: declared here, listed in docs/security.md.

Every limit is far above what the stock recipes of NeMo-RL need (the largest has 60 kB, 1,900 values, six
levels), and low enough that any input is read or refused within seconds and 300 MB of memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Limit(NamedTuple):
    """Largest accepted amount of something."""

    what: str
    value: int
    unit: str
    reason: str

    def __str__(self) -> str:
        """Render the amount for a message: `20,000 values`, `1 MiB`."""
        return amount(self.value, self.unit)


def amount(value: int, unit: str) -> str:
    """Return an amount for people; bytes in MiB or KiB where they are whole."""
    if unit == "bytes":
        for size, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
            if value and value % size == 0:
                return f"{value // size} {name}"
    return f"{value:,} {unit}"


RECIPE_BYTES = Limit(
    "size of a recipe or parent", 1 << 20, "bytes", "the parser written in Python reads 0.7 MiB per second"
)
CHAIN_BYTES = Limit(
    "size of a recipe with all its parents", 2 << 20, "bytes", "the same, for all files together"
)
PARENTS = Limit(
    "`defaults:` entries of a recipe with all its parents", 100, "entries", "each is a file to read"
)
CHAIN_LEVELS = Limit("levels of parents", 30, "levels", "stock recipes have at most four")
VALUES = Limit(
    "values of a recipe with its parents, aliases and interpolated sections counted where they are used",
    20_000,
    "values",
    "OmegaConf takes 5 kB and 0.1 ms for each",
)
DEPTH = Limit(
    "nesting of a recipe, as written and as resolved",
    40,
    "levels",
    "OmegaConf needs 20 stack frames for each",
)
SCALAR_CHARACTERS = Limit("length of one text", 1 << 16, "characters", "chat templates have up to 10,000")
MADE_CHARACTERS = Limit(
    "text that aliases and interpolations make, in all",
    1 << 20,
    "characters",
    "as much as a recipe may have itself",
)
NUMBER_CHARACTERS = Limit(
    "length of a number", 128, "characters", "no setting needs more; quote other digits"
)
NUMBER_BITS = Limit(
    "size of a whole number that add, mul, div or max make", 512, "bits", "repeated products double it"
)
INTERPOLATION_CHARACTERS = Limit(
    "length of a text with interpolations",
    1 << 13,
    "characters",
    "OmegaConf's parser takes 0.1 ms per character",
)
INTERPOLATION_DEPTH = Limit(
    "brackets inside brackets of an interpolation", 20, "levels", "OmegaConf's parser recurses"
)
INTERPOLATION_LINKS = Limit(
    "interpolations that lead to one another",
    20,
    "links",
    "OmegaConf recurses; stock recipes have at most three",
)
HARD_INTERPOLATIONS = Limit(
    "text of interpolations that only OmegaConf's own parser reads, in all",
    1 << 15,
    "characters",
    "it takes 0.1 ms per character",
)
OVERRIDE_CHARACTERS = Limit(
    "length of an override", 1 << 13, "characters", "Hydra's parser takes 0.1 ms per character"
)
JSON_BYTES = Limit("size of a model's config.json", 4 << 20, "bytes", "real ones have below 100 kB")
TOKENIZER_BYTES = Limit("size of a tokenizer's file", 64 << 20, "bytes", "the largest in use has 34 MB")
JSON_VALUES = Limit(
    "values of a JSON file", 2_000_000, "values", "a list or mapping takes 64 bytes of memory or more"
)
REFERENCE_BYTES = Limit("size of a reference or token of a model cache", 1 << 12, "bytes", "it is one line")
SOURCE_BYTES = Limit(
    "size of a file of a NeMo-RL checkout",
    16 << 20,
    "bytes",
    "real ones have below 1 MB",
)
DATA_BYTES = Limit(
    "part of a data set's file that is read for counting its samples", 256 << 20, "bytes", "it takes 0.2 s"
)
FILE_SECONDS = Limit("time for reading one file", 15, "seconds", "a hanging mount must not hang the program")

LIMITS: tuple[Limit, ...] = (
    RECIPE_BYTES,
    CHAIN_BYTES,
    PARENTS,
    CHAIN_LEVELS,
    VALUES,
    DEPTH,
    SCALAR_CHARACTERS,
    MADE_CHARACTERS,
    NUMBER_CHARACTERS,
    NUMBER_BITS,
    INTERPOLATION_CHARACTERS,
    INTERPOLATION_DEPTH,
    INTERPOLATION_LINKS,
    HARD_INTERPOLATIONS,
    OVERRIDE_CHARACTERS,
    JSON_BYTES,
    TOKENIZER_BYTES,
    JSON_VALUES,
    REFERENCE_BYTES,
    SOURCE_BYTES,
    DATA_BYTES,
    FILE_SECONDS,
)


def table() -> str:
    """Return the limits as a Markdown table."""

    def rows() -> Iterator[str]:
        yield "| Limit | Most | Reason |"
        yield "| --- | --- | --- |"
        for limit in LIMITS:
            yield f"| {limit.what} | {limit} | {limit.reason} |"

    return "\n".join(rows()) + "\n"


if __name__ == "__main__":
    print(table(), end="")
