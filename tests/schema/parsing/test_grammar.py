"""The grammar agrees with the rules in Python, so that one of them never hides what the other finds."""

from __future__ import annotations

from importlib import resources

import pytest
from lxml import etree

from qmf.schema import TYPES, Access, Direction, Severity, Style
from qmf.schema.parsing.document import parse
from qmf.schema.parsing.grammar import report_values
from qmf.schema.parsing.problems import ProblemCollector

GRAMMAR = etree.fromstring(resources.files("qmf.schema.parsing").joinpath("grammar.xsd").read_bytes())
XS = {"xs": "http://www.w3.org/2001/XMLSchema"}


def enumerated(type_name: str) -> list[str | None]:
    return [item.get("value") for item in GRAMMAR.iterfind(f"xs:simpleType[@name='{type_name}']//xs:enumeration", XS)]


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        ("directType", {name for name, item in TYPES.items() if item.style is Style.DIRECT}),
        ("counterType", {name for name, item in TYPES.items() if item.style is not Style.DIRECT}),
        ("access", {item.value for item in Access}),
        ("direction", {item.value for item in Direction}),
        ("severity", {item.schema_name for item in Severity}),
        ("flag", {"y", "n", "true", "false", "1", "0"}),
    ],
)
def test_values_are_the_same_as_in_python(type_name: str, values: set[str]) -> None:
    found = enumerated(type_name)
    assert len(found) == len(values)
    assert set(found) == values


BAD_VALUES = [
    '<property name="p" type="uint7"/>',
    '<property name="p" type="count8"/>',
    '<property name="2" type="bool"/>',
    '<property name="p" type="bool" index="Y"/>',
    '<property name="p" type="bool" access="WO"/>',
    '<statistic name="s" type="uint7"/>',
]


@pytest.mark.parametrize("element", BAD_VALUES)
def test_bad_values_are_refused_by_the_grammar_too(element: str) -> None:
    problems = report_of(element)
    report_values(problems)
    assert [problem.line for problem in problems.errors] == [2]


@pytest.mark.parametrize("element", BAD_VALUES)
def test_but_reported_by_it_only_where_the_rules_reported_nothing(element: str) -> None:
    problems = report_of(element)
    problems.error(problems.document.root[0][0], "reported by a rule")
    report_values(problems)
    assert [problem.message for problem in problems.errors] == ["reported by a rule"]


def report_of(element: str) -> ProblemCollector:
    return ProblemCollector(parse(f'<schema package="p"><class name="A">\n{element}</class></schema>'.encode(), "f"))
