"""Tests of rules, as promtool has them for Prometheus: given samples and events, and the alerts at some times.

The keys are those of promtool, in TOML; rows are written as the lake has them::

    rule_files = ["rules.toml"]

    [[tests]]
    name = "a full disk"
    interval = "10s"

    [[tests.input_series]]
    class = "qmf.host:filesystem"
    agent = "qmf:host:box"
    object = "/"
    values = {percent = "70 95x8", mountPoint = "/", readOnly = false}

    [[tests.alert_rule_test]]
    eval_time = "1m30s"
    alertname = "disk-full"
    exp_alerts = [{exp_labels = {mount = "/"}, severity = "error"}]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from qmf._text_files import read_text
from qmf._toml import key_lines
from qmf.pipeline.correlate.alerts import NAME_LABEL, SEVERITY_LABEL, Alert, AlertRow, AlertState
from qmf.pipeline.correlate.evaluation import AT, EvaluationPass, Evaluator
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rule_file import load_rules, parse_tables
from qmf.pipeline.correlate.rules import SECOND, Rule, RuleError, SelectedTable
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.pipeline.lake.delta_lake import RecordedClass
from qmf.pipeline.lake.location import class_path, kind_path
from qmf.pipeline.toml_tables import TomlErrors, TomlTable
from qmf.views.times import duration_text

#: The object is deleted at that time.
_DELETED = object()

#: The notation of promtool: ``a``, ``axn``, ``a+bxn``, ``a-bxn``, and ``_`` for nothing.
_ITEM = re.compile(
    r"(?P<first>-?[\d.]+(?:e[+-]?\d+)?|_|deleted)(?:(?P<step>[+-][\d.]+(?:e[+-]?\d+)?))?(?:x(?P<count>\d+))?"
)


@attrs.frozen
class CaseSeries:
    """Rows of one object, event, agent or recorder, at regular times."""

    source: SelectedTable
    package: str  #: and `name`: of the class; empty for kinds without one
    name: str
    agent: str
    object: str | None
    times: tuple[int, ...]  #: of each row, in ns since the beginning of the test
    cells: tuple[Mapping[str, Any], ...]  #: the values of each row, by column
    deleted: tuple[bool, ...]  #: for each row, the object is deleted with it


def expand(text: str) -> list[object]:
    """Values in the notation of promtool: ``1 2x3 0+10x5 _x2``; None for nothing. `ValueError` if it is wrong."""
    found: list[object] = []
    for item in text.split():
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r} is not a value such as 5, 5x3, 0+10x5, _ or deleted")
        count = int(match["count"] or 0)
        if match["first"] in ("_", "deleted"):
            # As for promtool: `_x3` is three times nothing, but `5x3` four times 5.
            found += [None if match["first"] == "_" else _DELETED] * max(count, 1)
            continue
        first, step = _number(match["first"]), _number(match["step"] or "0")
        found += [first + number * step for number in range(count + 1)]
    return found


def _number(text: str) -> float:
    return float(text) if any(letter in text for letter in ".e") else int(text)


def read_series(table: TomlTable, interval: int) -> CaseSeries:
    """Read a series."""
    source = SelectedTable.EVENTS if "event" in table and "of" not in table else SelectedTable.SAMPLES
    source = SelectedTable(table.choice("of", [item.value for item in SelectedTable]) or source)
    package = name = ""
    if source.has_class:
        key = "event" if source is SelectedTable.EVENTS else "class"
        package, _, name = (table.text(key, needed=True) or "").rpartition(":")
    agent = table.text("agent") or "agent"
    object_ = table.text("object") or ("object" if source is SelectedTable.SAMPLES else None)
    start = table.duration("start", zero=True) or 0
    given = table.read("values")
    cells, times, deleted = _rows(table, given, start, table.duration("interval") or interval)
    table.end()
    return CaseSeries(source, package, name, agent, object_, times, cells, deleted)


def _rows(
    table: TomlTable, given: Any, start: int, interval: int
) -> tuple[tuple[Mapping[str, Any], ...], tuple[int, ...], tuple[bool, ...]]:
    if isinstance(given, str):
        # Rows without values of their own: heartbeats, events.
        given = {"": given}
    if not isinstance(given, dict) or not given:
        table.fail("values", 'must be a table of columns, or a text such as "1x10" for rows without any')
        return (), (), ()
    columns, constants = _columns(table, given)
    cells, times, deleted = [], [], []
    for number, row in enumerate(itertools.zip_longest(*columns.values()) if columns else [()]):
        if columns and all(item is None for item in row):
            continue
        values = {name: item for name, item in zip(columns, row, strict=True) if item not in (None, _DELETED)}
        cells.append({**constants, **values})
        times.append(start + number * interval)
        deleted.append(_DELETED in row)
    return tuple(cells), tuple(times), tuple(deleted)


def _columns(table: TomlTable, given: Mapping[str, Any]) -> tuple[dict[str, list[object]], dict[str, Any]]:
    """The values of columns that differ from row to row, and those that are the same in all."""
    columns: dict[str, list[object]] = {}
    constants: dict[str, Any] = {}
    for name, value in given.items():
        try:
            if isinstance(value, list):
                columns[name] = [None if item == "_" else item for item in value]
            elif isinstance(value, str) and value.split() and all(map(_ITEM.fullmatch, value.split())):
                columns[name] = expand(value)
            else:
                constants[name] = value
        except ValueError as error:
            table.fail(f"values.{name}", str(error))
    return columns, constants


class CaseLake:
    """The rows of some series as tables.

    Attributes:
        classes: of the rows, and of what the rules read besides.
        rows: Arrow tables by path.
        goodbyes: agents that said goodbye, as (time, agent), in order.
    """

    def __init__(self, series: Sequence[CaseSeries], rules: Sequence[Rule]) -> None:
        packages = {
            (selector.source, selector.name.lower()): selector.package
            for rule in rules
            for selector in rule.selectors
            if selector.name is not None and selector.package
        }
        numbers = itertools.count(1)
        groups: dict[str, list[CaseSeries]] = {}
        for item in series:
            package = (
                packages.get((item.source, item.name.lower()), item.package) if item.package == "test" else item.package
            )
            item = attrs.evolve(item, package=package or item.package)
            groups.setdefault(_path(item), []).append(item)
        self.classes: tuple[RecordedClass, ...] = ()
        self.rows: dict[str, Any] = {}
        for path, own in groups.items():
            version = _version(own)
            if version is not None:
                self.classes = (*self.classes, RecordedClass(version, path))
            self.rows[path] = _table(own[0].source.kind, version, own, numbers)
        self.goodbyes = sorted(
            (at, item.agent)
            for item in series
            if item.source is SelectedTable.AGENTS
            for at, values in zip(item.times, item.cells, strict=True)
            if (values.get("change"), values.get("reason")) == ("removed", "goodbye")
        )


def _path(series: CaseSeries) -> str:
    kind = series.source.kind
    return class_path(kind, series.package, series.name.lower()) if series.source.has_class else kind_path(kind)


def _version(series: Sequence[CaseSeries]) -> ClassVersion | None:
    """The class of some series, with the columns that their values have."""
    first = series[0]
    if not first.source.has_class:
        return None
    types: dict[str, ColumnType] = {}
    for values in (values for item in series for values in item.cells):
        for name, value in values.items():
            if name:
                types[name] = _wider(types.get(name), _column_type(value))
    columns = tuple(
        LakeColumn(
            name=name, wire=name, member=name, type="double", column_type=type, kind=MemberKind.PROPERTY,
            part=MemberPart.VALUE,
        )
        for name, type in types.items()
    )  # fmt: skip
    events = first.source is SelectedTable.EVENTS
    return ClassVersion(package=first.package, name=first.name, hash="", event=events, columns=columns)


def _column_type(value: object) -> ColumnType:
    if isinstance(value, bool):
        return ColumnType.BOOL
    if isinstance(value, int):
        return ColumnType.INT64
    return ColumnType.DOUBLE if isinstance(value, float) else ColumnType.TEXT


def _wider(known: ColumnType | None, type: ColumnType) -> ColumnType:
    if known in (None, type):
        return type
    numbers = {ColumnType.INT64, ColumnType.DOUBLE}
    return ColumnType.DOUBLE if {known, type} == numbers else ColumnType.TEXT


def _table(kind: RowKind, version: ClassVersion | None, series: Sequence[CaseSeries], numbers: Iterator[int]) -> Any:
    pa = import_pyarrow()
    schema = arrow_schema(columns_of(kind, version))
    strings = [field.name for field in schema if pa.types.is_string(field.type)]
    rows = []
    for item in series:
        for at, values, deleted in zip(item.times, item.cells, item.deleted, strict=True):
            common: dict[str, Any] = {
                "_run": "test", "_seq": next(numbers), "_ts": at // 1000, "_ts_ns": at, "_received_ns": at,
                "_agent": item.agent, "_epoch": 1, "_object": item.object, "_object_epoch": 1, "_create_ns": 0,
                "_delete_ns": max(at, 1) if deleted else 0, "_properties": True, "_statistics": True, "_severity": 6,
                "interval": 10.0, "count": 1,
            }  # fmt: skip
            row = {**common, **values}
            texts = {name: str(row[name]) for name in strings if row.get(name) is not None}
            rows.append({name: row.get(name) for name in schema.names} | texts)
    return pa.Table.from_pylist(rows, schema=schema)


#: ns between two values of a series.
DEFAULT_INTERVAL = 60 * SECOND


@attrs.frozen
class ExpectedAlert:
    """An alert that must be there."""

    labels: Mapping[str, str]  #: and `annotations`: the alert must have these; others don't matter
    annotations: Mapping[str, str]
    severity: str | None  #: keyword; None for any
    state: str  #: ``pending`` or ``firing``

    def fits(self, alert: Alert) -> bool:
        """True where an alert is the expected one."""
        return (
            alert.state.value == self.state
            and self.severity in (None, alert.labels[SEVERITY_LABEL])
            and self.labels.items() <= alert.labels.items()
            and self.annotations.items() <= alert.annotations.items()
        )

    def __str__(self) -> str:
        return _state_text(self.state, self.severity, self.labels, self.annotations)


@attrs.frozen
class Check:
    """The alerts of a rule that must be there at a time (ns since the beginning of the test), and no others."""

    at: int
    name: str
    expected: tuple[ExpectedAlert, ...]
    line: int | None


@attrs.frozen
class RuleTest:
    """A test: the rows, and what must be there, in the order of time."""

    name: str
    series: tuple[CaseSeries, ...]
    checks: tuple[Check, ...]


@attrs.frozen
class RuleTests:
    """A file of tests, with the rules of the files that it names."""

    file: str
    rules: tuple[Rule, ...]
    tests: tuple[RuleTest, ...]


def load_rule_tests(path: str | Path) -> RuleTests:
    """Read a file of tests, and the rules that it tests; a `RuleError` has a line for each error."""
    text = read_text(path, RuleError)
    content = parse_tables(text, str(path))
    errors = TomlErrors(key_lines(text))
    table = TomlTable(content, (), errors)
    files = table.texts("rule_files") or ()
    if not files and not table.failed:
        table.fail("rule_files", "is missing")
    given = table.read("tests", needed=True)
    if given is not None and not isinstance(given, list):
        table.fail("tests", "must be tables, [[tests]]")
    table.end()
    tests = [_test(table.inner("tests", item, number), number) for number, item in enumerate(_list(given), 1)]
    errors.check(str(path), RuleError)
    rules = [rule for name in files for rule in load_rules(Path(path).parent / name)]
    known = {rule.name for rule in rules}
    unknown = [
        f"{path}{_at(check.line)}: {test.name}: no rule {check.name!r} in {', '.join(files)}"
        for test in tests
        for check in test.checks
        if check.name not in known
    ]
    if unknown:
        raise RuleError("\n".join(unknown))
    return RuleTests(str(path), tuple(rules), tuple(tests))


def run_rule_tests(tests: RuleTests) -> Iterator[tuple[RuleTest, list[str]]]:
    """Run tests: each with a text for each check that failed; `RuleError` if a rule doesn't fit its class."""
    for test in tests.tests:
        yield (
            test,
            [
                f"{tests.file}{_at(check.line)}: {test.name}: at {duration_text(check.at)}, {check.name}: {wrong}"
                for check, alerts in _states(tests.rules, test)
                for wrong in _differences(check, alerts)
            ],
        )


