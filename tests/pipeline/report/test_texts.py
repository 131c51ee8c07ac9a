"""Labels tell objects apart, and are as short as that allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.report.texts import abbreviate, labels, object_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("qmf.host:disk:sda", "sda"),
        ("qmf.host:filesystem:/home", "/home"),
        ("org.apache.qpid.broker:queue:a:b", "a:b"),
        ("org.apache.qpid.broker:exchange:", "(no name)"),
        ("org.apache.qpid.broker:binding:org.apache.qpid.broker:exchange:e,org.apache.qpid.broker:queue:q", "e,q"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_names_without_package_and_class(name: str, shown: str) -> None:
    assert object_name(name) == shown


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([("a", "p:disk:sda"), ("a", "p:disk:sdb")], ["sda", "sdb"]),
        # The same object of several agents: only the agents differ.
        ([("qmf:host:box1", "p:memory:m"), ("qmf:host:box2", "p:memory:m")], ["box1", "box2"]),
        (
            [("qmf:host:x", "p:disk:sda"), ("qmf:host:y", "p:disk:sda"), ("qmf:host:y", "p:disk:sdb")],
            ["sda · x", "sda · y", "sdb · y"],
        ),
        (
            [("qmf:host:rack-7.example.com", "p:disk:sda"), ("qmf:host:rack-8.example.com", "p:disk:sda")],
            ["rack-7", "rack-8"],
        ),
        ([("qmf:host:x", "p:disk:sda"), ("qmf:host:x.y", "p:disk:sda")], ["x", "x.y"]),
        ([("b:10.0.0.1:5672", "p:broker:b"), ("b:10.0.0.2:5672", "p:broker:b")], ["10.0.0.1", "10.0.0.2"]),
        ([("a", "p:fs:/"), ("a", "p:fs:/home")], ["/", "/home"]),
        # What is long and common says nothing.
        (
            [("a", "p:q:production.orders.incoming.eu"), ("a", "p:q:production.orders.incoming.us")],
            ["production.orders.incoming.eu", "production.orders.incoming.us"],
        ),
        ([("a", "p:q:/srv/data/archive/one"), ("a", "p:q:/srv/data/archive/two")], ["one", "two"]),
        ([("a", "only")], ["only"]),
    ],
)
def test_labels(names: list[tuple[str, str]], shown: list[str]) -> None:
    assert labels(names) == shown


def test_long_names_stay_different() -> None:
    names = [("a", f"p:q:{'x' * 60}{middle}{'y' * 60}") for middle in "abc"]
    found = labels(names, 20)
    assert len(set(found)) == 3


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=12)), min_size=1, max_size=6, unique=True))
def test_different_objects_have_different_labels(names: list[tuple[str, str]]) -> None:
    found = labels(names, 10)
    assert len(found) == len(names)
    assert len(set(found)) == len(names)
    assert not any("\n" in text or "\x1b" in text for text in found)


def test_the_middle_of_a_long_text_is_left_out() -> None:
    assert abbreviate("short", 5) == "short"
    assert abbreviate("0123456789", 5) == "01…89"
    assert abbreviate("a\nb", 9) == "a\\nb"
