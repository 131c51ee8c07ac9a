"""Conditions with a class: what the agents are asked, what is tested here, and lists that use it."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.modes.executor import Outcome, execute
from qmf_shell.objects.fields import ObjectField, fields_of, find_field, sorted_by
from qmf_shell.objects.filtering import ObjectFilter, compile_filter, literal
from qmf_shell.parsing.condition_parser import parse_condition
from qmf_shell.parsing.conditions import ConditionError
from qmf_shell.parsing.words import split_line
from qmf_shell.session.backend import ObjectKey
from qmf_shell.session.context import Context
from shell.world import ALPHA, BETA, FILESYSTEM, NOON, SECOND, FakeBackend, filesystem, make_output, process

from qmf.errors import NotFoundError
from qmf.protocol import matches
from qmf.schema import TYPES

ROOT = filesystem("/").identity.key
ZEROES = [["eq", "label", ["quote", zero]] for zero in (False, 0, "")]


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


def test_slots() -> None:
    fields = fields_of(FILESYSTEM)
    assert fields["bytesRead"].counter
    assert fields["openFilesHigh"].element == "openFiles"
    assert not fields["label"].is_number
    assert fields["parent"].is_reference
    assert find_field([FILESYSTEM], "LATENCY").name == "latencyAvg"


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text()), max_size=20))
def test_sorting_takes_any_values(values: list[object]) -> None:
    for down in (False, True):
        result = sorted_by(values, lambda value: value, descending=down)
        assert sorted(map(repr, result)) == sorted(map(repr, values))
        missing = values.count(None)
        assert all(value is None for value in result[len(result) - missing :])


def test_literals_of_plain_types() -> None:
    assert literal(ObjectField("x", TYPES["bool"]), "yes") is True
    assert literal(ObjectField("x", TYPES["double"]), "1e3") == 1000.0
    assert literal(ObjectField("x"), "anything") == "anything"


# -- the commands ------------------------------------------------------------------------------------------------------


def run(context: Context, *lines: str) -> list[str]:
    output = make_output()
    for line in lines:
        output = make_output()
        assert execute(line, context, output.screen) is Outcome.DONE, output.errors
    return output.lines


@pytest.fixture
def many(backend: FakeBackend) -> None:
    backend.things = [filesystem(f"/{n}", threshold=n * 10, label="x" * n) for n in range(1, 10)]


@pytest.mark.usefixtures("many")
def test_the_condition_goes_to_the_agents(context: Context, backend: FakeBackend) -> None:
    lines = run(context, "list filesystem where threshold > 70")
    assert backend.wheres[-1] == ["gt", "threshold", ["quote", 70]]
    assert lines[0] == "org.example:filesystem, 2 objects"
    assert [line.split() for line in lines[3:]] == [["101", "/8", "80", "%"], ["102", "/9", "90", "%"]]


@pytest.mark.usefixtures("many")
def test_order_columns_and_limit(context: Context) -> None:
    lines = run(context, "list filesystem sort by threshold desc columns label limit 2")
    assert lines[1].split() == ["ID", "Index", "label"]
    assert [line.split()[1:] for line in lines[3:5]] == [["/9", "x" * 9], ["/8", "x" * 8]]
    assert lines[5] == "7 more beyond the limit"


@pytest.mark.usefixtures("many")
def test_all_columns(context: Context) -> None:
    lines = run(context, "list filesystem columns all limit 1")
    assert lines[1].split()[2:6] == ["mountPoint", "label", "parent", "threshold"]


@pytest.mark.usefixtures("many")
def test_nothing_matches(context: Context) -> None:
    assert run(context, "list filesystem where threshold > 200") == ["No objects of org.example:filesystem that match."]


@pytest.mark.usefixtures("many")
def test_ranges(context: Context) -> None:
    run(context, "list filesystem")
    assert run(context, "list filesystem 103-105")[1].split() == ["Type", "Element", "103", "104", "105"]
    assert run(context, "show 101-102 109")[1].split() == ["Type", "Element", "101", "102", "109"]
    assert run(context, "show 101-109")[1].split()[2:] == [str(n) for n in range(101, 110)]
    output = make_output()
    assert execute("show 200-210", context, output.screen) is Outcome.FAILED
    assert output.errors == ["error: no object with a short id in '200-210'"]


@pytest.mark.usefixtures("many")
def test_show_a_class(context: Context) -> None:
    assert run(context, "show filesystem limit 2")[1].split()[2:] == ["101", "102"]
    assert run(context, "show filesystem where threshold > 200") == ["No objects of filesystem."]


def test_active_leaves_out_the_dead(context: Context, backend: FakeBackend) -> None:
    run(context, "list filesystem")
    gone = backend.things.pop(0)
    context.ids.mark_deleted(gone.identity.key, NOON)
    context.deletions.add(("org.example", "filesystem"))
    assert run(context, "list filesystem")[0].endswith("1 destroyed")
    assert run(context, "list filesystem active")[0] == "org.example:filesystem, 1 object"
    assert next(line.split() for line in run(context, "list") if "filesystem" in line)[2:] == ["1", "1"]


def test_short_times(context: Context) -> None:
    output = make_output()
    context.settings = output.screen.settings
    assert execute("set time-format short", context, output.screen) is Outcome.DONE
    assert execute("list filesystem", context, output.screen) is Outcome.DONE
    assert any(line.split()[:3] == ["101", "11:59:00", "-"] for line in output.lines)


def test_several_brokers_are_told_apart(context: Context, backend: FakeBackend) -> None:
    one, two = filesystem("/"), filesystem("/")
    key = attrs.evolve(two.identity.key, broker="amqp://mq2")
    backend.things = [one, attrs.evolve(two, identity=attrs.evolve(two.identity, key=key)), process(1)]
    lines = run(context, "list filesystem")
    assert [line.split()[0] for line in lines[3:]] == ["101", "102"]
    assert {line.split("  ")[-1] for line in lines[3:]} == {ALPHA, f"{ALPHA} at amqp://mq2"}
