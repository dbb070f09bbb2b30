"""Cleaning text from outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.text import clean, clean_lines

HOSTILE = st.text(
    st.one_of(
        st.sampled_from("\x1b\x9b\x9d\x07\x90\x9c[];?0123456789mHJKhlP\\\r\n\t\x00\x7f\u202e"),
        st.characters(),
    )
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\x1b[36m(Actor pid=1)\x1b[0m hello", "(Actor pid=1) hello"),
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x9d52;c;ZXZpbA==\x9cb", "ab"),
        ("a\x1bP1$r0m\x1b\\b", "ab"),
        ("a\x1b[2Jb\x9b1;1Hc", "abc"),
        ("tab\there", "tab     here"),
        ("null\x00 bell\x07 del\x7f", "null bell del"),
        ("left\u202eright", "leftright"),
        ("a\u061cb\ud800c\udcff", "abc"),
        ("▶ • ✓ größe 中文 🔍", "▶ • ✓ größe 中文 🔍"),
        ("cut \x1b[", "cut "),
    ],
)
def test_known_sequences(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@given(HOSTILE)
def test_nothing_that_a_terminal_acts_on_is_left(text: str) -> None:
    assert not [char for char in clean(text) if ord(char) < 32 or 127 <= ord(char) < 160]


@given(HOSTILE)
def test_clean_text_stays_as_it_is(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(HOSTILE)
def test_lines_are_kept(text: str) -> None:
    cleaned = clean_lines(text)
    assert cleaned.count("\n") == text.count("\n")
    assert not [char for char in cleaned if char != "\n" and (ord(char) < 32 or 127 <= ord(char) < 160)]
