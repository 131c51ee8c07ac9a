"""What the rules read: the tables of the lake, and which rules select rows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.correlate.rule_table import RuleError
from qmf.pipeline.correlate.rules import AbsenceRule, RateRule, RowSource, Rule, Selector
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import versions_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.spark import catalog
from qmf.schema import Style


@attrs.frozen(order=True)
class InputTable:
    """A table of the lake that rules read.

    Attributes:
        kind: name of its kind of rows.
        package, name: of the class; empty for kinds without one.
    """

    kind: str
    package: str = ""
    name: str = ""

    @property
    def row_kind(self) -> RowKind:
        """Its kind of rows."""
        return RowKind(self.kind)


@attrs.frozen
class RuleInput:
    """A rule that reads a table.

    Attributes:
        number: of the rule.
        rule: the rule.
        roles: indexes of its selectors that select rows of the table.
    """

    number: int
    rule: Rule
    roles: tuple[int, ...]


@attrs.frozen
class ReadPlan:
    """What is read for some rules.

    Attributes:
        file: of the rules, for messages.
        inputs: the rules that read each table.
        versions: of each table's class.
        missing: a message for each class that the lake doesn't have yet.
    """

    file: str
    inputs: Mapping[InputTable, Sequence[RuleInput]]
    versions: Mapping[InputTable, Sequence[ClassVersion]]
    missing: Sequence[str]


def read_plan(rules: Sequence[Rule], known: Sequence[ClassVersion], file: str) -> ReadPlan:
    """Find out what to read.

    Args:
        rules: to evaluate.
        known: class versions of the lake.
        file: of the rules.

    Raises:
        RuleError: several packages have a class, or versions disagree about a type.
    """
    roles: dict[InputTable, dict[int, list[int]]] = {}
    versions: dict[InputTable, list[ClassVersion]] = {}
    missing: list[str] = []
    for number, rule in enumerate(rules):
        for role, selector in enumerate(rule.selectors):
            for table, own in _input_tables(rule, selector, known, file, missing):
                versions[table] = own
                roles.setdefault(table, {}).setdefault(number, []).append(role)
    inputs = {
        table: [RuleInput(number, rules[number], tuple(own)) for number, own in sorted(found.items())]
        for table, found in sorted(roles.items())
    }
    return ReadPlan(file, inputs, versions, missing)


def _input_tables(
    rule: Rule, selector: Selector, known: Sequence[ClassVersion], file: str, missing: list[str]
) -> list[tuple[InputTable, list[ClassVersion]]]:
    if selector.source is RowSource.HEARTBEATS:
        tables = [InputTable(RowKind.HEARTBEATS.value)]
        # Goodbyes are in another table.
        if isinstance(rule, AbsenceRule) and not rule.goodbye:
            tables.append(InputTable(RowKind.AGENTS.value))
        return [(table, []) for table in tables]
    events = selector.source is RowSource.EVENTS
    own = [version for version in known if version.event is events]
    assert selector.name is not None
    if not any(item.name.lower() == selector.name.lower() and selector.package in (None, item.package) for item in own):
        missing.append(f"{rule.name}: the lake has no {'event' if events else 'class'} {selector.class_text} yet")
        return []
    kind = RowKind.EVENTS if events else RowKind.OBJECTS
    try:
        versions = versions_of(own, selector.package, selector.name)
        catalog.kind_schema(kind, versions)
    except LakeError as error:
        raise RuleError(f"{file}: {rule.name}: {error}") from error
    return [(InputTable(kind.value, versions[0].package, versions[0].name), versions)]


def with_counters(rules: Sequence[Rule], plan: ReadPlan) -> tuple[Rule, ...]:
    """The rules; where a rate rule doesn't specify whether its value is a counter, the schema decides."""
    found: list[Rule] = []
    for number, rule in enumerate(rules):
        if isinstance(rule, RateRule) and rule.counter is None:
            tables = [table for table, inputs in plan.inputs.items() if any(item.number == number for item in inputs)]
            columns = [column for table in tables for version in plan.versions[table] for column in version.columns]
            is_counter = any(column.name == rule.value and column.style is Style.COUNT for column in columns)
            rule = attrs.evolve(rule, counter=is_counter)
        found.append(rule)
    return tuple(found)
