"""Random YAML documents with what parsers read differently, valid ones and others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable


def pieces(text: str) -> list[str]:
    return text.split("¦")


WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        """1 1_000 0x10 0o7 010 1e5 1e-06 1.0e-6 4:00:00 yes No off ~ null = << 2024-01-02 'x' 'it''s' "a\\nb"
        "\\x41\\u00e9" "\\/" a:b http://x -1 -- [1,2] {a:1} {a} [] {} !!str !x ${a} ${b.c} ${a ???
        #c a#c %x @x .inf .NaN 1. ._1 0b1 0b_ 1__0 +1 1:60 y é 𝄞 [a a] 'a & * ! | > ? - ?? a? [a?] {?a}
        \x07 !!binary""",
    )
)
PHRASES = st.sampled_from(
    [
        *[
            "a b",
            "a: b",
            "- x",
            "[1, 2]",
            "{a: 1}",
            "[a: 1]",
            "{a: , b}",
            "'a' 'b'",
            "x\ty",
            "x\t# c",
            "x # c",
            "? x",
            "x\x85  y",
            "x\u2028y",
            "|\n  x\n",
            ">-\n    folded\n    text\n",
            "|2\n   x\n",
            "|+\n    keep\n\n",
            "x\n    more",
            "'x\n    more'",
            "!!str 1",
            "!!int '3'",
            "!!float x",
            "! '12'",
            "!!set {a, b}",
            "!!omap [a: 1]",
            "&x 1",
            "&y {q: 1}",
            "&x.y 1",
            "*x",
            "*y",
            "2024-01-02 01:02:03",
            "!!timestamp 2024-01-02",
            "!!int",
            "\ufeffx",
        ],
        "x" * 1030,
    ]
)
PLAIN = st.sampled_from(["1", "x", "2.5", "true", "''"])
VALUES = st.one_of(PLAIN, PLAIN, WORDS, PHRASES)
ODD_KEYS = st.sampled_from(
    [
        *[
            "'a'",
            "1",
            "1.5",
            "yes",
            "~",
            "",
            "=",
            "!!str 1",
            "&k k",
            "*x",
            "[a]",
            "? a\n",
            "a b",
            "a.b",
            "é",
            "a#b",
            "a\tb",
            ".nan",
            "?a",
            "-a",
            ":a",
            "a:",
            "2024-01-02",
            "010",
            "${a}",
        ],
        "x" * 1030,
    ]
)
KEYS = st.one_of(*[st.sampled_from("abcdefg")] * 4, ODD_KEYS, st.just("<<"))
MERGED = st.sampled_from(["*y", "*x", "{a: 1}", "[*y, *x]", "[{a: 1}, {b: 2}]", "[*y]", "1", "", "&m {a: 3}"])
STARTS = st.sampled_from(
    [""] * 12
    + pieces("%YAML 1.1\n---\n¦%YAML 1.2\n---\n¦---\n¦--- # c\n¦\ufeff¦# c\n¦\t\n¦%TAG !e! x:\n---\n")
)
ENDS = st.sampled_from([""] * 16 + ["...\n", "---\n", "...\nx\n", "--- b\n", "\x00", "# end"])
BREAKS = st.sampled_from(["\n"] * 20 + ["\r\n", "\r", "\x85", "\u2028"])


@st.composite
def blocks(draw: Callable[[Any], Any], depth: int = 0) -> str:
    lines: list[str] = []
    pad = "  " * depth
    for key in draw(st.lists(KEYS, min_size=1, max_size=3)):
        end = draw(BREAKS)
        kind = draw(st.integers(0, 9))
        if key == "<<":
            text = " " + draw(MERGED) + end
        elif kind < 3 and depth < 3:
            text = draw(st.sampled_from([""] * 5 + [" &y", " &x", " # c", " !!map", " &y.1"])) + end
            text += draw(blocks(depth + 1))
        elif kind == 3:
            dash = (
                pad + draw(st.sampled_from(["", "  "])) + "-" + draw(st.sampled_from([" "] * 8 + ["\t", ""]))
            )
            text = end + "".join(
                dash + value + end for value in draw(st.lists(VALUES, min_size=1, max_size=2))
            )
        else:
            gap = draw(st.sampled_from([" "] * 12 + ["  ", "\t", ""]))
            text = gap + draw(VALUES) + draw(st.sampled_from(["", "", " # c", "  "])) + end
        lines.append(f"{pad}{key}:{text}")
    return "".join(lines)


FLOW_PIECES = st.sampled_from(
    [
        "[",
        "{",
        "]",
        "}",
        ", ",
        ",",
        ": ",
        ":",
        "a",
        "b",
        "'q'",
        '"d"',
        "a:b",
        "\n",
        " ",
        "# c?\n",
        "-",
        "&a ",
        "*a",
        "!t ",
        "?",
        " #c\n",
        "|",
        ">",
        "x?",
        "a#b",
        "\t",
        "1",
    ]
)
FLOWS = st.tuples(st.sampled_from("[{"), st.lists(FLOW_PIECES, max_size=7), st.sampled_from("]}")).map(
    lambda parts: f"a: {parts[0]}{''.join(parts[1])}{parts[2]}\n"
)
DOCUMENTS = st.one_of(st.tuples(STARTS, blocks(), ENDS).map("".join), FLOWS)
