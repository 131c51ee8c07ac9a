"""Rows of the lake as signals for rules: all conditions, values and keys are computed by Spark, in one pass per class.

What a rule looks at is a struct per row, null where the row is none of its business; a row that several rules look at
gives several signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.correlate.detectors import EVENT, GONE, MATCHING, OTHER
from qmf.pipeline.correlate.evaluation import SIGNAL
from qmf.pipeline.correlate.message_templates import BASE
from qmf.pipeline.correlate.rule_file import RuleError, template_fields
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    RateRule,
    RowSource,
    Rule,
    Selector,
    SequenceRule,
    ThresholdRule,
)
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.spark import catalog
from qmf.schema import Style

_TYPES: Mapping[str, T.DataType] = {
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
}

#: The schema of signals.
SCHEMA = T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in SIGNAL])


@attrs.frozen(order=True)
class InputTable:
    """A table of the lake that rules look at.

    Attributes:
        kind: of its rows.
        package, name: of the class; empty for kinds without one.
    """

    kind: str
    package: str = ""
    name: str = ""


@attrs.frozen
class RuleInput:
    """A rule looks at a table, in one role of its selectors or more."""

    number: int
    rule: Rule
    roles: tuple[int, ...]


@attrs.frozen
class ReadPlan:
    """What is read for some rules.

    Attributes:
        file: of the rules, for messages.
        uses: who looks at which table.
        tables: versions of the classes.
        missing: what the lake doesn't know yet, in words.
    """

    file: str
    uses: Mapping[InputTable, Sequence[RuleInput]]
    tables: Mapping[InputTable, Sequence[ClassVersion]]
    missing: Sequence[str]


def plan(rules: Sequence[Rule], known: Sequence[ClassVersion], file: str) -> ReadPlan:
    """Find out what to read.

    Args:
        rules: to follow.
        known: class versions of the lake.
        file: of the rules.

    Raises:
        RuleError: several packages have a class, or versions disagree about a type.
    """
    uses: dict[InputTable, dict[int, list[int]]] = {}
    tables: dict[InputTable, list[ClassVersion]] = {}
    missing: list[str] = []
    for number, rule in enumerate(rules):
        for role, selector in enumerate(rule.selectors):
            for read, of in _reads(rule, selector, known, file, missing):
                tables[read] = of
                uses.setdefault(read, {}).setdefault(number, []).append(role)
    return ReadPlan(
        file,
        {
            read: [RuleInput(number, rules[number], tuple(roles)) for number, roles in sorted(found.items())]
            for read, found in sorted(uses.items())
        },
        tables,
        missing,
    )


class SignalBuilder:
    """Makes signals of rows; what a table's rows are to the rules is worked out once."""

    def __init__(self, what: ReadPlan, late: int) -> None:
        """Take a plan.

        Args:
            what: the plan.
            late: ns, see `times`.
        """
        self.plan = what
        self._late = late
        self._columns: dict[InputTable, Column] = {}

    def of(self, frame: DataFrame, read: InputTable) -> DataFrame:
        """The signals that a table's rows give.

        Args:
            frame: rows of the table.
            read: which table that is.

        Returns:
            `SCHEMA`, unsorted.

        Raises:
            RuleError: an expression is wrong, names file, rule and key.
        """
        column = self._columns.get(read)
        if column is None:
            believed = F.col("_ts_ns").between(F.col("_received_ns") - F.lit(self._late), F.col("_received_ns"))
            at = F.when(believed, F.col("_ts_ns")).otherwise(F.col("_received_ns"))
            structs = [_struct(frame, use, read, self.plan, at) for use in self.plan.uses[read]]
            column = self._columns[read] = F.filter(F.array(*structs), lambda item: item.isNotNull())
        return frame.select(F.explode(column).alias("s")).select("s.*").select(*SCHEMA.fieldNames())


