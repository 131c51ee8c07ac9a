"""Patterns of routing keys, found by key: the first one of those that a trie of all finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.acl.key_index import KeyIndex
from qmf.bus.topics import AMQP_TOPICS, MQTT_TOPICS, TopicDialect, TopicTable

_WORDS = ("a", "b", "$s", "", "*", "+", "#")


@given(data=st.data(), dialect=st.sampled_from([AMQP_TOPICS, MQTT_TOPICS]))
def test_the_first_of_all_that_match(data: st.DataObject, dialect: TopicDialect) -> None:
    texts = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=5).map(dialect.separator.join)
    patterns = [(text, place) for place, text in enumerate(data.draw(st.lists(texts, max_size=10)))]
    table: TopicTable[int] = TopicTable(dialect)
    for text, place in patterns:
        table.add(text, place)
    index = KeyIndex(patterns, dialect, max_shapes=data.draw(st.integers(0, 4)))
    assert bool(index) == bool(patterns)
    for key in data.draw(st.lists(texts, min_size=1, max_size=5)):
        assert index.first(key) == min(table.match(key), default=None)
        word = key.partition(dialect.separator)[0]
        assert index.whole_words().get(word, index.first(key)) == index.first(key)


@pytest.mark.parametrize(
    ("key", "place"),
    [("stock.nyse.ibm", 2), ("stock", 2), ("stock.x", 1), ("bond.a", 3), ("bond", None), ("x.stock", None), ("", None)],
)
def test_a_file_in_its_order(key: str, place: int | None) -> None:
    patterns = ["a.b", "stock.x", "stock.#", "*.a", "stock.nyse.*"]
    assert KeyIndex([(text, place) for place, text in enumerate(patterns)], AMQP_TOPICS).first(key) == place


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("stock.x", 3),
        ("stock.uk.x", 0),
        ("stock.uk", 0),
        ("uk.x", 3),
        ("stock.x.fr", 1),
        ("stock.a.secret.b", 2),
        ("secret", 2),
        ("bond.x", 3),
        ("stock.x.q.de", 4),
        ("stock.q.de.x", 5),
        ("bond", None),
        ("a.p", None),
        ("a.p.b.q", 6),
        ("stock.p.q", 5),
    ],
)
def test_patterns_whose_wildcards_come_first(key: str, place: int | None) -> None:
    patterns = ["*.uk.#", "#.fr", "#.secret.#", "*.x", "stock.#.q.*", "stock.#", "#.p.#.q"]
    assert KeyIndex([(text, place) for place, text in enumerate(patterns)], AMQP_TOPICS).first(key) == place
