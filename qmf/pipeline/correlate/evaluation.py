"""Runs the machines over sorted signals, as Spark hands them over: Arrow batches in, Arrow batches out. Pure.

Signals come sorted by rule, subject and time, so that one machine is alive at a time and memory doesn't grow with the
data. Three kinds of rows come out: alerts, the states of machines that have one, and one row of counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.detectors import NEVER, AlertChange, Detector, DetectorContext, Signal, create_detector
from qmf.pipeline.correlate.detectors.base import alert_id, subject_of
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.lake.arrow import import_pyarrow

#: The role of a row that holds a machine's state, which comes before all signals of its subject.
STATE = -2

#: Its rule is not among those that are followed.
UNKNOWN = -1

#: Columns of what comes in, in order: which rule, which subject, then those of a `Signal`.
SIGNAL = (
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
ALERT = (
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

#: What comes out: `out` tells the kind. States have hash, key and state; counts have rows, misdated, too_late, due.
RESULT = (
    ("out", "string"),
    *ALERT,
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
    """What one pass over the signals covers.

    Attributes:
        begin: signals before were looked at by passes before; they come too late.
        end: signals from here on are for later passes.
        keep: states are wanted for later passes.
        context: see there.
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
        misdated: of these, taken at the time of their arrival.
        too_late: of these, left out.
        due: when a state has something to do.
    """

    rows: int
    misdated: int
    too_late: int
    due: int

    def __add__(self, other: EvaluationCounts) -> EvaluationCounts:
        """Of both; `due` is that of the second."""
        return EvaluationCounts(
            self.rows + other.rows, self.misdated + other.misdated, self.too_late + other.too_late, other.due
        )

    def __str__(self) -> str:
        return (
            f"{self.rows} rows looked at, of which {self.misdated} count as of their arrival "
            f"and {self.too_late} came too late"
        )


def evaluate(
    batches: Iterable[Any], rules: Sequence[Rule], hashes: Sequence[str], span: EvaluationPass
) -> Iterator[Any]:
    """Run the machines.

    Args:
        batches: Arrow record batches with the columns `SIGNAL`, sorted by rule, key, at, ts, run and seq.
        rules: by their numbers in the signals.
        hashes: of the rules as the user wrote them.
        span: what to do.

    Returns:
        Arrow record batches with the columns `RESULT`.
    """
    work = _Evaluator(rules, hashes, span)
    for batch in batches:
        work.batch(batch)
        if len(work.results) >= _CHUNK:
            yield work.take()
    work.end()
    yield work.take()


class _Evaluator:
    def __init__(self, rules: Sequence[Rule], hashes: Sequence[str], span: EvaluationPass) -> None:
        self._rules = rules
        self._hashes = hashes
        self._span = span
        self._number = UNKNOWN
        self._key: str | None = None
        self._machine: Detector | None = None
        self._rows = self._misdated = self._too_late = 0
        self._due = NEVER
        self.results: list[dict[str, Any]] = []

    def batch(self, batch: Any) -> None:
        """Take a batch."""
        columns = [batch.column(index).to_pylist() for index in range(len(SIGNAL))]
        begin, end = self._span.begin, self._span.end
        number, key, machine = self._number, self._key, self._machine
        rows = misdated = 0
        for row in zip(*columns, strict=True):
            if row[1] != key or row[0] != number:
                self._finish()
                number, key = self._number, self._key = row[0], row[1]
                machine = self._machine = self._begin(number, row[1])
            if row[7] == STATE:
                if machine is None:
                    self._dropped(row)
                else:
                    machine.load(row[12])
                continue
            at = row[2]
            rows += 1
            if at != row[3]:
                misdated += 1
            if not begin <= at < end:
                # Later ones are left out before; these would change what was told.
                self._too_late += 1
                continue
            assert machine is not None
            if machine.due < at:
                machine.advance(at)
            machine.feed(Signal._make(row[2:]))
        self._rows += rows
        self._misdated += misdated

    def end(self) -> None:
        """All signals have come."""
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

    def take(self) -> Any:
        """Results so far as an Arrow batch."""
        pa = import_pyarrow()
        schema = pa.schema([pa.field(name, pa.type_for_alias(kind)) for name, kind in RESULT])
        results, self.results = self.results, []
        return pa.RecordBatch.from_pylist(results, schema=schema)

    def _begin(self, number: int, key: str) -> Detector | None:
        return None if number == UNKNOWN else create_detector(self._rules[number], key, self._span.context)

    def _finish(self) -> None:
        machine = self._machine
        if machine is None or self._key is None:
            return
        end = self._span.end
        if machine.due < end:
            machine.advance(end)
        rule = self._rules[self._number]
        for change in machine.changes:
            told = (rule.name, rule.kind.value, int(rule.severity))
            self._alert(alert_id(rule.name, self._key, change.began), self._hashes[self._number], told, change)
        if self._span.keep and (state := machine.dump(end)) is not None:
            self._due = min(self._due, machine.due)
            self.results.append(
                {"out": OUT_STATE, "rule_hash": self._hashes[self._number], "key": self._key, "state": state}
            )

    def _dropped(self, row: Sequence[Any]) -> None:
        """The state of a rule that was changed or removed: its alert ends."""
        state, key = json.loads(row[12]), row[1]
        if "open" not in state:
            return
        began, raised_at, message, agent, object_ = state["open"]
        at = max(raised_at, self._span.begin)
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
        self._alert(alert_id(state["rule"][0], key, began), row[4], state["rule"], change)

    def _alert(self, identity: str, hash: str, told: Sequence[Any], change: AlertChange) -> None:
        assert self._key is not None
        self.results.append(
            {
                "out": OUT_ALERT,
                "alert_id": identity,
                "change": "raised" if change.raised else "cleared",
                "rule": told[0],
                "rule_hash": hash,
                "kind": told[1],
                "severity": told[2],
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
