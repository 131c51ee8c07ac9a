"""Natural order of texts."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from qmf._natural_order import natural_key


def test_numbers_in_texts_are_compared_as_numbers() -> None:
    texts = ["eth10", "eth2", "2", "eth", "10", "a2b10", "a2b9", ""]
    assert sorted(texts, key=natural_key) == ["", "2", "10", "a2b9", "a2b10", "eth", "eth2", "eth10"]


@given(st.lists(st.text()))
def test_any_texts_have_an_order(texts: list[str]) -> None:
    assert sorted(map(natural_key, texts)) == [natural_key(text) for text in sorted(texts, key=natural_key)]


@given(st.lists(st.from_regex(r"[a-c]{0,2}[0-9]{0,3}[a-c]{0,2}[0-9]{0,3}", fullmatch=True)))
def test_the_order_is_that_of_texts_and_numbers_in_turn(texts: list[str]) -> None:
    def plain(text: str) -> tuple[list[object], str]:
        return [int(part) if at % 2 else part for at, part in enumerate(re.split("([0-9]+)", text))], text

    assert sorted(texts, key=natural_key) == sorted(texts, key=plain)


def test_numbers_of_any_length_have_a_place() -> None:
    texts = ["a" + "1" * 50, "a" + "1" * 5000, "a7"]
    assert sorted(texts, key=natural_key)[0] == "a7"
