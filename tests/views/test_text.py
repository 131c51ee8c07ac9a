"""Text that is safe for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.views.text import clean, listing, one_line, plural


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("grüße 漢字 🙂", "grüße 漢字 🙂"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\ud800"),
        ("a\u202eb", "a\\u202eb"),
        ("\u2028", "\\u2028"),
        ("\x7f", "\\x7f"),
    ],
)
def test_control_characters_become_visible(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text())
def test_nothing_that_moves_a_cursor_gets_through(text: str) -> None:
    result = clean(text)
    assert all(ord(char) >= 0x20 and not 0x7F <= ord(char) <= 0x9F for char in result)
    result.encode("utf-8")


def test_one_line() -> None:
    assert one_line("  a\n   b\x00 ") == "a b\\x00"


@pytest.mark.parametrize(
    ("words", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (list("abc"), "a, b or c")]
)
def test_listing(words: str, text: str) -> None:
    assert listing(words) == text


def test_plural() -> None:
    assert [plural(1, "agent"), plural(0, "agent"), plural(1200, "agent")] == ["1 agent", "0 agents", "1,200 agents"]
