"""Topic keys against a naive model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.bus.topics import MQTT_TOPICS, TopicTable, covers


def model(binding: str, key: str) -> bool:
    """The definition, by recursion over the words."""

    def match(pattern: list[str], words: list[str]) -> bool:
        if not pattern:
            return not words
        if pattern[0] == "#":
            return any(match(pattern[1:], words[n:]) for n in range(len(words) + 1))
        return bool(words) and pattern[0] in ("*", words[0]) and match(pattern[1:], words[1:])

    return match(binding.split("."), key.split("."))


def matches(binding: str, key: str) -> bool:
    table: TopicTable[str] = TopicTable()
    table.add(binding, "it")
    return table.match(key) == ["it"]


@pytest.mark.parametrize(
    ("binding", "key", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("#", "", True),
        ("#", "a.b.c", True),
        ("a.#", "a", True),
        ("a.#.b", "a.b", True),
        ("a.#.b", "a.x.y.b", True),
        ("a.*.b", "a..b", True),
        ("a.*", "a", False),
        ("*.*", "a", False),
        ("#.#", "a", True),
        ("a.b", "A.b", False),
        ("#", "#", True),
        ("a", "#", False),
        ("a", "*", False),
        ("a.", "a.", True),
        ("a.", "a", False),
    ],
)
def test_examples(binding: str, key: str, expected: bool) -> None:
    assert matches(binding, key) is expected
    assert model(binding, key) is expected


WORDS = st.sampled_from(["a", "b", "", "*", "#", "ab"])
KEYS = st.lists(st.sampled_from(["a", "b", "", "*", "ab"]), min_size=1, max_size=6).map(".".join)
BINDINGS = st.lists(WORDS, min_size=1, max_size=5).map(".".join)


@given(st.lists(BINDINGS, max_size=12), st.lists(st.integers(0, 11), max_size=6), KEYS)
def test_like_the_model_with_many_bindings_some_removed(bindings: list[str], removed: list[int], key: str) -> None:
    table: TopicTable[int] = TopicTable()
    there = dict(enumerate(bindings))
    for number, binding in there.items():
        table.add(binding, number)
    for number in removed:
        if number in there:
            table.remove(there.pop(number), number)
    found = table.match(key)
    assert sorted(found) == [number for number, binding in there.items() if model(binding, key)]


def test_removing_what_is_not_there_does_nothing() -> None:
    table: TopicTable[str] = TopicTable()
    table.add("a.b", "one")
    table.remove("a", "one")
    table.remove("a.b", "other")
    table.remove("a.b.c", "one")
    assert table.match("a.b") == ["one"]


def test_a_value_with_several_matching_bindings_is_found_once() -> None:
    table: TopicTable[str] = TopicTable()
    for binding in ("a.#", "a.*", "#", "a.b"):
        table.add(binding, "one")
    assert table.match("a.b") == ["one"]


def test_many_wildcards_against_a_long_key_take_no_exponential_time() -> None:
    table: TopicTable[str] = TopicTable()
    table.add(".".join(["#", "a"] * 20 + ["b"]), "one")
    assert table.match(".".join(["a"] * 200)) == []


@given(st.text("a$+#/", max_size=8), st.text("a$/", max_size=8))
def test_the_dialect_of_mqtt(binding: str, key: str) -> None:
    table: TopicTable[str] = TopicTable(MQTT_TOPICS)
    table.add(binding, "it")
    translated = model(binding.replace("/", ".").replace("+", "*"), key.replace("/", "."))
    hidden = key.startswith("$") and binding.partition("/")[0] in ("+", "#")
    assert table.match(key) == (["it"] if translated and not hidden else [])


@pytest.mark.parametrize(
    ("topic_filter", "other", "expected"),
    [
        ("#", "a/#", True),
        ("a/#", "a/+/b", True),
        ("a/+", "a/#", False),
        ("a/+", "a/+", True),
        ("a/b", "a/+", False),
        ("+/b", "a/b", True),
        ("#", "$SYS/#", False),
        ("$SYS/#", "$SYS/x", True),
        ("a/+/b", "a/x", False),
    ],
)
def test_a_filter_covers_another(topic_filter: str, other: str, expected: bool) -> None:
    assert covers(topic_filter, other) is expected
