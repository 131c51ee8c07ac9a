"""Predicates: the semantics of QMF2.md 4.4.2 as a table."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire

from qmf.errors import ProtocolError
from qmf.protocol import compile_predicate, matches, validate

VALUES: dict[str, object] = {
    "name": "widget-3",
    "count": 3,
    "big": 2**63 + 1,
    "delta": -3,
    "ratio": 1.5,
    "whole": 2.0,
    "enabled": True,
    "nothing": None,
    "digits": "10",
    "raw": b"\xff\xfe",
    "uid": UUID(int=5),
    "tags": ["a"],
    "pattern": "^wid",
}


def quote(value: object) -> list[object]:
    return ["quote", value]


# predicate, result
TABLE: list[tuple[list[object], bool]] = [
    ([], True),
    (["true"], True),
    (["false"], False),
    # logic
    (["and"], True),
    (["or"], False),
    (["not"], True),
    (["and", ["true"], ["true"]], True),
    (["and", ["true"], ["false"]], False),
    (["or", ["false"], ["true"]], True),
    (["or", ["false"], ["false"]], False),
    (["not", ["false"], ["false"]], True),
    (["not", ["false"], ["true"]], False),
    (["and", [], ["not", ["or"]]], True),
    # equality compares text
    (["eq", "name", quote("widget-3")], True),
    (["ne", "name", quote("widget-3")], False),
    (["eq", "count", quote(3)], True),
    (["eq", "count", quote("3")], True),
    (["ne", "count", quote("4")], True),
    (["eq", quote("x"), quote("x")], True),
    (["eq", "count", "count"], True),
    (["eq", "enabled", quote("True")], True),
    (["eq", "enabled", quote(True)], True),
    (["eq", "enabled", quote(1)], False),
    (["eq", "ratio", quote("1.5")], True),
    (["eq", "whole", quote(2)], True),
    (["eq", "uid", quote(str(UUID(int=5)))], True),
    (["eq", "raw", quote(b"\xff\xfe")], True),
    (["ne", "raw", quote(b"\xff")], True),
    # names without a value
    (["eq", "missing", quote("x")], False),
    (["ne", "missing", quote("x")], False),
    (["eq", "missing", "missing"], False),
    (["ne", "nothing", quote("x")], False),
    (["lt", "missing", quote(5)], False),
    (["not", ["eq", "missing", quote(5)]], True),
    # order
    (["ge", "count", quote(3)], True),
    (["gt", "count", quote(3)], False),
    (["lt", "delta", quote(0)], True),
    (["le", "delta", quote(-4)], False),
    (["gt", "big", quote(2**63)], True),
    (["lt", "ratio", quote(1.75)], True),
    (["ge", "ratio", quote(1.75)], False),
    (["gt", "ratio", quote(1)], False),
    (["lt", "ratio", quote(2)], False),
    (["lt", quote(1), "ratio"], False),
    (["gt", "digits", quote(9)], True),
    (["lt", quote(9), "digits"], True),
    (["gt", "digits", quote(9.5)], True),
    (["gt", "digits", quote("9")], False),
    (["gt", "name", quote(1)], False),
    (["le", "name", quote(1)], False),
    (["lt", quote("1_0"), quote(100)], False),
    (["lt", quote("B"), quote("a")], True),
    (["lt", quote("z"), quote("é")], True),
    (["gt", "raw", quote("é")], True),
    (["lt", "name", quote("\ud800")], True),
    (["lt", quote("\ud800"), quote("\ud801")], True),
    (["ge", "enabled", quote(True)], False),
    (["ge", "tags", "tags"], False),
    (["ge", "uid", "uid"], False),
    # exists
    (["exists", "name"], True),
    (["exists", "missing"], False),
    (["exists", "nothing"], False),
    (["exists", quote(0)], True),
    # regular expressions
    (["re_match", "name", quote("^wid")], True),
    (["re_match", "name", quote("get-[0-9]$")], True),
    (["re_match", "name", quote("^get")], False),
    (["re_match", "count", quote("3")], False),
    (["re_match", "missing", quote("")], False),
    (["re_match", "raw", quote(".")], True),
    (["re_match", "name", "pattern"], True),
    (["re_match", "name", "count"], False),
    (["re_match", quote("a"), "digits"], False),
]


@pytest.mark.parametrize(("predicate", "expected"), TABLE, ids=lambda item: repr(item)[:50])
def test_the_table_of_meanings(predicate: list[object], expected: bool) -> None:
    assert matches(predicate, VALUES) is expected
    assert matches(["not", predicate], VALUES) is not expected
    assert matches(tuple(predicate), VALUES) is expected


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("eq", "'eq' is no list"),
        ({}, "{} is no list"),
        ([5], "5 is no operator"),
        ([["true"]], "is no operator"),
        (["like", "a", "b"], "unknown operator 'like'"),
        (["quote", 5], "unknown operator 'quote'"),
        (["true", []], "true takes 0 operands, not 1"),
        (["exists"], "exists takes 1 operands, not 0"),
        (["eq", "a"], "eq takes 2 operands, not 1"),
        (["eq", "a", "b", "c"], "eq takes 2 operands, not 3"),
        (["eq", "a", 5], "operand 5 is neither a name nor a quoted value"),
        (["eq", "a", None], "operand None"),
        (["eq", "a", ["quote"]], "operand \\['quote'\\]"),
        (["eq", "a", ["quote", 1, 2]], "operand"),
        (["and", ["true"], ["like"]], "unknown operator 'like'"),
        (["or", ["true"], "false"], "'false' is no list"),
        (["re_match", "a", ["quote", 5]], "a string as pattern, not 5"),
        (["re_match", "a", ["quote", "("]], "regular expression '\\(': missing \\)"),
        (["re_match", "a", ["quote", "a" * 300]], "of 300 characters"),
    ],
)
def test_faults_are_found_wherever_they_are(predicate: list[object], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        matches(predicate, {})
    with pytest.raises(ProtocolError, match=words):
        validate(predicate)


def test_depth_has_a_limit() -> None:
    predicate: list[object] = ["true"]
    for _ in range(31):
        predicate = ["not", predicate]
    assert matches(predicate, {}) is False
    with pytest.raises(ProtocolError, match="more than 32 levels"):
        validate(["not", predicate])
    predicate.append(predicate)
    with pytest.raises(ProtocolError, match="more than 32 levels"):
        validate(predicate)


def test_regular_expressions_have_a_limit_together() -> None:
    dear, cheap = [["re_match", quote("a"), quote(pattern)] for pattern in (".*.*a", "a")]
    assert matches(["and", dear, cheap, dear], {})
    for many in ([dear] * 10, [cheap] * 2000):
        with pytest.raises(ProtocolError, match="together could take too long"):
            validate(["or", ["and"], ["not", ["or", *many]]])


def test_a_pattern_that_is_a_value_has_a_lower_limit() -> None:
    condition = ["re_match", "name", "pattern"]
    assert matches(condition, {"name": "abc", "pattern": "a.*c"})
    assert not matches(condition, {"name": "abc", "pattern": "a.*b.*c"})
    assert matches(["re_match", "name", quote("a.*b.*c")], {"name": "abc"})
    with pytest.raises(ProtocolError, match="together could take too long"):
        validate(["or", *[condition] * 11])


def test_a_compiled_predicate_applies_to_many() -> None:
    check = compile_predicate(["ge", "count", ["quote", 3]])
    assert [check({"count": number}) for number in (2, 3, 4)] == [False, True, True]


WORDS = st.sampled_from(
    ["and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "re_match", "exists", "true", "false", "quote", "name", ""]
)
NODES = st.recursive(
    WORDS | wire.SCALARS, lambda inner: st.builds(lambda w, rest: [w, *rest], WORDS, st.lists(inner, max_size=3))
)
OPERANDS = st.sampled_from(sorted(VALUES)) | wire.SCALARS.map(quote)
CONDITIONS = st.recursive(
    st.builds(lambda w, a, b: [w, a, b], st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), OPERANDS, OPERANDS),
    lambda inner: st.builds(
        lambda w, rest: [w, *rest], st.sampled_from(["and", "or", "not"]), st.lists(inner, max_size=3)
    ),
)


@pytest.mark.slow
@given(predicate=NODES, values=wire.maps())
def test_anything_may_arrive(predicate: list[object], values: dict[str, object]) -> None:
    try:
        check = compile_predicate(predicate)
    except ProtocolError:
        return
    assert check(values) in (True, False)


@pytest.mark.slow
@given(predicate=CONDITIONS)
def test_well_formed_conditions_have_an_answer(predicate: list[object]) -> None:
    assert matches(predicate, VALUES) is not matches(["not", predicate], VALUES)