def _reads(
    rule: Rule, selector: Selector, known: Sequence[ClassVersion], file: str, missing: list[str]
) -> list[tuple[InputTable, list[ClassVersion]]]:
    if selector.source is RowSource.HEARTBEATS:
        reads = [InputTable(RowKind.HEARTBEATS.value)]
        # Leave is taken in another table.
        if isinstance(rule, AbsenceRule) and not rule.goodbye:
            reads.append(InputTable(RowKind.AGENTS.value))
        return [(read, []) for read in reads]
    events = selector.source is RowSource.EVENTS
    own = [table for table in known if table.event is events]
    assert selector.name is not None
    if not any(
        table.name.lower() == selector.name.lower() and selector.package in (None, table.package) for table in own
    ):
        missing.append(f"{rule.name}: the lake knows no {'event' if events else 'class'} {selector.class_text} yet")
        return []
    try:
        of = catalog.versions_of(own, selector.package, selector.name)
        catalog.kind_schema(RowKind.EVENTS if events else RowKind.OBJECTS, of)
    except LakeError as error:
        raise RuleError(f"{file}: {rule.name}: {error}") from error
    kind = RowKind.EVENTS if events else RowKind.OBJECTS
    return [(InputTable(kind.value, of[0].package, of[0].name), of)]


def _struct(frame: DataFrame, use: RuleInput, read: InputTable, what: ReadPlan, at: Column) -> Column:
    """One rule's signal of a row, or null."""
    rule, of = use.rule, what.tables[read]
    compile_ = ExpressionCompiler(frame, what.file, rule)
    selectors = [rule.selectors[role] for role in use.roles]
    fits = [_fits(selector, compile_, read, of) for selector in selectors]
    role: Column = F.lit(0)
    value: Column = F.lit(None)
    wanted = fits[0]
    agent, object_ = F.col("_agent"), F.col("_object") if "_object" in frame.columns else F.lit(None).cast("string")
    parts = [agent, object_]
    is_sample = read.kind == RowKind.OBJECTS.value
    deleted = F.coalesce(F.col("_delete_ns"), F.lit(0)) > 0 if is_sample else F.lit(False)
    match rule:
        case ThresholdRule() | RateRule():
            value = compile_("value", rule.value).cast("double")
            compile_.number("value", rule.value)
            present = value.isNotNull() & ~F.isnan(value)
            wanted = _alike(selectors[0], of) & (deleted | (fits[0] & present))
            role = F.when(deleted, F.lit(GONE)).otherwise(F.lit(0))
        case AbsenceRule():
            if read.kind == RowKind.AGENTS.value:
                wanted = wanted & (F.col("change") == "removed") & (F.col("reason") == "goodbye")
                role = F.lit(GONE)
            elif is_sample:
                wanted = _alike(selectors[0], of) & (deleted | (fits[0] & F.col("_statistics")))
                role = F.when(deleted, F.lit(GONE)).otherwise(F.lit(0))
            if rule.per_agent:
                parts = [agent]
                wanted = wanted & ~deleted
        case SequenceRule():
            role = F.lit(0)
            for number, fit in zip(use.roles, fits, strict=True):
                role = role + F.when(fit, F.lit(1 << number)).otherwise(F.lit(0))
            wanted = role > 0
            parts = [compile_("by", text) for text in rule.by]
        case CountRule():
            parts = [compile_("by", text) for text in rule.by]
        case JoinRule():
            identity = compile_("id", rule.object_id if is_sample else rule.event_id)
            parts = [agent, identity] if rule.same_agent else [identity]
            if is_sample:
                state = F.when(F.coalesce(fits[0], F.lit(False)), F.lit(MATCHING)).otherwise(F.lit(OTHER))
                role = F.when(deleted, F.lit(GONE)).otherwise(state)
                wanted = _alike(selectors[0], of)
            else:
                role = F.lit(EVENT)
            wanted = wanted & identity.isNotNull()
    event = read.kind == RowKind.EVENTS.value
    columns = {
        "rule": F.lit(use.number),
        "key": F.concat_ws("\n", *(F.coalesce(part.cast("string"), F.lit("")) for part in parts)),
        "at": at,
        "ts": F.col("_ts_ns"),
        "run": F.col("_run"),
        "seq": F.col("_seq"),
        "epoch": F.col("_epoch"),
        "role": role,
        "value": value,
        "ident": _ident(of) if event else F.lit(None),
        "agent": agent,
        "object": object_,
        "fields": _fields(rule, of, what),
    }
    return F.when(wanted, F.struct(*(columns[f.name].cast(f.dataType).alias(f.name) for f in SCHEMA)))


