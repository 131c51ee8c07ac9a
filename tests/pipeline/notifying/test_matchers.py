"""Matchers of labels: their text, their JSON, what they match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.notifying.matchers import Matcher, parse_matcher, parse_matchers, parse_query


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=b", {"a": "b"}, True),
        ('a="b"', {"a": "b"}, True),
        ("a=b", {"a": "bc"}, False),
        ("a!=b", {}, True),
        ("a=", {}, True),
        ('a!=""', {}, False),
        ('a =~ "b|c.*"', {"a": "cd"}, True),
        ('a=~"b"', {"a": "ab"}, False),
        ("a!~b.*", {"a": "b"}, False),
        ("a!~b.*", {"a": "c"}, True),
        ('agent="a=b"', {"agent": "a=b"}, True),
        (r'a="x\"y\\z\n"', {"a": 'x"y\\z\n'}, True),
        (r'a=~"qmf\.host:.*"', {"a": "qmf.host:x"}, True),
    ],
)
def test_a_matcher(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse_matcher(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a matcher"),
        ("severity", "is not a matcher"),
        ("1a=b", "is not a matcher"),
        ('a="b', "not closed"),
        ('a=b"', "in quotes"),
        ('a="b"c"', "inside"),
        ('a="b\\"', "not closed"),
        ('a=~"("', "not a regular expression"),
    ],
)
def test_what_is_no_matcher(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_matcher(text)


def test_the_first_of_a_query_may_be_a_name() -> None:
    assert parse_query(["disk-full", "a=b"]) == parse_matchers(["alertname=disk-full", "a=b"])
    assert parse_query(["a=b"]) == parse_matchers(["a=b"])
    assert parse_query([]) == ()
    for texts in (["a=b", "disk-full"], ['disk"full'], ["=x"]):
        with pytest.raises(ValueError, match="is not a matcher"):
            parse_query(texts)


@given(st.from_regex(r"[a-zA-Z_]\w*", fullmatch=True).filter(str.isascii), st.text(), st.booleans())
def test_a_matcher_survives_its_text_and_json(name: str, value: str, is_equal: bool) -> None:
    matcher = Matcher(name, value, is_equal=is_equal)
    assert parse_matcher(str(matcher)) == matcher
    assert Matcher.from_json(matcher.to_json()) == matcher


@pytest.mark.parametrize(
    "content", [{}, {"name": 1, "value": "x"}, {"name": "a", "value": None}, {"name": "a", "value": "(", "isRegex": 1}]
)
def test_json_that_is_no_matcher(content: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Matcher.from_json(content)
