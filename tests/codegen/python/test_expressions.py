"""Values of a schema as Python source."""

from __future__ import annotations

import ast
from uuid import UUID

import pytest
from hypothesis import given
from qmf_codegen.python.expressions import call, expression, is_short, sequence, string
from support.schemas import TEXTS

from qmf.schema import TYPES, Access, Argument, ClassSchema, Property, Reference


@pytest.mark.parametrize(
    ("value", "source", "short"),
    [
        (7, "7", True),
        (True, "True", True),
        (1e16, "1e+16", True),
        (float("-inf"), 'float("-inf")', False),
        ("x", "'x'", True),
        ("x" * 50, "'" + "x" * 50 + "'", False),
        (UUID(int=0), 'UUID("00000000-0000-0000-0000-000000000000")', False),
        ({}, "{}", False),
        ([1, "a", None], 'parse_value(TYPES["list"], \'[1, "a", null]\')', False),
        ({"a": [1.5, {"b": False}]}, 'parse_value(TYPES["map"], \'{"a": [1.5, {"b": false}]}\')', False),
        (None, "None", False),
        (TYPES["uint8"], 'TYPES["uint8"]', False),
        (Access.RW, "Access.RW", False),
    ],
)
def test_values(value: object, source: str, short: bool) -> None:
    assert expression(value) == source
    assert is_short(value) is short


def test_arguments_at_their_defaults_are_left_out() -> None:
    item = Property(name="p", type=TYPES["objId"], index=True, references=Reference(None, "C"))
    expected = "Property(name='p', type=TYPES[\"objId\"], index=True, references=Reference(package=None, name='C'))"
    assert expression(item) == expected
    argument = Argument(name="a", type=TYPES["bool"], default=False, minimum=0)
    assert expression(argument) == "Argument(name='a', type=TYPES[\"bool\"], default=False, minimum=0)"


def test_members_get_a_last_comma() -> None:
    item = Property(name="p", type=TYPES["bool"])
    source = "Property(name='p', type=TYPES[\"bool\"])"
    assert expression((item, item)) == f"({source}, {source}, )"
    assert sequence(["A"]) == "(A, )"


def test_source_takes_the_place_of_values() -> None:
    item = ClassSchema(package="org.x", name="C")
    assert call(item, package="PACKAGE") == "ClassSchema(package=PACKAGE, name='C')"


@given(text=TEXTS)
def test_strings_stand_for_their_text(text: str) -> None:
    assert ast.literal_eval(string(text)) == text


def test_long_strings_are_cut_after_spaces() -> None:
    pieces = string("word " * 40)[1:-1].split("' '")
    assert [len(piece.strip("'")) for piece in pieces] == [85, 85, 30]


def test_wide_and_escaped_characters_take_more_room() -> None:
    assert string("長" * 47).count("'") == 4
    assert string("\u200b" * 16).count("'") == 4