# -- reading


def _test(table: TomlTable, number: int) -> RuleTest:
    name = table.text("name") or f"test {number}"
    interval = table.duration("interval") or DEFAULT_INTERVAL
    series = [
        read_series(table.inner("input_series", item, place), interval)
        for place, item in enumerate(_list(table.read("input_series", needed=True)), 1)
    ]
    checks = [
        _check(table.inner("alert_rule_test", item, place))
        for place, item in enumerate(_list(table.read("alert_rule_test", needed=True)), 1)
    ]
    table.end(hints={"promql_expr_test": "rules give alerts, there are no other expressions"})
    return RuleTest(name, tuple(series), tuple(sorted(checks, key=lambda check: check.at)))


def _check(table: TomlTable) -> Check:
    at = table.duration("eval_time", needed=True, zero=True) or 0
    name = table.text("alertname", needed=True) or ""
    expected = [
        _expected_alert(table.inner("exp_alerts", item, place))
        for place, item in enumerate(_list(table.read("exp_alerts") or []), 1)
    ]
    table.end()
    return Check(at, name, tuple(expected), table.line)


def _expected_alert(table: TomlTable) -> ExpectedAlert:
    labels, annotations = table.named_texts("exp_labels"), table.named_texts("exp_annotations")
    severity = table.text("severity") or labels.pop("severity", None)
    states = (AlertState.PENDING.value, AlertState.FIRING.value)
    state = table.choice("state", states) or AlertState.FIRING.value
    table.end()
    return ExpectedAlert(labels, annotations, severity, state)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# -- running