class ExpressionCompiler:
    """Makes columns of a rule's expressions, and tells of those that are wrong."""

    def __init__(self, frame: DataFrame, file: str, rule: Rule) -> None:
        self._frame = frame
        self._where = f"{file}: {rule.name}"

    def __call__(self, key: str, text: str) -> Column:
        """The column of an expression."""
        try:
            column = F.expr(text)
            self._frame.select(column)
        except (AnalysisException, ParseException) as error:
            raise RuleError(f"{self._where}: {key}: {text!r}: {_short(error)}") from error
        return column

    def number(self, key: str, text: str) -> None:
        """Insist that it is a number."""
        kind = self._frame.select(F.expr(text)).schema[0].dataType
        if not isinstance(kind, T.NumericType | T.BooleanType):
            raise RuleError(f"{self._where}: {key}: {text!r} is no number but {kind.simpleString()}")

    def condition(self, text: str) -> Column:
        """The column of a condition; null counts as false."""
        column = self("where", text)
        kind = self._frame.select(column).schema[0].dataType
        if not isinstance(kind, T.BooleanType):
            raise RuleError(f"{self._where}: where: {text!r} is no condition but {kind.simpleString()}")
        return F.coalesce(column, F.lit(False))


def _short(error: Exception) -> str:
    """The first sentence of what Spark says."""
    text = str(error).strip().split("\n", 1)[0]
    return text.partition(" SQLSTATE")[0]


def _fits(selector: Selector, compile_: ExpressionCompiler, read: InputTable, of: Sequence[ClassVersion]) -> Column:
    found = _alike(selector, of)
    if selector.where is not None and read.kind != RowKind.AGENTS.value:
        found = found & compile_.condition(selector.where)
    return found


def _alike(selector: Selector, of: Sequence[ClassVersion]) -> Column:
    """Agent and object have names that fit."""
    found = F.lit(True)
    for name, pattern in (("_agent", selector.agent), ("_object", selector.object if of else None)):
        if pattern is not None:
            found = found & F.coalesce(_like(F.col(name), pattern), F.lit(False))
    return found


def _like(column: Column, pattern: str) -> Column:
    if "*" not in pattern and "?" not in pattern:
        return column == pattern
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return column.like(escaped.replace("*", "%").replace("?", "_"))


def _ident(of: Sequence[ClassVersion]) -> Column:
    """The same for an event that was recorded twice."""
    columns = sorted({column.name for table in of for column in table.columns})
    return F.xxhash64("_agent", "_epoch", "_ts_ns", *columns)


def _fields(rule: Rule, of: Sequence[ClassVersion], what: ReadPlan) -> Column:
    """The columns that message and evidence want, as JSON; null where this table has none of them."""
    wanted = [*(name for name in template_fields(rule.message or "") if name not in BASE), *rule.evidence]
    everywhere = {column.name for tables in what.tables.values() for table in tables for column in table.columns}
    for name in wanted:
        if name not in everywhere and not what.missing:
            key = "evidence" if name in rule.evidence else "message"
            raise RuleError(f"{what.file}: {rule.name}: {key}: no class of the rule has a {name!r}")
    own = {column.name for table in of for column in table.columns}
    found = [F.col(name) for name in dict.fromkeys(wanted) if name in own]
    return F.to_json(F.struct(*found)) if found else F.lit(None)


def with_counters(rules: Sequence[Rule], what: ReadPlan) -> tuple[Rule, ...]:
    """The rules, those about rates knowing from the schema whether their value is a counter."""
    made: list[Rule] = []
    for number, rule in enumerate(rules):
        if isinstance(rule, RateRule) and rule.counter is None:
            own = [read for read, uses in what.uses.items() if any(use.number == number for use in uses)]
            columns = [column for read in own for table in what.tables[read] for column in table.columns]
            counts = any(column.name == rule.value and column.style is Style.COUNT for column in columns)
            rule = attrs.evolve(rule, counter=counts)
        made.append(rule)
    return tuple(made)
