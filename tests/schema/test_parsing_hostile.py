"""Files made to hurt: each ends in an error, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.errors import SchemaError
from qmf.schema import parse_schema, read_schema
from qmf.schema.parsing.document import MAX_BYTES, MAX_CHILDREN
from qmf.schema.parsing.groups import MAX_DEPTH, MAX_MEMBERS

#: Seconds of processor time: far above what any of them takes, far below what they would take without limits.
WAIT_LIMIT = 20.0


def wrap(inner: str) -> str:
    return f'<schema package="p">{inner}</schema>'


def laughs() -> str:
    entities = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(20))
    return f'<!DOCTYPE schema [<!ENTITY l0 "ha">{entities}]>\n<schema package="&l20;"/>'


def group_laughs() -> str:
    groups = "".join(f'<group name="g{n + 1}"><group use="g{n}"/><group use="g{n}"/></group>' for n in range(40))
    return wrap(
        f'<group name="g0"><property name="a" type="bool"/></group>{groups}<class name="A"><group use="g40"/></class>'
    )


def many_members() -> str:
    members = "".join(f'<property name="p{n}" type="bool"/>' for n in range(1900))
    return wrap(
        f'<group name="g">{members}</group>'
        + "".join(f'<class name="C{n}"><group use="g"/></class>' for n in range(1900))
    )


def fault_everywhere() -> str:
    return wrap(('<class name="A">' + '<property nme="x" tpe="y"/>' * 2000 + "</class>") * 18)


CASES: list[tuple[Callable[[], str], str]] = [
    (laughs, "f:1: a document type declaration (DOCTYPE) is not allowed"),
    (
        lambda: '\n<!DOCTYPE schema SYSTEM "http://example.org/x.dtd"><schema package="p"/>',
        "f:2: a document type declaration (DOCTYPE) is not allowed",
    ),
    (
        lambda: '<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/passwd">]><schema package="p" desc="&x;"/>',
        "f:1: a document type declaration (DOCTYPE) is not allowed",
    ),
    (lambda: "<a>" * 300_000, "f:1: not well-formed XML: Excessive depth in document: 256, use XML_PARSE_HUGE option"),
    (lambda: " " * (MAX_BYTES + 1), f"f:1: the file has more than {MAX_BYTES} bytes"),
    (lambda: wrap("<x/>" * 200_000), f"f:1: schema has more than {MAX_CHILDREN} children"),
    (lambda: wrap("<!---->" * 100_000), f"f:1: schema has more than {MAX_CHILDREN} children"),
    (group_laughs, f"f:1: groups are nested more than {MAX_DEPTH} deep"),
    (many_members, f"f:1: groups expand to more than {MAX_MEMBERS} members; gave up here"),
    (lambda: "\0" * 1000, "f:1: not well-formed XML: Document is empty"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "message"), CASES)
def test_hostile_files_end_in_an_error(make: Callable[[], str], message: str) -> None:
    data = make().encode()
    begin = time.process_time()
    with pytest.raises(SchemaError) as caught:
        parse_schema(data, "f")
    assert time.process_time() - begin < WAIT_LIMIT
    assert str(caught.value.problems[0]) == message


@pytest.mark.slow
def test_a_file_that_is_wrong_everywhere() -> None:
    begin = time.process_time()
    with pytest.raises(SchemaError) as caught:
        parse_schema(fault_everywhere().encode(), "f")
    assert time.process_time() - begin < WAIT_LIMIT
    assert len(caught.value.problems) > 18 * 2000 * 4


@pytest.mark.slow
def test_too_many_kinds_of_unexpected_elements() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(wrap("".join(f"<x{n}/>" for n in range(500))).encode(), "f")
    assert "too many unexpected elements; stopped looking for more" in [p.message for p in caught.value.problems]


def test_files_without_end_are_read_up_to_the_limit() -> None:
    with pytest.raises(SchemaError) as caught:
        read_schema("/dev/zero")
    assert [problem.message for problem in caught.value.problems] == [f"the file has more than {MAX_BYTES} bytes"]


@pytest.mark.slow
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_garbage_is_an_error_of_the_schema(data: bytes) -> None:
    with pytest.raises(SchemaError):
        parse_schema(data, "f")


@pytest.mark.slow
@given(data=st.data())
def test_damaged_files_are_read_or_refused(data: st.DataObject) -> None:
    text = (
        b'<schema package="p">\n<group name="g"><property name="p" type="sstr" maxLen="3"/></group>\n<class name="A">'
        b'<group use="g"/><statistic name="s" type="hilo8"/><method name="m"><arg name="a" type="map" default="{}"/>'
        b'</method></class>\n<eventArguments><arg name="x" type="bool"/></eventArguments>\n'
        b'<event name="e" args="x"/>\n</schema>'
    )
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 20))
    damaged = text[:at] + data.draw(st.binary(max_size=5)) + text[at + cut :]
    # Whatever else it raises fails the test.
    with suppress(SchemaError):
        assert parse_schema(damaged, "f").package
