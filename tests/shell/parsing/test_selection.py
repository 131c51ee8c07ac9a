"""Selections: ids, conditions, order, columns, limit."""

from __future__ import annotations

import pytest
from qmf_shell.parsing.selection import ParsedSelection, SelectionError, SortKey, parse_selection

from qmf.views.conditions.tree import And, Comparison, Operator, Search
from qmf.views.conditions.words import split_line

A = Comparison("a", Operator.GT, "1")


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("", ParsedSelection()),
        ("101 /a 104-110", ParsedSelection(ids=("101", "/a", "104-110"))),
        ("active", ParsedSelection(active=True)),
        ("'active'", ParsedSelection(ids=("active",))),
        ("where a > 1", ParsedSelection(where=A)),
        ("WHERE a > 1 SORT b", ParsedSelection(where=A, sort_keys=(SortKey("b"),))),
        ("sort by a desc, b asc c", ParsedSelection(sort_keys=(SortKey("a", True), SortKey("b"), SortKey("c")))),
        ("sort a desc", ParsedSelection(sort_keys=(SortKey("a", True),))),
        ("sort by", ParsedSelection(sort_keys=(SortKey("by"),))),
        ("columns a,b , c limit 5", ParsedSelection(columns=("a", "b", "c"), limit=5)),
        ("where a > 1 purge limit 5", ParsedSelection(where=And((A, Search("purge"))), limit=5)),
        ("where 'limit' limit 5", ParsedSelection(where=Search("limit"), limit=5)),
        ("limit 5 where a > 1 active", ParsedSelection(limit=5, where=A, active=True)),
    ],
)
def test_selections(text: str, selection: ParsedSelection) -> None:
    assert parse_selection(split_line(text)) == selection


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("where", "where needs a condition"),
        ("sort", "sort needs the name"),
        ("columns", "columns needs names"),
        ("limit", "limit needs a number"),
        ("limit x", "limit needs a number"),
        ("limit 1 2", "limit needs a number"),
        ("active 101", "'101' in column 8"),
        ("limit 1 limit 2", "limit is given twice"),
        ("where limit 5", "where needs a condition"),
    ],
)
def test_wrong_selections(text: str, part: str) -> None:
    with pytest.raises(SelectionError, match=part.replace("(", r"\(")):
        parse_selection(split_line(text))
