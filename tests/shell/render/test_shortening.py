"""Texts that are too long for their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.render.shortening import shorten_end, shorten_middle, shorten_values
from rich.cells import cell_len

TEXTS = st.text(st.characters(categories=("L", "N", "P")), max_size=60)


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("orders", 6, "orders"),
        ("qmf-39aa5e9f-60d4-4b68-a167-e17119960cba", 16, "qmf-39aa…9960cba"),
        ("abcdef", 5, "ab…ef"),
        ("abcdef", 4, "ab…f"),
        ("abcdef", 2, "a…"),
        ("abcdef", 1, "…"),
        ("漢字漢字漢字", 9, "漢字…漢字"),
    ],
)
def test_names_keep_both_ends(text: str, width: int, short: str) -> None:
    assert shorten_middle(text, width) == short


def test_a_terminal_without_unicode_has_dots() -> None:
    assert shorten_middle("abcdefgh", 6, "..") == "ab..gh"
    assert shorten_end("abcdefgh", 6, "..") == "abcd.."


PAIRS = [("qName", "qmf-39aa5e9f-60d4-4b68-a167-e17119960cba"), ("key", "a.b"), ("user", "anonymous")]


def test_long_values_are_shortened_first() -> None:
    assert shorten_values(PAIRS, 60) == "qName=qmf-39aa5e9f-60…67-e17119960cba key=a.b user=anonymous"
    assert shorten_values(PAIRS, 200) == " ".join(f"{name}={value}" for name, value in PAIRS)


def test_then_the_last_ones_are_left_out() -> None:
    assert shorten_values(PAIRS, 42) == "qName=qmf-39aa5e9f-…e17119960cba key=a.b …"
    assert shorten_values([("qName", "customer.03204.requests"), ("durable", "true"), ("excl", "false")], 44) == (
        "qName=customer.03204.requests durable=true …"
    )
    assert shorten_values(PAIRS, 28) == "qName=qmf-39aa5e…119960cba …"
    assert shorten_values(PAIRS, 10) == "qName=q… …"
    assert shorten_values([], 10) == ""


@given(TEXTS, st.integers(0, 40))
def test_names_always_fit(text: str, width: int) -> None:
    for short in (shorten_middle(text, width), shorten_end(text, width)):
        assert cell_len(short) <= width
        assert short == text or cell_len(text) > width


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=6), st.integers(1, 120))
def test_values_always_fit(pairs: list[tuple[str, str]], width: int) -> None:
    assert cell_len(shorten_values(pairs, width)) <= width
