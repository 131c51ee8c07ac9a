"""Expressions of the `assign` attribute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.agent.layout.expressions import Expression
from qmf.errors import CallerError

VALUES = {"in": 10, "out": 4, "a1": 3, "half": 0.5, "zero": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("in - out", 6),
        ("in-out-a1", 3),
        ("in - (out - a1)", 9),
        ("in + out * a1", 22),
        ("(in + out) * a1", 42),
        ("-in + 12", 2),
        ("--in", 10),
        ("in / out", 2),
        ("in / zero", 0),
        ("half / 2", 0.25),
        ("  7 ", 7),
    ],
)
def test_value(text: str, value: float) -> None:
    assert Expression(text, "x.y").evaluate(VALUES) == value


def test_names_in_order_of_use_and_once() -> None:
    assert Expression("out + in - out * a1", "x.y").names == ("out", "in", "a1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a name or a number is missing"),
        ("in -", "a name or a number is missing"),
        ("in out", "unexpected 'out'"),
        ("(in", "no ')'"),
        ("in)", "unexpected ')'"),
        ("in % out", "unexpected '%'"),
        ("in.real", "unexpected '.'"),
        ("* in", "unexpected '*'"),
    ],
)
def test_errors_name_place_and_text(text: str, reason: str) -> None:
    with pytest.raises(CallerError) as caught:
        Expression(text, "Queue.depth")
    assert str(caught.value) == f"Queue.depth: {reason} in the expression {text!r}"


@given(st.text(alphabet="ab1+-*/() .", max_size=20))
def test_any_text_is_an_expression_or_a_caller_error(text: str) -> None:
    try:
        expression = Expression(text, "x.y")
    except CallerError:
        return
    values = {name: number for number, name in enumerate(expression.names, 2)}
    value = expression.evaluate(values)
    assert isinstance(value, int)
    source = expression.source({name: f"values[{name!r}]" for name in expression.names})
    assert (source is None) is ("/" in text)
    assert source is None or eval(source, {"values": values}) == value


def test_numbers_are_written_in_pythons_way() -> None:
    assert Expression("007 - a", "x.y").source({"a": "b"}) == "7 - b"


def test_expressions_that_nest_deep_are_not_handed_to_python() -> None:
    deep = Expression("(" * 60 + "a" + ")" * 60, "x.y")
    assert (deep.source({"a": "a"}), deep.evaluate({"a": 5})) == (None, 5)
