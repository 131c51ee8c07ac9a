"""Rows of the lake as signals for rules: Spark computes all conditions, values and keys, in one pass per table.

The signal of a rule is a struct, null for rows that the rule doesn't select; a row that several rules select gives
several signals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.correlate.detectors import EVENT, GONE, MATCHING, OTHER
from qmf.pipeline.correlate.evaluation import SIGNAL_COLUMNS
from qmf.pipeline.correlate.expressions import ExpressionCompiler, matches_pattern
from qmf.pipeline.correlate.message_templates import BUILT_IN_FIELDS, template_fields
from qmf.pipeline.correlate.plan import InputTable, ReadPlan, RuleInput
from qmf.pipeline.correlate.rule_table import RuleError
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    RateRule,
    Rule,
    Selector,
    SequenceRule,
    ThresholdRule,
)
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion

_SPARK_TYPES: Mapping[str, T.DataType] = {
    "int32": T.IntegerType(),
    "int64": T.LongType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
}

#: The Spark schema of signals.
SIGNAL_SCHEMA = T.StructType([T.StructField(name, _SPARK_TYPES[type]) for name, type in SIGNAL_COLUMNS])


class SignalBuilder:
    """Makes signals from rows; the columns of each table are made once."""

    def __init__(self, plan: ReadPlan, late: int) -> None:
        """Make a builder.

        Args:
            plan: what the rules read.
            late: ns that rows may be late, see `event_time`.
        """
        self.plan = plan
        self._late = late
        self._columns: dict[InputTable, Column] = {}

    def signals(self, frame: DataFrame, table: InputTable) -> DataFrame:
        """The signals of a table's rows.

        Args:
            frame: rows of the table.
            table: which table that is.

        Returns:
            `SIGNAL_SCHEMA`, unsorted.

        Raises:
            RuleError: an expression is wrong.
        """
        column = self._columns.get(table)
        if column is None:
            can_be_right = F.col("_ts_ns").between(F.col("_received_ns") - F.lit(self._late), F.col("_received_ns"))
            at = F.when(can_be_right, F.col("_ts_ns")).otherwise(F.col("_received_ns"))
            structs = [_signal(frame, item, table, self.plan, at) for item in self.plan.inputs[table]]
            column = self._columns[table] = F.filter(F.array(*structs), lambda item: item.isNotNull())
        return frame.select(F.explode(column).alias("s")).select("s.*").select(*SIGNAL_SCHEMA.fieldNames())


@attrs.frozen(kw_only=True)
class _RuleColumns:
    """The columns of a signal that depend on the kind of its rule.

    Attributes:
        selected: the row gives a signal.
        key: parts of the subject's key.
        role: of the signal.
        value: of the rule's expression; null for rules without one.
    """

    selected: Column
    key: Sequence[Column]
    role: Column
    value: Column


class _Rows:
    """The rows of a table as one rule sees them: columns that `_RuleColumns` are made from."""

    def __init__(self, frame: DataFrame, rule_input: RuleInput, table: InputTable, plan: ReadPlan) -> None:
        rule = rule_input.rule
        self.compiler = ExpressionCompiler(frame, plan.file, rule)
        self.roles = rule_input.roles
        self.versions = plan.versions[table]
        self.is_sample = table.row_kind is RowKind.OBJECTS
        self.is_goodbye = table.row_kind is RowKind.AGENTS
        self.agent = F.col("_agent")
        self.object = F.col("_object") if "_object" in frame.columns else F.lit(None).cast("string")
        self.deleted = F.coalesce(F.col("_delete_ns"), F.lit(0)) > 0 if self.is_sample else F.lit(False)
        selectors = [rule.selectors[role] for role in self.roles]
        #: For each role: agent and object have the names that are wanted.
        self.named = [self._named(selector) for selector in selectors]
        #: For each role: the row is selected.
        self.selected = [self._selected(*item) for item in zip(selectors, self.named, strict=True)]

    def _named(self, selector: Selector) -> Column:
        found = F.lit(True)
        if selector.agent is not None:
            found = found & matches_pattern(F.col("_agent"), selector.agent)
        if selector.object is not None and self.versions:
            found = found & matches_pattern(F.col("_object"), selector.object)
        return found

    def _selected(self, selector: Selector, named: Column) -> Column:
        if selector.where is None or self.is_goodbye:
            return named
        return named & self.compiler.condition(selector.where)


def _limit_columns(rule: ThresholdRule | RateRule, rows: _Rows) -> _RuleColumns:
    value = rows.compiler.number("value", rule.value)
    present = value.isNotNull() & ~F.isnan(value)
    return _RuleColumns(
        selected=rows.named[0] & (rows.deleted | (rows.selected[0] & present)),
        key=(rows.agent, rows.object),
        role=F.when(rows.deleted, F.lit(GONE)).otherwise(F.lit(0)),
        value=value,
    )


def _absence_columns(rule: AbsenceRule, rows: _Rows) -> _RuleColumns:
    selected, role = rows.selected[0], F.lit(0)
    if rows.is_goodbye:
        selected = selected & (F.col("change") == "removed") & (F.col("reason") == "goodbye")
        role = F.lit(GONE)
    elif rows.is_sample:
        selected = rows.named[0] & (rows.deleted | (selected & F.col("_statistics")))
        role = F.when(rows.deleted, F.lit(GONE)).otherwise(F.lit(0))
    if rule.per_agent:
        return _RuleColumns(selected=selected & ~rows.deleted, key=(rows.agent,), role=role, value=F.lit(None))
    return _RuleColumns(selected=selected, key=(rows.agent, rows.object), role=role, value=F.lit(None))


def _sequence_columns(rule: SequenceRule, rows: _Rows) -> _RuleColumns:
    role = F.lit(0)
    for number, selected in zip(rows.roles, rows.selected, strict=True):
        role = role + F.when(selected, F.lit(1 << number)).otherwise(F.lit(0))
    return _RuleColumns(selected=role > 0, key=_group(rule.by, rows), role=role, value=F.lit(None))


def _count_columns(rule: CountRule, rows: _Rows) -> _RuleColumns:
    return _RuleColumns(selected=rows.selected[0], key=_group(rule.by, rows), role=F.lit(0), value=F.lit(None))


def _join_columns(rule: JoinRule, rows: _Rows) -> _RuleColumns:
    identity = rows.compiler.column("id", rule.object_id if rows.is_sample else rule.event_id)
    selected, role = rows.selected[0], F.lit(EVENT)
    if rows.is_sample:
        state = F.when(F.coalesce(selected, F.lit(False)), F.lit(MATCHING)).otherwise(F.lit(OTHER))
        role = F.when(rows.deleted, F.lit(GONE)).otherwise(state)
        selected = rows.named[0]
    return _RuleColumns(
        selected=selected & identity.isNotNull(),
        key=(rows.agent, identity) if rule.same_agent else (identity,),
        role=role,
        value=F.lit(None),
    )


def _group(by: Sequence[str], rows: _Rows) -> list[Column]:
    return [rows.compiler.column("by", text) for text in by]


_RULE_COLUMNS: Mapping[type[Rule], Callable[..., _RuleColumns]] = {
    ThresholdRule: _limit_columns,
    RateRule: _limit_columns,
    AbsenceRule: _absence_columns,
    SequenceRule: _sequence_columns,
    CountRule: _count_columns,
    JoinRule: _join_columns,
}


def _signal(frame: DataFrame, rule_input: RuleInput, table: InputTable, plan: ReadPlan, at: Column) -> Column:
    """One rule's signal of a row, or null."""
    rows = _Rows(frame, rule_input, table, plan)
    own = _RULE_COLUMNS[type(rule_input.rule)](rule_input.rule, rows)
    columns = {
        "rule": F.lit(rule_input.number),
        "key": F.concat_ws("\n", *(F.coalesce(part.cast("string"), F.lit("")) for part in own.key)),
        "at": at,
        "ts": F.col("_ts_ns"),
        "run": F.col("_run"),
        "seq": F.col("_seq"),
        "epoch": F.col("_epoch"),
        "role": own.role,
        "value": own.value,
        "ident": _event_identity(rows.versions) if table.row_kind is RowKind.EVENTS else F.lit(None),
        "agent": rows.agent,
        "object": rows.object,
        "fields": _fields(rule_input.rule, rows.versions, plan),
    }
    return F.when(own.selected, F.struct(*(columns[f.name].cast(f.dataType).alias(f.name) for f in SIGNAL_SCHEMA)))


def _event_identity(versions: Sequence[ClassVersion]) -> Column:
    """A hash that is the same for an event that was recorded twice."""
    columns = sorted({column.name for version in versions for column in version.columns})
    return F.xxhash64("_agent", "_epoch", "_ts_ns", *columns)


def _fields(rule: Rule, versions: Sequence[ClassVersion], plan: ReadPlan) -> Column:
    """The columns for message and evidence, as JSON; null where this table has none of them."""
    wanted = [*(name for name in template_fields(rule.message or "") if name not in BUILT_IN_FIELDS), *rule.evidence]
    everywhere = {column.name for own in plan.versions.values() for version in own for column in version.columns}
    for name in wanted:
        if name not in everywhere and not plan.missing:
            key = "evidence" if name in rule.evidence else "message"
            raise RuleError(f"{plan.file}: {rule.name}: {key}: no class of the rule has a {name!r}")
    own = {column.name for version in versions for column in version.columns}
    found = [F.col(name) for name in dict.fromkeys(wanted) if name in own]
    return F.to_json(F.struct(*found)) if found else F.lit(None)