def _states(rules: Sequence[Rule], test: RuleTest) -> Iterator[tuple[Check, list[Alert]]]:
    """The alerts of each check's rule at its time."""
    # Others may need columns that the test doesn't give.
    tested = {check.name for check in test.checks}
    rules = [rule for rule in rules if rule.name in tested]
    lake = CaseLake(test.series, rules)
    plan = read_plan(rules, lake.classes)
    waiting = _signals(plan, lake)
    evaluator = Evaluator(complete_rules(rules, plan), [rule.hash for rule in rules])
    firing: dict[str, Alert] = {}
    begin = 0
    for check in test.checks:
        # What comes at the time of the check counts, as for promtool.
        end = check.at + 1
        over = EvaluationPass(
            begin=begin, end=end, start=0, goodbyes=[item for item in lake.goodbyes if begin <= item[0] < end]
        )
        rows = [row for row in waiting if row[AT] < end]
        waiting = [row for row in waiting if row[AT] >= end]
        _apply_changes(firing, evaluator.step([rows], over))
        begin = end
        pending = [row.alert() for row in evaluator.pending()]
        yield check, [alert for alert in (*firing.values(), *pending) if alert.name == check.name]


def _apply_changes(firing: dict[str, Alert], changes: Iterable[AlertRow]) -> None:
    """Take alerts that began, changed or ended."""
    for row in changes:
        firing.pop(row.alert_id, None)
        if not row.cleared:
            firing[row.alert_id] = row.alert()


