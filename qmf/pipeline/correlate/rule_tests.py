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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf._text_files import read_text
from qmf._toml import key_lines
from qmf.pipeline.correlate.alerts import NAME_LABEL, SEVERITY_LABEL, Alert, AlertRow, AlertState
from qmf.pipeline.correlate.case_rows import CaseLake, CaseSeries, read_series
from qmf.pipeline.correlate.evaluation import AT, EvaluationPass, Evaluator
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rule_file import load_rules, parse_tables
from qmf.pipeline.correlate.rule_table import RuleError, RuleTable, raise_errors
from qmf.pipeline.correlate.rules import SECOND, Rule
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow
from qmf.pipeline.toml_tables import TomlErrors
from qmf.views.times import duration_text

#: ns between two values of a series.
DEFAULT_INTERVAL = 60 * SECOND


@attrs.frozen
class ExpectedAlert:
    """An alert that must be there.

    Attributes:
        labels, annotations: the alert must have these; others don't matter.
        severity: keyword; None for any.
        state: ``pending`` or ``firing``.
    """

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    severity: str | None
    state: str

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
    """Read a file of tests, and the rules that it tests.

    Raises:
        RuleError: a file can't be read, or is wrong; with a line for each error.
    """
    text = read_text(path, RuleError)
    content = parse_tables(text, str(path))
    errors = TomlErrors(key_lines(text))
    table = RuleTable(content, (), errors)
    files = table.texts("rule_files") or ()
    if not files and not table.failed:
        table.fail("rule_files", "is missing")
    given = table.read("tests", needed=True)
    if given is not None and not isinstance(given, list):
        table.fail("tests", "must be tables, [[tests]]")
    table.end()
    tests = [_test(table.inner("tests", item, number), number) for number, item in enumerate(_list(given), 1)]
    raise_errors(errors, str(path))
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
    """Run tests: each with what is wrong, a text for each check that failed.

    Raises:
        RuleError: a rule doesn't fit the rows of its class.
    """
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


def _test(table: RuleTable, number: int) -> RuleTest:
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
    table.end({"promql_expr_test": "rules give alerts, there are no other expressions"})
    return RuleTest(name, tuple(series), tuple(sorted(checks, key=lambda check: check.at)))


def _check(table: RuleTable) -> Check:
    at = table.duration("eval_time", needed=True, zero=True) or 0
    name = table.text("alertname", needed=True) or ""
    expected = [
        _expected_alert(table.inner("exp_alerts", item, place))
        for place, item in enumerate(_list(table.read("exp_alerts") or []), 1)
    ]
    table.end()
    return Check(at, name, tuple(expected), table.line())


def _expected_alert(table: RuleTable) -> ExpectedAlert:
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
    reader = SignalReader(plan, 0, {path: rows.schema for path, rows in lake.rows.items()})
    try:
        reader.follow(lake.rows)
        return [row for portion in reader.signals(lake.rows) for row in portion]
    finally:
        reader.close()


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
