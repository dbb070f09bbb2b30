"""A user's pattern takes time that grows with the line, whatever the pattern."""

from __future__ import annotations

import re
from random import Random
from time import process_time

import pytest

from tui.logview.linear_pattern import LONGEST, PatternError, linear_pattern
from tui.logview.match import Pattern, TermError, matching, parse_query
from tui.logview.prompt import LogPrompt

LINE = "a" * 60_000 + "!"


@pytest.mark.parametrize(
    "pattern", ["(a|aa)+$", "(a|a){50}b", ".*.*.*.*x", "(a+)+$", "(?:a?){400}b", "(x+x+)+y", "^(([a-z])+.)+[A-Z]$", "(.*a){12}$"]
)  # fmt: skip
def test_a_pattern_that_would_never_end(pattern: str) -> None:
    query = parse_query(f"/{pattern}/")
    began = process_time()
    assert isinstance(query.spans(LINE), list)
    assert matching(f"{LINE}\n{LINE[:-1]}".encode(), [query]) in ([], [1], [0, 1])
    assert process_time() - began < 5  # 0.1 s on a quiet machine


def random_pattern(random: Random, depth: int = 0) -> str:
    """Return a pattern of nested repeats and alternatives, which most engines take long for."""
    if depth > 4 or random.random() < 0.3:
        return random.choice(("a", "b", ".", "\\w", "[ab]", "a?", "(?:)", "^", "$", "\\b", "aa"))
    parts = [random_pattern(random, depth + 1) for _ in range(random.randint(1, 3))]
    body = random.choice(("", "|")).join(parts)
    return f"({body}){random.choice(('', '*', '+', '?', '{3}', '{2,9}', '{0,40}', '*?', '+?'))}"


@pytest.mark.parametrize("count", [30, pytest.param(600, marks=pytest.mark.slow)])
def test_random_patterns_end(count: int) -> None:
    random = Random(count)
    slowest, reasons = 0.0, set()
    for _ in range(count):
        pattern = random_pattern(random)
        began = process_time()
        try:
            parse_query(f"/{pattern}/").spans(LINE)
        except TermError as error:
            reasons.add(str(error).partition(":")[0])
        slowest = max(slowest, process_time() - began)
    assert slowest < 5  # 0.1 s on a quiet machine
    assert reasons <= {"invalid pattern"}


@pytest.mark.parametrize(
    "pattern",
    ["step \\d+/\\d+", "loss: (?:nan|inf)", "[EF]\\d{4}", "größe|ä+", "(?i)ray\\b", "a.c$", "\\[rank\\d\\]"],
)
def test_matches_are_those_of_python(pattern: str) -> None:
    lines = ["step 3/10 loss: nan", "ray RAY Ray!", "E1128 x [rank3]", "die größe ÄÄä", "abc", "axc a.c", ""]
    flags = 0 if any(map(str.isupper, re.sub(r"\\[A-Za-z]", "", pattern))) else re.IGNORECASE
    for line in lines:
        expected = [match.span() for match in re.finditer(pattern, line, flags)]
        assert Pattern(pattern).spans(line) == expected


def test_a_pattern_without_its_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    with pytest.raises(PatternError, match="google-re2, which is not installed"):
        linear_pattern("only here")


def test_the_search_field_takes_no_megabyte() -> None:
    assert LogPrompt().field.max_length == LONGEST