def _signals(plan: ReadPlan, lake: CaseLake) -> list[SignalRow]:
    """The rows of a test's series that rules evaluate."""
    with closing(SignalReader(plan, 0, {path: rows.schema for path, rows in lake.rows.items()})) as reader:
        reader.follow(lake.rows)
        return [row for portion in reader.signals(lake.rows) for row in portion]


def _differences(check: Check, alerts: Sequence[Alert]) -> Iterator[str]:
    left = [alert for alert in alerts if alert.state is AlertState.FIRING]
    pending = [alert for alert in alerts if alert.state is AlertState.PENDING]
    for expected in check.expected:
        own = left if expected.state == AlertState.FIRING.value else pending
        found = next((alert for alert in own if expected.fits(alert)), None)
        if found is not None:
            own.remove(found)
            continue
        shown = "; ".join(map(_alert_text, alerts)) or "no alert"
        yield f"expected {expected}, got {shown}"
        return
    # Alerts that are pending need not be expected: rules without `for` have none.
    for alert in left:
        yield f"expected no other alert, got {_alert_text(alert)}"


def _alert_text(alert: Alert) -> str:
    labels = {name: text for name, text in alert.labels.items() if name not in (NAME_LABEL, SEVERITY_LABEL)}
    return _state_text(alert.state.value, alert.labels[SEVERITY_LABEL], labels, alert.annotations)


def _state_text(state: str, severity: str | None, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    parts = [state, *([severity] if severity else [])]
    parts += [f"{name}={text!r}" for name, text in (*labels.items(), *annotations.items())]
    return " ".join(parts)


def _at(line: int | None) -> str:
    return "" if line is None else f":{line}"
