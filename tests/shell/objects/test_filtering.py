"""What conditions compare of objects: every kind of value, references, and what every object has."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from qmf_shell.objects.filtering import object_filter
from qmf_shell.session.short_ids import ShortIds
from shell.fakes import BETA, FILESYSTEM, NOON, SECOND, filesystem

from qmf.errors import NotFoundError
from qmf.views.conditions import ConditionError, ObjectFilter, parse_condition
from qmf.views.objects import ObjectView

ROOT = filesystem("/").identity.key


def compiled(text: str, columns: Sequence[str] = ()) -> ObjectFilter:
    ids = ShortIds()
    ids.assign(filesystem("/").identity)
    return object_filter(parse_condition(text), [FILESYSTEM], ids, columns)


def passes(text: str, record: ObjectView, columns: Sequence[str] = ()) -> bool:
    test = compiled(text, columns).test
    return test is None or test(record)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("threshold > 80", ["gt", "threshold", ["quote", 80]]),
        ("THRESHOLD = 0x50", ["eq", "threshold", ["quote", 80]]),
        ("threshold > 80%", ["gt", "threshold", ["quote", 80]]),
        ("bytesRead >= 10k", ["ge", "bytesRead", ["quote", 10_000]]),
        ("label == 10k", ["eq", "label", ["quote", "10k"]]),
        ("uptime > 2h", ["gt", "uptime", ["quote", 7200 * SECOND]]),
        ("latency > 5ms", []),
        ("agent ~ beta and threshold > 1", ["gt", "threshold", ["quote", 1]]),
        ("parent = /", []),
        ("created > 5m", []),
    ],
)
def test_predicates(text: str, predicate: list[object]) -> None:
    assert compiled(text).predicate == predicate


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("latency > 5ms", {"latencyAvg": 6_000_000}, {"latencyAvg": 4_000_000}),
        ("latencyMax > 1.5", {"latencyMax": 2}, {"latencyMax": 1.5}),
        ("latencyCount > 3", {"latencyCount": 4}, {"latencyCount": 3}),
        ("mountPoint ~ '^/h'", {"mountPoint": "/h"}, {"mountPoint": "/x"}),
        ("has options", {"options": {"ro": True}}, {"options": {}}),
        ("has parent and not has label", {"parent": ROOT}, {"parent": ROOT, "label": "x"}),
        ("label != x", {}, {"label": "X"}),
        ("parent = /", {"parent": ROOT}, {"parent": filesystem("/x").identity.key}),
        ("parent = filesystem:/", {"parent": ROOT}, {"parent": filesystem("/x").identity.key}),
        ("parent = '#101'", {"parent": ROOT}, {"parent": filesystem("/x").identity.key}),
        ("parent!=#101", {}, {"parent": ROOT}),
        ("parent ~ org.example:filesystem:/$", {"parent": ROOT}, {"parent": filesystem("/x").identity.key}),
        ("parent = / or threshold > 5", {"threshold": 6}, {"threshold": 5}),
    ],
)
def test_values(text: str, true: dict[str, object], false: dict[str, object]) -> None:
    assert passes(text, filesystem("/a", values=true))
    assert not passes(text, filesystem("/a", values=false))


def test_words_are_searched_for_in_names_and_columns() -> None:
    record = filesystem("/a", values={"label": "Spare", "parent": ROOT})
    titled = attrs.evolve(record, identity=attrs.evolve(record.identity, title="Backup"))
    assert passes("/A", record)
    assert passes("backup", titled)
    assert not passes("spare", record)
    assert passes("spare", record, ["label"])
    assert passes("filesystem:/ spare", record, ["all"])
    assert not passes("90", record, ["threshold"])


def test_the_broker_has_a_name_in_every_session() -> None:
    alone = attrs.evolve(filesystem("/a"), broker="mq1:5672")
    identity = attrs.evolve(alone.identity, key=attrs.evolve(alone.identity.key, broker="mq2"))
    one_of_two = attrs.evolve(alone, identity=identity)
    assert [passes("broker ~ mq1", item) for item in (alone, one_of_two, filesystem("/a"))] == [True, False, False]


def test_what_every_object_has() -> None:
    old, new = filesystem("/a"), attrs.evolve(filesystem("/b", BETA), created=NOON)
    for text, expected in {
        "index = /A": [old],
        "agent ~ beta": [new],
        "created >= 2024-05-01T12:00:00+00:00": [new],
        "created < 2024-05-01T12:00:00+00:00": [old],
        "class = Filesystem": [old, new],
        "updated > 5m": [],
    }.items():
        assert [item for item in (old, new) if passes(text, item)] == expected, text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("thresold > 1", ["no value of filesystem 'thresold'", "did you mean threshold"]),
        ("threshold > many", ["'many' is not a value of threshold", "not a number"]),
        ("latency > soon", ["'soon' is not a value of latencyAvg"]),
        ("mountPoint ~ '['", ["is not a regular expression"]),
        ("parent > /", ["parent is a reference"]),
        ("parent=#17", ["no object with the short id '#17'"]),
        ("created > yesterday", ["'yesterday' is not a value of created: not a time", "5m (ago)"]),
        ("mounted > yesterday", ["'yesterday' is not a value of mounted: not a time"]),
        ("bytesRead.rate > 1", ["bytesRead.rate: rates are compared in the filter of a live screen only"]),
    ],
)
def test_mistakes(text: str, parts: list[str]) -> None:
    with pytest.raises((ConditionError, NotFoundError)) as caught:
        compiled(text)
    for part in parts:
        assert part in str(caught.value)
