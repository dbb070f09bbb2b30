"""What lines match: terms as they are typed, and the quick way to find them against the plain one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.logview.line import display_text
from tui.logview.match import (
    Level,
    LineFilterTerm,
    Not,
    Pattern,
    Printed,
    Severity,
    TermError,
    TextQuery,
    matching,
    parse_query,
    parse_term,
    severity_of,
)

WORKER = "\x1b[36m(PolicyWorker[rank=3] pid=77, ip=10.0.0.3)\x1b[0m "
LINES = st.sampled_from(
    [
        b"",
        b"hay",
        b"a needle",
        b"NEEDLE twice needle",
        b"a \x1b[31mNee\x1b[0mdle",
        f"{WORKER}needle".encode(),
        f"{WORKER}RuntimeError: CUDA error".encode(),
        b"bar 1%\rneedle\rbar 2%",
        "größe Ä needle".encode(),
        b"[rank3]: ValueError: bad",
        b"WARNING 11-28 02:14:00 [x.py:1] slow",
        b"[E1128 02:14:00.000 1 ProcessGroupNCCL.cpp:616] timeout",
        b"\xff\xfe needle \x00",
    ]
)
TERMS: list[LineFilterTerm] = [
    TextQuery("needle"),
    TextQuery("Ä"),
    Pattern("n.e+dle$"),
    Pattern("NEEDLE"),
    Pattern("needle|[äx]"),
    Pattern("(hay|rank)|bar"),
    Pattern("e{2}(?i:D)?"),
    Pattern("[a-z]%"),
    Level(Severity.WARNING),
    Level(Severity.ERROR),
    Printed("rank", "3"),
    Printed("actor", "policy"),
    Printed("actor", "none"),
    Printed("pid", "77"),
    Not(TextQuery("needle")),
    Not(Printed("rank", "3")),
]


@given(lines=st.lists(LINES, min_size=1, max_size=30), terms=st.lists(st.sampled_from(TERMS), max_size=3))
def test_matching_lines_are_those_that_each_term_matches(
    lines: list[bytes], terms: list[LineFilterTerm]
) -> None:
    expected = [
        number
        for number, raw in enumerate(lines)
        if all(term.matches(raw, display_text(raw)) for term in terms)
    ]
    assert matching(b"\n".join(lines), terms) == expected


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("text", "“text”"),
        (" rank=3 ", "rank=3"),
        ("/a.b/", "/a.b/"),
        ("!actor=Vllm", "not actor=Vllm"),
        ("! NCCL INFO", "not “NCCL INFO”"),
        ("!/x|y/", "not /x|y/"),
        ("!", "“!”"),
        ("rank=x y", "“rank=x y”"),
    ],
)
def test_terms_are_understood_and_told(typed: str, label: str) -> None:
    assert parse_term(typed).label == label


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("/(/", "invalid pattern"),
        ("/a(?=b)/", "look-around and back-references are not available"),
        ("/(a)\\1/", "look-around and back-references are not available"),
        ("/(?:(?:a{1,100}){1,9}b{1,900}){1,2}/", "invalid pattern"),
        ("/((a?){30}){50}/", "invalid pattern"),
        (f"/{'a' * 2000}/", "longer than 1,000 characters"),
        ("x" * 1_000_000, "longer than 1,000 characters"),
        ("/\udcff/", "invalid pattern"),
        ("rank=x", "must be a number"),
        ("", "the filter is empty"),
    ],
)
def test_what_is_no_term_is_told(typed: str, why: str) -> None:
    with pytest.raises(TermError, match=why):
        parse_term(typed)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("not.in.there", (b"there",)),
        ("error|warn|fail", (b"error", b"warn", b"fail")),
        ("(Loss|accuracy): \\d", (b": ",)),
        ("(?:ab+|cd)", (b"a", b"cd")),
        ("a*|b", ()),
        ("x?[yz]ä", ()),
    ],
)
def test_what_every_match_of_a_pattern_holds(pattern: str, literals: tuple[bytes, ...]) -> None:
    assert Pattern(pattern).literals == literals


@pytest.mark.parametrize("typed", [r"/\d+ .*x{2,3}/", "/(?:ab){1,9}c+/", "/a|b+|c*/"])
def test_common_patterns_are_patterns(typed: str) -> None:
    assert isinstance(parse_query(typed), Pattern)


def test_a_pattern_minds_case_only_where_it_has_capitals() -> None:
    assert Pattern("loss").spans("the Loss and the loss") == [(4, 8), (17, 21)]
    assert Pattern("Loss").spans("the Loss and the loss") == [(4, 8)]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("RuntimeError: CUDA error: out of memory", Severity.ERROR),
        ("slurmstepd: error: Detected 1 oom_kill event", Severity.ERROR),
        ("[ERROR][2026-11-28T02:05:00+0000] worker 2 left", Severity.ERROR),
        ("[rank0]:[E1128 02:14:00.1 10 ProcessGroupNCCL.cpp:616] timed out", Severity.ERROR),
        ("UserWarning: deprecated", Severity.WARNING),
        ("[W1128 02:14:00.1 10 init.cpp:767] nvtx is not available", Severity.WARNING),
        ("INFO 11-28 02:14:01 no errors in 9 checks", Severity.ANY),
        ("Loss: 0.4", Severity.ANY),
    ],
)
def test_how_bad_a_line_says_it_is(text: str, severity: Severity) -> None:
    assert severity_of(text) is severity
