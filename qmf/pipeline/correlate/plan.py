"""What the rules read: the tables of the lake, and which rules select rows of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from qmf.pipeline.correlate.expressions import columns_of
from qmf.pipeline.correlate.message_templates import unit_of
from qmf.pipeline.correlate.rules import RateRule, RatioRule, Rule, RuleError, RuleSelector, SelectedTable, ValueRule
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, LakeColumn
from qmf.pipeline.lake.delta_lake import RecordedClass, versions_of
from qmf.pipeline.lake.location import kind_path
from qmf.schema import Style


@attrs.frozen
class RuleInput:
    """A rule that reads a table, with its number and the indexes of those selectors that select rows of the table."""

    number: int
    rule: Rule
    roles: tuple[int, ...]


@attrs.frozen(kw_only=True)
class InputTable:
    """A table of the lake, with the versions of its class (none for kinds without one), and the rules that read it."""

    path: str
    kind: RowKind
    versions: tuple[ClassVersion, ...] = ()
    inputs: tuple[RuleInput, ...] = ()

    @property
    def columns(self) -> dict[str, LakeColumn]:
        """The columns of its class, by name in lower case."""
        return {column.name.lower(): column for version in self.versions for column in version.columns}


@attrs.frozen
class ReadPlan:
    """What is read for some rules."""

    tables: tuple[InputTable, ...]  #: that rules read
    #: the tables of the classes that rules follow references to, by the class as the rules name it
    followed: Mapping[str, tuple[InputTable, ...]]
    missing: tuple[str, ...]  #: a message for each class that the lake doesn't have yet
    complete: tuple[bool, ...]  #: for each rule, whether the lake has all its classes
    #: what is wrong, by the number of the rule, which reads nothing then: several packages have its class
    errors: Mapping[int, str] = attrs.field(factory=dict)

    @property
    def followed_paths(self) -> frozenset[str]:
        """The tables of followed objects."""
        return frozenset(table.path for tables in self.followed.values() for table in tables)

    @property
    def following_paths(self) -> frozenset[str]:
        """The tables that rules read which follow references."""
        return frozenset(table.path for table in self.tables if any(item.rule.follow for item in table.inputs))

    def tables_of(self, number: int) -> list[InputTable]:
        """The tables that a rule reads."""
        return [table for table in self.tables if any(item.number == number for item in table.inputs)]


def read_plan(rules: Sequence[Rule], known: Sequence[RecordedClass], where: str = "the lake") -> ReadPlan:
    """Find out what to read of the known class versions; `where` says for messages where these are from."""
    found: dict[str, InputTable] = {}
    roles: dict[str, dict[int, list[int]]] = {}
    errors: dict[int, str] = {}
    followed: dict[str, tuple[InputTable, ...]] = {}
    missing: list[tuple[str, str]] = []
    complete: list[bool] = []
    for number, rule in enumerate(rules):
        before = len(missing)
        tables: list[list[InputTable]] = []
        try:
            tables = [list(_tables(rule, selector, known, missing)) for selector in rule.selectors]
            for name in rule.follow.values():
                package, _, plain = name.rpartition(":")
                selector = RuleSelector(source=SelectedTable.SAMPLES, package=package or None, name=plain)
                followed[name] = tuple(_tables(rule, selector, known, missing))
        except RuleError as error:
            errors[number], tables = str(error), []
        for role, own in enumerate(tables):
            for table in own:
                found.setdefault(table.path, table)
                roles.setdefault(table.path, {}).setdefault(number, []).append(role)
        complete.append(len(missing) == before)
    inputs = (
        attrs.evolve(table, inputs=tuple(RuleInput(n, rules[n], tuple(own)) for n, own in sorted(roles[path].items())))
        for path, table in sorted(found.items())
    )
    texts = tuple(f"{name}: {where} has no {what} yet" for name, what in dict.fromkeys(missing))
    return ReadPlan(tuple(inputs), followed, texts, tuple(complete), errors)


def _tables(
    rule: Rule, selector: RuleSelector, known: Sequence[RecordedClass], missing: list[tuple[str, str]]
) -> Iterable[InputTable]:
    kind = selector.source.kind
    if not selector.source.has_class:
        return [InputTable(path=kind_path(kind), kind=kind)]
    events = selector.source is SelectedTable.EVENTS
    own = [item for item in known if item.version.event is events]
    assert selector.name is not None
    name = selector.name.lower()
    if not any(item.version.name.lower() == name and selector.package in (None, item.version.package) for item in own):
        missing.append((rule.name, f"{'event' if events else 'class'} {selector.class_text}"))
        return []
    try:
        versions = versions_of([item.version for item in own], selector.package, selector.name)
    except LakeError as error:
        raise RuleError(f"{rule.where('event' if events else 'class')}: {error}") from error
    paths: dict[str, list[ClassVersion]] = {}
    for item in own:
        if item.version in versions:
            paths.setdefault(item.table, []).append(item.version)
    return [InputTable(path=path, kind=kind, versions=tuple(found)) for path, found in paths.items()]


def complete_rules(rules: Sequence[Rule], plan: ReadPlan) -> tuple[Rule, ...]:
    """The rules with what the schema says where they don't: whether values are counters, and their unit."""
    return tuple(_complete_rule(rule, plan.tables_of(number)) for number, rule in enumerate(rules))


def _complete_rule(rule: Rule, tables: Sequence[InputTable]) -> Rule:
    columns = {name: column for table in tables for name, column in table.columns.items()}
    if isinstance(rule, RateRule) and rule.counter is None:
        plain = columns.get(rule.value.lower())
        rule = attrs.evolve(rule, counter=plain is not None and plain.style is Style.COUNT)
    if rule.unit is None:
        rule = attrs.evolve(rule, unit=_unit(rule, columns))
    return rule


def _unit(rule: Rule, columns: Mapping[str, LakeColumn]) -> str:
    """The unit of a rule's value, where all of its columns have the same."""
    if isinstance(rule, RatioRule):
        return "ratio"
    if not isinstance(rule, ValueRule):
        return "number"
    units = {columns[name[-1].lower()].unit for name in columns_of(rule.value) if name[-1].lower() in columns}
    return unit_of(units.pop() if len(units) == 1 else None, per_second=isinstance(rule, RateRule))
