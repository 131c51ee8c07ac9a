"""Evaluates rules over sorted signals, called by Spark: Arrow batches in, Arrow batches out. Pure.

Signals are sorted by rule, subject and time, so that one detector exists at a time and memory doesn't grow with the
data. There are three kinds of results: alerts, the states of detectors that have one, and one row of counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.detectors import (
    NEVER,
    AlertChange,
    Detector,
    DetectorContext,
    Signal,
    create_detector,
)
from qmf.pipeline.correlate.detectors.base import alert_id, subject_of
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.lake.arrow import import_pyarrow

#: The role of a row that holds a detector's state; it comes before all signals of its subject.
STATE = -2

#: The number of a rule that is not evaluated any more.
UNKNOWN = -1

#: Columns of the input, in order: rule, subject, then those of a `Signal`.
SIGNAL_COLUMNS = (
    ("rule", "int32"),
    ("key", "string"),
    ("at", "int64"),
    ("ts", "int64"),
    ("run", "string"),
    ("seq", "int64"),
    ("epoch", "int64"),
    ("role", "int32"),
    ("value", "double"),
    ("ident", "int64"),
    ("agent", "string"),
    ("object", "string"),
    ("fields", "string"),
)

#: Columns of the table of alerts.
ALERT_COLUMNS = (
    ("alert_id", "string"),
    ("change", "string"),
    ("rule", "string"),
    ("rule_hash", "string"),
    ("kind", "string"),
    ("severity", "int16"),
    ("subject", "string"),
    ("agent", "string"),
    ("object", "string"),
    ("message", "string"),
    ("reason", "string"),
    ("value", "double"),
    ("began_ns", "int64"),
    ("at_ns", "int64"),
    ("window_start_ns", "int64"),
    ("window_end_ns", "int64"),
    ("evidence", "string"),
)

#: Columns of the output. `out` is the kind of result. States have rule_hash, key and state; counts have rows, misdated,
#: too_late, due.
RESULT_COLUMNS = (
    ("out", "string"),
    *ALERT_COLUMNS,
    ("key", "string"),
    ("state", "string"),
    ("rows", "int64"),
    ("misdated", "int64"),
    ("too_late", "int64"),
    ("due", "int64"),
)

OUT_ALERT, OUT_STATE, OUT_COUNTS = "alert", "state", "counts"

_CHUNK = 10_000


@attrs.frozen(kw_only=True)
class EvaluationPass:
    """One pass over the signals.

    Attributes:
        begin: signals before this time belong to earlier passes: they come too late.
        end: signals from this time on belong to later passes.
        keep: return states, for later passes.
        context: for the detectors.
    """

    begin: int
    end: int
    keep: bool
    context: DetectorContext


@attrs.frozen
class EvaluationCounts:
    """What a pass did.

    Attributes:
        rows: signals.
        misdated: of these, evaluated at the time of their arrival.
        too_late: of these, dropped.
        due: when a state has something to do.
    """

    rows: int
    misdated: int
    too_late: int
    due: int

    def __add__(self, other: EvaluationCounts) -> EvaluationCounts:
        """The counts of both; `due` is that of the second."""
        return EvaluationCounts(
            self.rows + other.rows, self.misdated + other.misdated, self.too_late + other.too_late, other.due
        )

    def __str__(self) -> str:
        return (
            f"{self.rows} rows evaluated, of which {self.misdated} count as of their arrival "
            f"and {self.too_late} came too late"
        )


def evaluate(
    batches: Iterable[Any], rules: Sequence[Rule], hashes: Sequence[str], evaluation_pass: EvaluationPass
) -> Iterator[Any]:
    """Evaluate the rules.

    Args:
        batches: Arrow record batches with `SIGNAL_COLUMNS`, sorted by rule, key, at, ts, run and seq.
        rules: by their numbers in the signals.
        hashes: of the rules as the user wrote them.
        evaluation_pass: the pass.

    Returns:
        Arrow record batches with `RESULT_COLUMNS`.
    """
    evaluator = _Evaluator(rules, hashes, evaluation_pass)
    for batch in batches:
        evaluator.add(batch)
        if len(evaluator.results) >= _CHUNK:
            yield evaluator.take_results()
    evaluator.end()
    yield evaluator.take_results()


class _Evaluator:
    def __init__(self, rules: Sequence[Rule], hashes: Sequence[str], evaluation_pass: EvaluationPass) -> None:
        self._rules = rules
        self._hashes = hashes
        self._pass = evaluation_pass
        self._number = UNKNOWN
        self._key: str | None = None
        self._detector: Detector | None = None
        self._rows = self._misdated = self._too_late = 0
        self._due = NEVER
        self.results: list[dict[str, Any]] = []

    def add(self, batch: Any) -> None:
        """Evaluate a batch of signals."""
        columns = [batch.column(index).to_pylist() for index in range(len(SIGNAL_COLUMNS))]
        begin, end = self._pass.begin, self._pass.end
        number, key, detector = self._number, self._key, self._detector
        rows = misdated = 0
        # The indexes are those of SIGNAL_COLUMNS: 0 rule, 1 key, 2 at, 3 ts, 7 role, 12 fields.
        for row in zip(*columns, strict=True):
            if row[1] != key or row[0] != number:
                self._finish()
                number, key = self._number, self._key = row[0], row[1]
                detector = self._detector = self._create(number, row[1])
            if row[7] == STATE:
                if detector is None:
                    self._clear_orphan(row)
                else:
                    detector.load(row[12])
                continue
            at = row[2]
            rows += 1
            if at != row[3]:
                misdated += 1
            if not begin <= at < end:
                # Later signals are filtered out before; earlier ones would change published results.
                self._too_late += 1
                continue
            assert detector is not None
            if detector.due < at:
                detector.advance(at)
            detector.feed(Signal._make(row[2:]))
        self._rows += rows
        self._misdated += misdated

    def end(self) -> None:
        """Finish after the last batch."""
        self._finish()
        self.results.append(
            {
                "out": OUT_COUNTS,
                "rows": self._rows,
                "misdated": self._misdated,
                "too_late": self._too_late,
                "due": self._due,
            }
        )

    def take_results(self) -> Any:
        """Remove and return the results so far, as an Arrow batch."""
        pa = import_pyarrow()
        schema = pa.schema([pa.field(name, pa.type_for_alias(type)) for name, type in RESULT_COLUMNS])
        results, self.results = self.results, []
        return pa.RecordBatch.from_pylist(results, schema=schema)

    def _create(self, number: int, key: str) -> Detector | None:
        return None if number == UNKNOWN else create_detector(self._rules[number], key, self._pass.context)

    def _finish(self) -> None:
        detector = self._detector
        if detector is None or self._key is None:
            return
        end = self._pass.end
        if detector.due < end:
            detector.advance(end)
        rule = self._rules[self._number]
        for change in detector.changes:
            own = (rule.name, rule.kind.value, int(rule.severity))
            self._add_alert(alert_id(rule.name, self._key, change.began), self._hashes[self._number], own, change)
        if self._pass.keep and (state := detector.dump(end)) is not None:
            self._due = min(self._due, detector.due)
            self.results.append(
                {"out": OUT_STATE, "rule_hash": self._hashes[self._number], "key": self._key, "state": state}
            )

    def _clear_orphan(self, row: Sequence[Any]) -> None:
        """Clear the alert of a rule that was changed or removed, from its state."""
        state, key = json.loads(row[12]), row[1]
        if "open" not in state:
            return
        began, raised_at, message, agent, object_ = state["open"]
        at = max(raised_at, self._pass.begin)
        change = AlertChange(
            raised=False,
            began=began,
            at=at,
            window=(began, at),
            value=None,
            agent=agent,
            object=object_,
            message=message,
            reason="the rule was changed or removed",
            evidence=[],
        )
        self._add_alert(alert_id(state["rule"][0], key, began), row[4], state["rule"], change)

    def _add_alert(self, identity: str, hash: str, rule: Sequence[Any], change: AlertChange) -> None:
        """Add a row of the table of alerts; `rule` has name, kind and severity."""
        assert self._key is not None
        self.results.append(
            {
                "out": OUT_ALERT,
                "alert_id": identity,
                "change": "raised" if change.raised else "cleared",
                "rule": rule[0],
                "rule_hash": hash,
                "kind": rule[1],
                "severity": rule[2],
                "subject": subject_of(self._key),
                "agent": change.agent,
                "object": change.object,
                "message": change.message,
                "reason": change.reason,
                "value": change.value,
                "began_ns": change.began,
                "at_ns": change.at,
                "window_start_ns": change.window[0],
                "window_end_ns": change.window[1],
                "evidence": json.dumps(change.evidence, ensure_ascii=False, separators=(",", ":")),
            }
        )
