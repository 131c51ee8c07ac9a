"""Natural order of texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qmf._natural_order import natural_key


def test_numbers_in_texts_are_compared_as_numbers() -> None:
    texts = ["eth10", "eth2", "2", "eth", "10", "a2b10", "a2b9", ""]
    assert sorted(texts, key=natural_key) == ["", "2", "10", "a2b9", "a2b10", "eth", "eth2", "eth10"]


@given(st.lists(st.text()))
def test_any_texts_have_an_order(texts: list[str]) -> None:
    assert sorted(map(natural_key, texts)) == [natural_key(text) for text in sorted(texts, key=natural_key)]
