"""Names of topics and filters: which are allowed, and which match."""

from __future__ import annotations

import pytest

from qmf.broker.protocols.mqtt.codec.topics import TopicFilter, filter_error, matches, topic_error


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "a/b", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/x", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/monitor", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("ACCOUNTS", "Accounts", False),
        ("a.*/b", "a.*/b", True),
        ("a/b", "a/b/c", False),
        ("a/b/c", "a/b", False),
    ],
)
def test_the_examples_of_the_standard(topic_filter: str, topic: str, expected: bool) -> None:
    assert matches(topic_filter, topic) is expected


@pytest.mark.parametrize("topic", ["a", "/", "a b", "/finance", "a//b", "$SYS/x", "ä" * 100])
def test_names(topic: str) -> None:
    assert topic_error(topic) == ""
    assert filter_error(topic) == ""


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("", "at least one"),
        ("a/+", "no wildcards"),
        ("#", "no wildcards"),
        ("a\0", "U\\+0000"),
        ("/" * 200, "200 levels"),
        ("ä" * 40_000, "65535 bytes"),
    ],
)
def test_no_names(topic: str, reason: str) -> None:
    assert reason.replace("\\", "") in topic_error(topic)


@pytest.mark.parametrize("topic_filter", ["#", "+", "a/+/b", "+/a/#", "/#", "$share/g/#", "$share/g//a"])
def test_filters(topic_filter: str) -> None:
    assert filter_error(topic_filter) == ""


@pytest.mark.parametrize(
    ("topic_filter", "reason"),
    [
        ("", "at least one"),
        ("a#", "last level"),
        ("#/a", "last level"),
        ("a/#/b", "last level"),
        ("a+", "level of its own"),
        ("sport+/a", "level of its own"),
        ("$share/g", "$share/name/filter"),
        ("$share/g/", "$share/name/filter"),
        ("$share//a", "at least one character"),
        ("$share/+/a", "no wildcards"),
        ("$share/g/a#", "last level"),
    ],
)
def test_no_filters(topic_filter: str, reason: str) -> None:
    assert reason in filter_error(topic_filter)


def test_a_shared_subscription_is_taken_apart() -> None:
    assert TopicFilter.parse("$share/group/a/+") == TopicFilter("group", "a/+")
    assert TopicFilter.parse("a/+") == TopicFilter("", "a/+")
