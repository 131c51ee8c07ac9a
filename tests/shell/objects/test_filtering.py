"""Conditions with a class: predicates for the agents, and tests made here."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.objects.fields import ObjectField
from qmf_shell.objects.filtering import ObjectFilter, compile_filter, literal
from qmf_shell.parsing.condition_parser import parse_condition
from qmf_shell.parsing.conditions import ConditionError
from qmf_shell.session.backend import ObjectKey
from shell.fakes import BETA, FILESYSTEM, NOON, SECOND, filesystem

from qmf.errors import NotFoundError
from qmf.protocol import matches
from qmf.schema import TYPES
from qmf.views.conditions.words import split_line

ROOT = filesystem("/").identity.key


def compiled(text: str) -> ObjectFilter:
    def resolve(text: str, field: ObjectField) -> ObjectKey:
        assert (text, field.name) == ("/", "parent")
        return ROOT

    return compile_filter(parse_condition(split_line(text))[0], [FILESYSTEM], resolve)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("threshold > 80", ["gt", "threshold", ["quote", 80]]),
        ("THRESHOLD = 0x50", ["eq", "threshold", ["quote", 80]]),
        ("bytesRead >= 10k", ["ge", "bytesRead", ["quote", 10_000]]),
        ("bytesRead < 2Mi", ["lt", "bytesRead", ["quote", 2 * 1024**2]]),
        ("label = '10k'", ["eq", "label", ["quote", "10k"]]),
        ("uptime > 2h", ["gt", "uptime", ["quote", 7200 * SECOND]]),
        ("latency > 5ms", ["gt", "latencyAvg", ["quote", 5_000_000]]),
        ("latencyMax > 1.5", ["gt", "latencyMax", ["quote", 1.5]]),
        ("latencyCount > 3", ["gt", "latencyCount", ["quote", 3]]),
        ("mountPoint ~ '^/h'", ["re_match", "mountPoint", ["quote", "^/h"]]),
        (
            "not label",
            [
                "not",
                ["and", ["exists", "label"], ["not", *(["eq", "label", ["quote", zero]] for zero in (False, 0, ""))]],
            ],
        ),
        (
            "threshold > 1 and threshold < 9",
            ["and", ["gt", "threshold", ["quote", 1]], ["lt", "threshold", ["quote", 9]]],
        ),
        ("threshold = 1 or label != x", ["or", ["eq", "threshold", ["quote", 1]], ["ne", "label", ["quote", "x"]]]),
    ],
)
def test_predicates(text: str, predicate: list[object]) -> None:
    assert compiled(text) == ObjectFilter(predicate=predicate)


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("threshold", {"threshold": 5}, {"threshold": 0}),
        ("label", {"label": "x"}, {"label": ""}),
        ("not label", {}, {"label": "x"}),
        ("label !~ x", {"label": "abc"}, {"label": "axc"}),
        ("label != x", {"label": "y"}, {}),
    ],
)
def test_what_predicates_mean(text: str, true: dict[str, object], false: dict[str, object]) -> None:
    predicate = list(compiled(text).predicate)
    assert matches(predicate, true)
    assert not matches(predicate, false)


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("parent = /", {"parent": ROOT}, {"parent": filesystem("/x").identity.key}),
        ("parent != /", {"parent": filesystem("/x").identity.key}, {"parent": ROOT}),
        ("parent ~ org.example:filesystem:/$", {"parent": ROOT}, {"parent": filesystem("/x").identity.key}),
        ("parent = / and threshold > 5", {"parent": ROOT, "threshold": 6}, {"parent": ROOT, "threshold": 5}),
        ("parent = / or threshold > 5", {"threshold": 6}, {"threshold": 5}),
        ("parent and not label", {"parent": ROOT}, {"parent": ROOT, "label": "x"}),
    ],
)
def test_references_are_tested_here(text: str, true: dict[str, object], false: dict[str, object]) -> None:
    found = compiled(text)
    assert found.predicate == ()
    assert found.test is not None
    assert found.test(filesystem("/a", values=true))
    assert not found.test(filesystem("/a", values=false))


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("options", {"options": {"ro": True}}, {"options": {}}),
        ("not options", {"options": {}}, {"options": {"ro": True}}),
        ("OPTIONS and threshold > 5", {"threshold": 6}, {"threshold": 6, "options": {}}),
        ("threshold > 5 and not (label or options)", {"threshold": 6, "options": {}}, {"threshold": 6}),
    ],
)
def test_whether_a_collection_is_empty_is_tested_here(
    text: str, true: dict[str, object], false: dict[str, object]
) -> None:
    found = compiled(text)
    assert found.predicate == ()
    assert found.test is not None
    assert found.test(filesystem("/a", values=true))
    assert not found.test(filesystem("/a", values=false))


def test_the_broker_has_a_name_in_every_session() -> None:
    alone = attrs.evolve(filesystem("/a"), broker="mq1:5672")
    identity = attrs.evolve(alone.identity, key=attrs.evolve(alone.identity.key, broker="mq2"))
    one_of_two = attrs.evolve(alone, identity=identity)
    test = compiled("broker ~ mq1").test
    assert test is not None
    assert [test(item) for item in (alone, one_of_two, filesystem("/a"))] == [True, False, False]


def test_what_every_object_has() -> None:
    old, new = filesystem("/a"), attrs.evolve(filesystem("/b", BETA), created=NOON)
    for text, expected in {
        "index = /a": [old],
        "agent ~ beta": [new],
        "created >= 2024-05-01T12:00:00+00:00": [new],
        "created < 2024-05-01T12:00:00+00:00": [old],
        "class = filesystem": [old, new],
        "updated > 5m": [],
    }.items():
        test = compiled(text).test
        assert test is not None
        assert [item for item in (old, new) if test(item)] == expected, text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("thresold > 1", ["no value of filesystem 'thresold'", "did you mean threshold"]),
        ("threshold > many", ["'many' is not a value of threshold (uint8)", "not a whole number"]),
        ("threshold > 1.5", ["not a whole number"]),
        ("latency > soon", ["'soon' is not a value of latencyAvg"]),
        ("mountPoint ~ '['", ["is not a regular expression"]),
        ("parent > /", ["parent is a reference"]),
        ("created > yesterday", ["'yesterday' is not a time", "5m (ago)"]),
        ("mounted > yesterday", ["'yesterday' is not a time"]),
    ],
)
def test_mistakes(text: str, parts: list[str]) -> None:
    with pytest.raises((ConditionError, NotFoundError)) as caught:
        compiled(text)
    for part in parts:
        assert part in str(caught.value)


def test_literals_of_plain_types() -> None:
    assert literal(ObjectField("x", TYPES["bool"]), "yes") is True
    assert literal(ObjectField("x", TYPES["double"]), "1e3") == 1000.0
    assert literal(ObjectField("x"), "anything") == "anything"
