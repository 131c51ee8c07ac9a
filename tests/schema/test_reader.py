"""What valid files say: every attribute in every spelling."""

from __future__ import annotations

import subprocess
import sys
from uuid import UUID

import pytest

from qmf.errors import SchemaProblem
from qmf.schema import TYPES, Access, Direction, Property, Reference, Schema, Severity, parse_schema


def read(inner: str, warnings: list[SchemaProblem] | None = None) -> Schema:
    text = f'<schema package="org.example">\n{inner}\n</schema>'
    return parse_schema(text.encode(), "f", None if warnings is None else warnings.append)


def read_property(attributes: str) -> Property:
    schema = read(f'<class name="Thing"><property name="p" {attributes}/></class>')
    return schema.classes[0].properties[0]


@pytest.mark.parametrize("text", ["y", "true", "1"])
def test_flags_that_mean_yes(text: str) -> None:
    assert read_property(f'type="bool" index="{text}"').index


@pytest.mark.parametrize("text", ["n", "false", "0"])
def test_flags_that_mean_no(text: str) -> None:
    assert not read_property(f'type="bool" index="{text}"').index


def test_a_bare_property_is_read_only() -> None:
    assert read_property('type="sstr"') == Property(name="p", type=TYPES["sstr"], access=Access.RO)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("Thing", Reference(None, "Thing")),
        ("org.example:Thing", Reference("org.example", "Thing")),
        ("org.example.Thing", Reference("org.example", "Thing")),
        ("qpid.Queue", Reference("qpid", "Queue")),
        ("org.apache.qpid.broker:Broker", Reference("org.apache.qpid.broker", "Broker")),
    ],
)
def test_forms_of_references(text: str, reference: Reference) -> None:
    assert read_property(f'type="objId" references="{text}"').references == reference


def test_a_general_reference_needs_no_class() -> None:
    item = read_property('type="objId" isGeneralReference="y"')
    assert item.general_reference
    assert item.references is None


@pytest.mark.parametrize("spelling", ["maxLen", "maxlen"])
def test_both_spellings_of_max_len(spelling: str) -> None:
    assert read_property(f'type="sstr" {spelling}="7"').max_len == 7


def test_bounds_are_numbers_of_the_type() -> None:
    assert read_property('type="uint16" min="0x10" max="32"').minimum == 16
    item = read_property('type="double" min="-1" max="2.5"')
    assert (item.minimum, item.maximum) == (-1.0, 2.5)
    assert isinstance(item.minimum, float)


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("uint32", "0xFFFFFFFF", 0xFFFFFFFF),
        ("int8", "-5", -5),
        ("bool", "true", True),
        ("sstr", "", ""),
        ("lstr", " a b ", " a b "),
        ("double", "1e3", 1000.0),
        ("float", "2", 2.0),
        ("uuid", "00000000-0000-0000-0000-00000000000A", UUID(int=10)),
        ("map", "{&quot;a&quot;: [1]}", {"a": [1]}),
        ("list", "[1, null]", [1, None]),
    ],
)
def test_defaults(type_name: str, text: str, value: object) -> None:
    arg = f'<arg name="a" type="{type_name}" default="{text}"/>'
    argument = read(f'<class name="A"><method name="m">{arg}</method></class>').classes[0].methods[0].arguments[0]
    assert argument.default == value
    assert type(argument.default) is type(value)
    assert argument.direction is Direction.IN


def test_severities() -> None:
    events = "".join(f'<event name="{item.schema_name}" sev="{item.schema_name}"/>' for item in Severity)
    assert [event.severity for event in read(events).events] == list(Severity)


def test_an_event_without_severity_informs() -> None:
    assert read('<event name="e"/>').events[0].severity is Severity.INFORM


def test_arguments_of_an_event_come_in_the_order_of_args() -> None:
    block = '<eventArguments><arg name="a" type="bool"/><arg name="b" type="sstr" unit="u" desc="d"/></eventArguments>'
    event = read(f'<event name="e" args=" b,a "/>{block}').events[0]
    assert [argument.name for argument in event.arguments] == ["b", "a"]
    assert event.arguments[0].unit == "u"


def test_groups_stand_for_their_members_in_place() -> None:
    schema = read(
        '<class name="A"><property name="first" type="bool"/><group use="g"/>'
        '<property name="last" type="bool"/></class>'
        '<group name="g"><property name="p" type="bool"/><group name="h"/><method name="m"/></group>'
        '<group name="h"><statistic name="s" type="bool"/><property name="q" type="bool"/></group>'
    )
    (thing,) = schema.classes
    assert [item.name for item in thing.properties] == ["first", "p", "q", "last"]
    assert [item.name for item in thing.statistics] == ["s"]
    assert [item.name for item in thing.methods] == ["m"]


def test_assign_of_a_group_may_name_what_the_class_has() -> None:
    schema = read(
        '<group name="g"><statistic name="depth" type="count64" assign="enqueued - dequeued"/></group>'
        '<class name="A"><statistic name="enqueued" type="count64"/><statistic name="dequeued" type="count64"/>'
        '<group use="g"/></class>'
    )
    statistic = schema.classes[0].statistic("depth")
    assert statistic is not None
    assert statistic.assign == "enqueued - dequeued"


def test_warnings_come_in_file_order_and_are_no_errors() -> None:
    warnings: list[SchemaProblem] = []
    block = '<eventArguments>\n<arg name="a" type="count64"/>\n<arg name="b" type="hilo8"/></eventArguments>'
    schema = read(f'{block}<event name="e" args="b, a"/>', warnings)
    assert [item.type.name for item in schema.events[0].arguments] == ["hilo8", "count64"]
    assert [str(problem) for problem in warnings] == [
        "f:3: arg 'a': type count64 is for statistics; sent as uint64",
        "f:4: arg 'b': type hilo8 is for statistics; sent as uint8",
    ]


def test_a_package_without_anything_is_suspicious() -> None:
    warnings: list[SchemaProblem] = []
    read("", warnings)
    assert [str(problem) for problem in warnings] == ["f:1: package 'org.example' has neither classes nor events"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings(encoding: str) -> None:
    text = '<schema package="p" desc="Größe"/>'
    declared = f'<?xml version="1.0" encoding="{encoding}"?>\n{text}' if encoding == "iso-8859-1" else text
    assert parse_schema(declared.encode(encoding), "f").desc == "Größe"


def test_an_encoding_that_expat_does_not_know() -> None:
    text = '<?xml version="1.0" encoding="gbk"?>\n<schema package="p" desc="长度"/>'
    assert parse_schema(text.encode("gbk"), "f").desc == "长度"


def test_a_model_does_not_load_the_parser() -> None:
    code = (
        "import sys, qmf.schema; print(sorted(m for m in sys.modules if m.split('.')[0] in ('lxml', 'xml', 'asyncio')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
