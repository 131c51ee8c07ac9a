"""Filters of queries: what is sent to agents, and what the console tests."""

from __future__ import annotations

from typing import Any

import pytest
from console.aio.objects.remotes import AGENT, FIELDS, remote
from support.scripted_agent import part, widget

from qmf.console.aio.objects.object_query import compile_filter
from qmf.errors import ConstraintError, NotFoundError
from qmf.protocol import ObjectId


def test_an_equality_filter_sends_only_what_texts_can_not_get_wrong() -> None:
    sent, _ = compile_filter({"name": "w", "enabled": True, "level": 5, "turns": 1.5, "delaySamples": 2}, [FIELDS])
    assert sent == [
        "and",
        ["eq", "name", ["quote", "w"]],
        ["eq", "enabled", ["quote", True]],
        ["eq", "level", ["quote", 5]],
        ["eq", "delayCount", ["quote", 2]],
    ]
    assert compile_filter({"name": "w", "level": 5}, [])[0] == ["and", ["eq", "name", ["quote", "w"]]]
    assert compile_filter({"turns": 1.5}, [FIELDS])[0] == ()


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        (None, True),
        ({}, True),
        ([], True),
        ({"name": "w"}, True),
        ({"name": "v"}, False),
        ({"enabled": True}, True),
        ({"enabled": 1}, False),
        ({"level": 5.0}, True),
        ({"label": None}, True),
        ({"parent": ObjectId("p")}, True),
        ({"parent": ObjectId("p", AGENT)}, True),
        ({"parent": ObjectId("p", "other")}, False),
        ({"parent": remote(part("p", {}))}, True),
        (["eq", "level", ["quote", "5"]], True),
        (["not", ["exists", "label"]], True),
        (("gt", "level", ("quote", 5)), False),
    ],
)
def test_filters_are_applied_here(where: object, fits: bool) -> None:
    _, test = compile_filter(where, [FIELDS])  # type: ignore[arg-type]
    assert test(remote(widget("w", parent=ObjectId("p")))) is fits


@pytest.mark.parametrize("where", ["name", ["eq", "name"], ["frobnicate"], 5, [["a"]]])
def test_what_is_no_filter_is_refused(where: object) -> None:
    with pytest.raises(ConstraintError, match="where"):
        compile_filter(where, [])  # type: ignore[arg-type]


def test_re_match_is_not_sent_but_applied() -> None:
    sent, test = compile_filter(["and", ["re_match", "name", ["quote", "^w"]]], [])
    assert sent == ()
    assert test(remote(widget("w")))
    assert not test(remote(widget("v")))
    quoted = ["eq", "name", ["quote", "re_match"]]
    assert compile_filter(quoted, [])[0] == quoted


@pytest.mark.parametrize(
    "where",
    [
        {"levle": 5},
        ["eq", "levle", ["quote", 5]],
        ["not", ["and", ["true"], ["gt", ["quote", 5], "levle"]]],
        ["or", ["re_match", "levle", ["quote", "5"]], ["exists", "label"]],
    ],
)
def test_values_that_the_class_does_not_have_are_refused(where: Any) -> None:
    with pytest.raises(NotFoundError, match=r"^no value of widget 'levle'; did you mean level\b"):
        compile_filter(where, [FIELDS])
    compile_filter(where, [])  # a class that is not known yet


def test_a_value_that_need_not_exist() -> None:
    assert compile_filter(["exists", "levle"], [FIELDS]) is not None
