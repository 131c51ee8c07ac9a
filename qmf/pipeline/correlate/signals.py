"""Rows of the lake as signals for rules: SQL for DuckDB that computes conditions, values and keys. Pure.

A row that several rules select gives several signals. A row whose columns an expression needs and doesn't have, because
its version of the class lacks them, gives none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence

import attrs

from qmf.pipeline.correlate.detectors.base import GONE, OPEN
from qmf.pipeline.correlate.detectors.events import EVENT, MATCHING, OTHER
from qmf.pipeline.correlate.detectors.values import DIVIDEND, DIVISOR
from qmf.pipeline.correlate.expressions import columns_of, pattern_condition, to_duckdb
from qmf.pipeline.correlate.message_templates import BUILT_IN_FIELDS, template_fields, templates_of
from qmf.pipeline.correlate.plan import InputTable, RuleInput
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    Per,
    RatioRule,
    Rule,
    RuleSelector,
    SequenceRule,
    ValueRule,
)
from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.kinds import RowKind

#: The relation of the rows in a query, and in its place what they are read from.
ROWS, _SOURCE = "r", "qmf_source"

#: Columns of a signal, in order, with their types: rule, subject, then those of `Signal`.
SIGNAL_COLUMNS = (
    ("rule", "INTEGER"),
    ("key", "VARCHAR"),
    ("at", "BIGINT"),
    ("ts", "BIGINT"),
    ("run", "VARCHAR"),
    ("seq", "BIGINT"),
    ("epoch", "BIGINT"),
    ("role", "INTEGER"),
    ("value", "DOUBLE"),
    ("ident", "VARCHAR"),
    ("agent", "VARCHAR"),
    ("object", "VARCHAR"),
    ("fields", "VARCHAR"),
)


@attrs.frozen(kw_only=True)
class _RuleColumns:
    """What of a signal depends on the kind of its rule, as SQL."""

    selected: str  #: the row gives a signal
    key: Sequence[str]  #: parts of the subject's key
    role: str = "0"  #: of the signal
    value: str = "NULL"  #: of the rule's expression


class RowTable:
    """A table as one rule sees it: the signals of its rows as SQL, and the texts that these are made from."""

    def __init__(
        self,
        item: RuleInput,
        table: InputTable,
        names: Collection[str],
        late: int,
        relations: Mapping[str, str],
        *,
        tolerant: bool = False,
    ) -> None:
        """Make the texts of a rule for a table whose rows have some columns, and may be late.

        `relations` has for each reference that the rule follows the relation of the objects. If `tolerant`, rows for
        which an expression cannot be computed give no signal, instead of an error of the query.
        """
        self.item, self.table, self._late, self._relations, self._tolerant = item, table, late, relations, tolerant
        self.rule, self.roles = item.rule, item.roles
        self.names = {name.lower(): name for name in names}
        self.is_sample = table.kind is RowKind.OBJECTS
        self.is_heartbeat = table.kind is RowKind.HEARTBEATS
        self.agent = self.expression("_agent")
        self.object = self.expression("_object") if "_object" in self.names else "NULL"
        self.deleted = f"coalesce({ROWS}._delete_ns, 0) > 0" if self.is_sample else "false"
        selectors = [self.rule.selectors[role] for role in self.roles]
        #: For each role: agent and object have the names that are wanted.
        self.named = [self._name_condition(selector) for selector in selectors]
        #: For each role: the row is selected.
        self.selected = [
            named if selector.where is None else f"{named} AND coalesce({self.expression(selector.where)}, false)"
            for selector, named in zip(selectors, self.named, strict=True)
        ]

    def signals(self, source: str) -> str:
        """The signals of a relation with rows of the table, as SQL with `SIGNAL_COLUMNS`."""
        return self._signals.replace(f"FROM {_SOURCE})", f"FROM {source})")

    def count(self, source: str, expression: str) -> str:
        """The number of values of an expression, as SQL that fails where it cannot be computed for a row."""
        return f"SELECT count({self.expression(expression)}) FROM {self._join_followed(source)}"

    @functools.cached_property
    def _signals(self) -> str:
        own = next(make for kind, make in _RULE_COLUMNS.items() if isinstance(self.rule, kind))(self.rule, self)
        key = ", ".join(f"coalesce(CAST({part} AS VARCHAR), '')" for part in own.key)
        columns = {
            "rule": str(self.item.number),
            "key": f"concat_ws(chr(10), {key})" if key else "''",
            "at": f"{ROWS}._at",
            "ts": f"{ROWS}._ts_ns",
            "run": f"{ROWS}._run",
            "seq": f"{ROWS}._seq",
            "epoch": f"{ROWS}._epoch",
            "role": own.role,
            "value": own.value,
            "ident": self._event_identity() if self.table.kind is RowKind.EVENTS else "NULL",
            "agent": self.agent,
            "object": self.object,
            "fields": self._fields(),
        }
        cells = ", ".join(f"CAST({columns[name]} AS {type}) AS {quote_name(name)}" for name, type in SIGNAL_COLUMNS)
        return f"SELECT {cells} FROM {self._join_followed(_SOURCE)} WHERE ({own.selected}) AND {self._is_grouped()}"

    def _join_followed(self, source: str) -> str:
        """Rows with their time for rules, and the objects that the rule follows."""
        found = f"(SELECT *, {event_time_sql(self._late)} AS _at FROM {source}) AS {ROWS}"
        for reference in followed_columns(self.rule):
            name = self.names.get(reference.lower())
            if name is None or reference not in self._relations:
                continue
            alias, owner = quote_name(reference), self.names.get(f"{name}_agent".lower())
            agent = f"coalesce({ROWS}.{quote_name(owner)}, {ROWS}._agent)" if owner else f"{ROWS}._agent"
            found += (
                f" ASOF LEFT JOIN {self._relations[reference]} AS {alias}"
                f" ON {ROWS}.{quote_name(name)} = {alias}._object"
                f" AND {agent} = {alias}._agent AND {ROWS}._at >= {alias}._at"
            )
        return found

    def _event_identity(self) -> str:
        """A text that is the same for an event that was recorded twice."""
        own = sorted(self.names[name] for name in self.table.columns if name in self.names)
        columns = [quote_name(name) for name in ("_agent", "_epoch", "_ts_ns", *own)]
        parts = ", ".join(f"coalesce(CAST({ROWS}.{name} AS VARCHAR), '')" for name in columns)
        return f"md5(concat_ws(chr(31), {parts}))"

    def _fields(self) -> str:
        """The columns for texts and evidence, as JSON; null where this table has none of them."""
        found = []
        for name in field_names(self.rule):
            reference, dot, column = name.partition(".")
            if dot and reference.lower() in self.names:
                found.append(f"{text(name)}, {quote_name(reference)}.{quote_name(column)}")
            elif not dot and name.lower() in self.names:
                found.append(f"{text(name)}, {ROWS}.{quote_name(self.names[name.lower()])}")
        return f"json_object({', '.join(found)})" if found else "NULL"

    def expression(self, expression: str) -> str:
        """An expression of the rule."""
        return f"{'TRY' if self._tolerant else ''}({to_duckdb(expression, self.names, ROWS)})"

    def _is_grouped(self) -> str:
        """A condition: the expressions of the rule's groups could be computed."""
        groups = [to_duckdb(by, self.names, ROWS) for by in self.rule.grouped_by if self._tolerant]
        # One that is null is the group of an empty text.
        return " AND ".join(f"TRY(coalesce(CAST(({by}) AS VARCHAR), '')) IS NOT NULL" for by in groups) or "true"

    def number(self, expression: str) -> str:
        """An expression of the rule that is a number."""
        return f"CAST({self.expression(expression)} AS DOUBLE)"

    def _name_condition(self, selector: RuleSelector) -> str:
        # Of heartbeats, the rows of no agent are about all of them.
        found = [f"{ROWS}._agent IS NOT NULL" if self.is_heartbeat else "true"]
        if selector.agent is not None:
            found.append(pattern_condition(self.agent, selector.agent))
        if selector.object is not None:
            found.append(pattern_condition(self.object, selector.object))
        return " AND ".join(found)


