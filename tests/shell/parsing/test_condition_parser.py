"""Conditions: from words to trees, and every mistake in one line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.parsing.condition_parser import parse_condition
from qmf_shell.parsing.conditions import (
    And,
    Comparison,
    Condition,
    ConditionError,
    Not,
    Operator,
    Or,
    Truthy,
    value_names,
)

from qmf.views.conditions.words import LineError, split_line

A = Comparison("a", Operator.GT, "1")

B = Comparison("b", Operator.EQ, "x y")

C = Truthy("c")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a > 1", A),
        ("a>1", A),
        ("a >1", A),
        ("b = 'x y'", B),
        ("b='x y'", B),
        ("b == 'x y'", B),
        ("c", C),
        ("not c", Not(C)),
        ("NOT c", Not(C)),
        ("a > 1 and b = 'x y'", And((A, B))),
        ("a > 1 or b = 'x y' and c", Or((A, And((B, C))))),
        ("(a > 1 or b = 'x y') and c", And((Or((A, B)), C))),
        ("( a>1 or c ) and not (c)", And((Or((A, C)), Not(C)))),
        ("a != 1", Comparison("a", Operator.NE, "1")),
        ("a <= -1", Comparison("a", Operator.LE, "-1")),
        ("a >= 1", Comparison("a", Operator.GE, "1")),
        ("a < 1", Comparison("a", Operator.LT, "1")),
        ('name ~ "^a.*(b|c)"', Comparison("name", Operator.MATCH, "^a.*(b|c)")),
        ("name !~ x", Comparison("name", Operator.NO_MATCH, "x")),
        ("name = 'and'", Comparison("name", Operator.EQ, "and")),
        ("name = ''", Comparison("name", Operator.EQ, "")),
        ("name=''", Comparison("name", Operator.EQ, "")),
        ("(name='a > b')", Comparison("name", Operator.EQ, "a > b")),
        ("name = pre'a b'post", Comparison("name", Operator.EQ, "prea bpost")),
        ("name = 'a > b'", Comparison("name", Operator.EQ, "a > b")),
        ("name = /a/b:c", Comparison("name", Operator.EQ, "/a/b:c")),
    ],
)
def test_conditions(text: str, condition: Condition) -> None:
    words = split_line(text)
    assert parse_condition(words) == (condition, len(words))


@pytest.mark.parametrize(
    ("text", "used"),
    [("a > 1 purge 0", 3), ("c purge", 1), ("a>1 sort b", 1), ("(a > 1) purge", 3), ("a > 1 and c purge x", 5)],
)
def test_a_condition_ends_where_it_cannot_go_on(text: str, used: int) -> None:
    assert parse_condition(split_line(text))[1] == used


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("> 1", ["expected the name of a value in column 1", "'>'"]),
        ("a >", ["expected a value after > at the end"]),
        ("a > =", ["expected a value after >", "column 5"]),
        ("a > 1 and", ["expected the name of a value at the end"]),
        ("(a > 1", ["expected a closing bracket at the end"]),
        ("not", ["expected the name of a value at the end"]),
        ("a>1>2", ["'>' in column 4 does not belong"]),
    ],
)
def test_mistakes_name_the_column(text: str, parts: list[str]) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(split_line(text))
    for part in parts:
        assert part in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_a_condition_or_a_mistake(text: str) -> None:
    with contextlib.suppress(LineError, ConditionError):
        condition, used = parse_condition(split_line(text))
        assert 0 < used <= len(split_line(text))
        assert list(value_names(condition))
