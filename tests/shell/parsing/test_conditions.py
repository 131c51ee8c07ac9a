"""Names in trees of conditions."""

from __future__ import annotations

from qmf_shell.parsing.condition_parser import parse_condition
from qmf_shell.parsing.conditions import (
    truthy_names,
    value_names,
)

from qmf.views.conditions.words import split_line


def test_names_come_in_order() -> None:
    condition, _ = parse_condition(split_line("a > 1 or not (b = x and c)"))
    assert list(value_names(condition)) == ["a", "b", "c"]


def test_names_that_stand_alone() -> None:
    condition, _ = parse_condition(split_line("a > 1 or not (b = x and c) or d"))
    assert list(truthy_names(condition)) == ["c", "d"]