def expressions_of(rule: Rule, roles: Collection[int]) -> list[tuple[str, str, str]]:
    """The expressions of a rule on rows of some roles: key, text, and what it must be (number, condition or value)."""
    found = [
        ("where", selector.where, "condition")
        for role, selector in enumerate(rule.selectors)
        if role in roles and selector.where is not None
    ]
    match rule:
        case ValueRule():
            found += [("value", rule.value, "number")]
        case RatioRule():
            for role, side in enumerate((rule.dividend, rule.divisor)):
                if role in roles:
                    found += [("value", side.value, "number"), ("id", side.id, "value")]
        case JoinRule():
            found += [("id", id, "value") for role, id in enumerate((rule.event_id, rule.object_id)) if role in roles]
        case _:
            pass
    return found + [("by", by, "value") for by in rule.grouped_by]


def field_names(rule: Rule) -> list[str]:
    """The columns for the texts and the evidence of a rule; those of followed objects with a dot."""
    templates = [name for template in templates_of(rule) for name in template_fields(template)]
    wanted = [*(name for name in templates if name not in BUILT_IN_FIELDS), *rule.evidence]
    return list(dict.fromkeys(wanted))


def followed_columns(rule: Rule) -> dict[str, list[str]]:
    """The columns of followed objects that a rule needs, by the reference."""
    names = [tuple(name.split(".")) for name in field_names(rule)]
    for _key, expression, _type in expressions_of(rule, range(len(rule.selectors))):
        names += columns_of(expression)
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if len(name) == 2:
            found.setdefault(name[0], []).append(name[1])
    return found


