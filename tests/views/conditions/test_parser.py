"""Conditions: from texts to trees and back, and every mistake in one line."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.views.conditions import Condition, ConditionError, parse_condition
from qmf.views.conditions.parser import MAX_DEPTH, parse_words
from qmf.views.conditions.tree import KEYWORDS, And, Comparison, Has, Not, Operator, Or, Search
from qmf.views.conditions.words import LineError, split_line

A = Comparison("a", Operator.GT, "1")

B = Comparison("b", Operator.EQ, "x y")

C = Search("c")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("", None),
        ("  ", None),
        ("a > 1", A),
        ("a>1", A),
        ("a >1", A),
        ("a> 1", A),
        ("b = 'x y'", B),
        ("b='x y'", B),
        ("b=x\\ y", B),
        ("b == 'x y'", Comparison("b", Operator.EXACT, "x y")),
        ("c", C),
        ("a/1:x", Search("a/1:x")),
        ("'a > 1'", Search("a > 1")),
        ("'and'", Search("and")),
        ("a'>'1", Search("a>1")),
        ("''", Search("")),
        ("not c", Not(C)),
        ("NOT c", Not(C)),
        ("-c", Not(C)),
        ("-'c d'", Not(Search("c d"))),
        ("'-c'", Search("-c")),
        ("-", Search("-")),
        ("has c", Has("c")),
        ("not has c", Not(Has("c"))),
        ("a > 1 c", And((A, C))),
        ("a > 1 and b = 'x y'", And((A, B))),
        ("a > 1 or b = 'x y' and c", Or((A, And((B, C))))),
        ("a > 1 or b = 'x y' c", Or((A, And((B, C))))),
        ("(a > 1 or b = 'x y') and c", And((Or((A, B)), C))),
        ("(a>1 or b='x y')c", And((Or((A, B)), C))),
        ("( a>1 or c ) and not (c)", And((Or((A, C)), Not(C)))),
        ("a != 1", Comparison("a", Operator.NE, "1")),
        ("a <= -1", Comparison("a", Operator.LE, "-1")),
        ("a >= 1", Comparison("a", Operator.GE, "1")),
        ("a < 1", Comparison("a", Operator.LT, "1")),
        ("a = or", Comparison("a", Operator.EQ, "or")),
        ("a=x=y>z", Comparison("a", Operator.EQ, "x=y>z")),
        ("a='='", Comparison("a", Operator.EQ, "=")),
        ('name ~ "^a.*(b|c)"', Comparison("name", Operator.MATCH, "^a.*(b|c)")),
        ("name~^a.*(b|c)", Comparison("name", Operator.MATCH, "^a.*(b|c)")),
        ("(name ~ (b|c))", Comparison("name", Operator.MATCH, "(b|c)")),
        ("name !~ x", Comparison("name", Operator.NO_MATCH, "x")),
        ("name = ''", Comparison("name", Operator.EQ, "")),
        ("name=''", Comparison("name", Operator.EQ, "")),
        ("name>''=5", Comparison("name", Operator.GT, "=5")),
        ("(name='')", Comparison("name", Operator.EQ, "")),
        ("(a > 1 '')", And((A, Search("")))),
        ("(name='a > b')", Comparison("name", Operator.EQ, "a > b")),
        ("name = pre'a b'post", Comparison("name", Operator.EQ, "prea bpost")),
        ("name = /a/b:c", Comparison("name", Operator.EQ, "/a/b:c")),
        ('options = {"a b": 1}', Comparison("options", Operator.EQ, '{"a b": 1}')),
    ],
)
def test_conditions(text: str, condition: Condition | None) -> None:
    assert parse_condition(text) == condition


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("> 1", ["expected a word or the name of a value in column 1", "'>'"]),
        ("a >", ["expected a value after > at the end"]),
        ("a > =", ["expected a value after >", "column 5"]),
        ("(a > )", ["expected a value after >", "column 6"]),
        ("a > 1 and", ["expected a word or the name of a value at the end"]),
        ("and a", ["expected a word", "column 1, not 'and'"]),
        ("a or or", ["expected a word", "column 6, not 'or'"]),
        ("(a > 1", ["expected a closing bracket at the end"]),
        ("()", ["expected a word", "column 2, not ')'"]),
        ("a )", ["')' in column 3 does not belong"]),
        ("not", ["expected a word or the name of a value at the end"]),
        ("has", ["expected the name of a value after has at the end"]),
        ("has 'a'", ["expected the name of a value after has in column 5, not 'a'"]),
        ("has > 5", ["expected the name of a value after has in column 5, not '>'"]),
        ("'a' > 1", ["'a' in column 1 is in quotes, so it is a word and cannot be compared"]),
        ("a!''=1", ["'a!' in column 1 is in quotes"]),
        ("has a > 1", ["'>' in column 7 does not belong"]),
        ("a 'b", ["the quote ' in column 3 is not closed"]),
        ("(" * 100 + "a" + ")" * 100, [f"more than {MAX_DEPTH} brackets"]),
        ("not " * 1000 + "a", [f"more than {MAX_DEPTH} brackets"]),
    ],
)
def test_mistakes_name_the_column(text: str, parts: list[str]) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text)
    for part in parts:
        assert part in str(caught.value)


def test_a_mistake_knows_its_column() -> None:
    for text, column in {"a > 1 )": 7, "x = 'a'b) > 2": 9, "a and": None}.items():
        with pytest.raises(ConditionError) as caught:
            parse_condition(text)
        assert caught.value.column == column


@pytest.mark.parametrize(
    ("text", "used"),
    [("a > 1 c sort b", 4), ("a>1 SORT b", 1), ("a = sort", 3), ("a 'sort' sort", 2), ("a", 1)],
)
def test_a_condition_goes_on_up_to_a_word_that_ends_it(text: str, used: int) -> None:
    words = split_line(text)
    assert parse_words(words, ends=lambda word: word.text.lower() == "sort" and word.plain)[1] == used


@pytest.mark.parametrize(
    ("text", "used"),
    [("a > 1 purge 0", 3), ("c purge", 1), ("(a > 1 c) purge", 4), ("a > 1 and c purge x", 5), ("a > 1", 3)],
)
def test_a_condition_that_something_else_follows_ends_where_nothing_joins_it(text: str, used: int) -> None:
    assert parse_words(split_line(text), alone=False)[1] == used


def test_such_a_condition_ends_between_words() -> None:
    with pytest.raises(ConditionError, match=r"'purge' in column 6 does not belong"):
        parse_words(split_line("(a>1)purge"), alone=False)


_NAMES = st.from_regex(r"[A-Za-z_][\w.]{0,8}", fullmatch=True).filter(lambda name: name.lower() not in KEYWORDS)
_TEXTS = st.text(max_size=12) | st.sampled_from([*KEYWORDS, "=", "~x", "-a", "(a)", "'", '"', "\\", "[", "{"])
_TREES: st.SearchStrategy[Condition] = st.recursive(
    _TEXTS.map(Search) | _NAMES.map(Has) | st.builds(Comparison, _NAMES, st.sampled_from(Operator), _TEXTS),
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=4).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, min_size=2, max_size=4).map(lambda parts: Or(tuple(parts)))
    ),
    max_leaves=8,
)


@given(_TREES)
def test_the_text_of_a_tree_is_the_tree(tree: Condition) -> None:
    assert parse_condition(str(tree)) == tree


_SIGNS = ["(", ")", "=", "==", "!=", "<", ">=", "~", "!~", "-", "'x y'", '"', "'", "\\", "{", "}", "[", "]", " ", "\n"]
_PIECES = st.lists(st.sampled_from(["a", "b.c", "5", *KEYWORDS, *_SIGNS]), max_size=14)


@given(st.text(max_size=30) | _PIECES.map("".join) | _PIECES.map(" ".join))
def test_any_text_is_a_condition_or_a_mistake(text: str) -> None:
    with contextlib.suppress(ConditionError):
        tree = parse_condition(text)
        assert tree is None or parse_condition(str(tree)) == tree


@given(_PIECES.map(" ".join), st.booleans())
def test_a_condition_at_the_beginning_takes_some_words(text: str, alone: bool) -> None:
    try:
        words = split_line(text)
        _, used = parse_words(words, alone=alone)
    except (LineError, ConditionError):
        return
    assert 0 < used <= len(words)
