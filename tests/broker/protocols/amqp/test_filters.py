"""From the filters of a source to a binding."""

from __future__ import annotations

import pytest

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.protocols.amqp.filters import binding_from_filters
from qmf.bus.engine.values import Filter


@pytest.mark.parametrize(
    ("descriptor", "value", "match"),
    [
        ("apache.org:legacy-amqp-topic-binding:string", "a.#", BindingSpec("a.#")),
        (0x0000468C00000001, "a.#", BindingSpec("a.#")),
        ("apache.org:legacy-amqp-direct-binding:string", "a", BindingSpec("a")),
        (0x0000468C00000000, "a", BindingSpec("a")),
        ("apache.org:legacy-amqp-headers-binding:map", {"a": b"x", "b": 1}, BindingSpec(headers={"a": "x", "b": 1})),
        (0x0000468C00000002, {"a": b"\xff"}, BindingSpec(headers={"a": b"\xff"})),
    ],
)
def test_filters_that_are_known(descriptor: str | int, value: object, match: BindingSpec) -> None:
    entry = Filter("any-name", descriptor, value)
    other = Filter("other", "apache.org:selector-filter:string", "a = 1")
    assert binding_from_filters([other, entry], "topic") == (match, (entry,))


@pytest.mark.parametrize(
    ("kind", "key", "value"), [("topic", "#", "#"), ("direct", "", ""), ("headers", "", {"x-match": "all"})]
)
def test_without_a_known_filter_there_is_the_default_of_the_exchange(kind: str, key: str, value: object) -> None:
    for filters in ([], [Filter("s", "apache.org:selector-filter:string", "a = 1")]):
        spec, (applied,) = binding_from_filters(filters, kind)
        assert spec == BindingSpec(key)
        assert applied.value == value
    assert binding_from_filters([], "fanout") == (BindingSpec(), ())


@pytest.mark.parametrize(
    ("descriptor", "value"),
    [
        ("apache.org:legacy-amqp-topic-binding:string", 7),
        (0x0000468C00000000, None),
        ("apache.org:legacy-amqp-headers-binding:map", "a"),
        ("apache.org:legacy-amqp-headers-binding:map", {1: 2}),
    ],
)
def test_filters_with_wrong_values_are_refused(descriptor: str | int, value: object) -> None:
    with pytest.raises(ValueError, match="filter name"):
        binding_from_filters([Filter("name", descriptor, value)], "topic")