def event_time_sql(late: int) -> str:
    """The time of a row for rules, see `lake_rows`."""
    return f"CASE WHEN _ts_ns BETWEEN _received_ns - {late} AND _received_ns THEN _ts_ns ELSE _received_ns END"


def _value_columns(rule: ValueRule, rows: RowTable) -> _RuleColumns:
    value, key = rows.number(rule.value), [rows.expression(by) for by in rule.by]
    if rule.aggregate is None:
        key = key or [rows.agent, rows.object]
    return _RuleColumns(
        selected=f"{rows.named[0]} AND ({rows.deleted} OR ({rows.selected[0]} AND {_is_number(value)}))",
        key=key,
        role=f"CASE WHEN {rows.deleted} THEN {GONE} ELSE 0 END",
        value=value,
    )


def _ratio_columns(rule: RatioRule, rows: RowTable) -> _RuleColumns:
    role = DIVISOR if rows.roles == (DIVISOR,) else DIVIDEND
    side = rule.divisor if role == DIVISOR else rule.dividend
    value, identity = rows.number(side.value), rows.expression(side.id)
    usable = f"{rows.selected[0]} AND {_is_number(value)}"
    return _RuleColumns(
        selected=f"{rows.named[0]} AND {identity} IS NOT NULL AND ({rows.deleted} OR ({usable}))",
        key=[rows.agent, identity] if rule.same_agent else [identity],
        role=f"CASE WHEN {rows.deleted} THEN {GONE} ELSE {role} END",
        value=value,
    )


def _absence_columns(rule: AbsenceRule, rows: RowTable) -> _RuleColumns:
    selected, role, value = rows.selected[0], "0", "NULL"
    if rows.is_heartbeat:
        role = f"CASE WHEN {ROWS}.open_until_ns IS NULL THEN 0 ELSE {OPEN} END"
        value = f"coalesce({ROWS}.open_until_ns, {ROWS}._received_ns - {ROWS}.silent_ns) - {ROWS}._at"
    if rows.is_sample:
        selected = f"{selected} AND {ROWS}._statistics AND NOT {rows.deleted}"
        if rule.per is Per.OBJECT:
            selected = f"({selected} OR ({rows.named[0]} AND {rows.deleted}))"
            role = f"CASE WHEN {rows.deleted} THEN {GONE} ELSE 0 END"
    keys: Mapping[Per, list[str]] = {Per.RULE: [], Per.AGENT: [rows.agent], Per.OBJECT: [rows.agent, rows.object]}
    return _RuleColumns(selected=selected, key=keys[rule.per], role=role, value=value)


def _sequence_columns(rule: SequenceRule, rows: RowTable) -> _RuleColumns:
    bits = [
        f"CASE WHEN {selected} THEN {1 << number} ELSE 0 END"
        for number, selected in zip(rows.roles, rows.selected, strict=True)
    ]
    return _RuleColumns(
        selected=" OR ".join(f"({selected})" for selected in rows.selected),
        key=[rows.expression(by) for by in rule.by],
        role=" + ".join(bits),
    )


def _join_columns(rule: JoinRule, rows: RowTable) -> _RuleColumns:
    identity = rows.expression(rule.object_id if rows.is_sample else rule.event_id)
    selected, role = rows.selected[0], str(EVENT)
    if rows.is_sample:
        role = f"CASE WHEN {rows.deleted} THEN {GONE} WHEN {selected} THEN {MATCHING} ELSE {OTHER} END"
        selected = rows.named[0]
    return _RuleColumns(
        selected=f"{selected} AND {identity} IS NOT NULL",
        key=[rows.agent, identity] if rule.same_agent else [identity],
        role=role,
    )


_RULE_COLUMNS: Mapping[type[Rule], Callable[..., _RuleColumns]] = {
    ValueRule: _value_columns,
    RatioRule: _ratio_columns,
    AbsenceRule: _absence_columns,
    SequenceRule: _sequence_columns,
    CountRule: lambda rule, rows: _RuleColumns(selected=rows.selected[0], key=list(map(rows.expression, rule.by))),
    JoinRule: _join_columns,
}


def _is_number(value: str) -> str:
    return f"{value} IS NOT NULL AND NOT isnan({value})"
