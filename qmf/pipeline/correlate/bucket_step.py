"""The reduce of a stream of rules: a step of the detectors of some buckets. It knows no runner.

It gets the signals of the step, sorted by bucket, rule, subject and time, and before those of a bucket a row that names
the files with the states of its detectors. Only detectors that have something to do are restored from these.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

import attrs

from qmf.pipeline.correlate.alert_table import arrow_table, fill_columns
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.batch_input import FAILURE, SIGNAL_ORDER, BatchInput, signal_schema
from qmf.pipeline.correlate.detectors.base import NEVER
from qmf.pipeline.correlate.evaluation import (
    AT,
    KEY,
    RULE,
    EvaluationPass,
    Evaluator,
    StoredState,
    Subject,
    orphans_cleared,
)
from qmf.pipeline.correlate.rule_stream import StepPortions, signal_order
from qmf.pipeline.correlate.signal_reader import SignalRow, signal_rows
from qmf.pipeline.correlate.stream_state import (
    BUCKET,
    STATE,
    WAITING,
    bucket_of,
    detector_schema,
    state_row,
    stored_rows,
)
from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import LakeTable

#: What a row of the result is: one of the table of alerts or of detectors, an alert that is pending, or figures.
ROW, ALERT, DETECTOR, PENDING, FIGURES = "row", "alert", "detector", "pending", "figures"

#: The columns of figures: numbers of signals, those that wait for their time among them, and of pending alerts; when
#: there is something to do; and the number of a rule that failed.
NUMBERS = ("signals", "misdated", "too_late", "waiting", "pending_alerts", "next_due", "number")

#: By what the reduce is sorted, after the bucket.
ORDER = ("rule", "key", *SIGNAL_ORDER)

#: The rule of a row that names files.
_FILES = -1

#: Signals that are evaluated at once, and rows of a record batch.
_PORTION = 5000

#: Conditions on agents in a query.
_FEW = 50


def signals_with_buckets(hashes: Sequence[str], buckets: int, batches: Iterator[Any]) -> Iterator[Any]:
    """What the map makes of signals: the bucket of each is added, by the hashes of the rules."""
    pa = import_pyarrow()
    for batch in batches:
        rules, keys = batch["rule"].to_pylist(), batch["key"].to_pylist()
        own = [
            bucket_of("" if key is None else hashes[rule], key or "", buckets)
            for rule, key in zip(rules, keys, strict=True)
        ]
        yield batch.append_column(BUCKET, pa.array(own, pa.string()))


def step_schema() -> Any:
    """The columns of the map."""
    return signal_schema().append(import_pyarrow().field(BUCKET, import_pyarrow().string()))


def bucket_files(bucket: str, files: Sequence[str], *, whole: bool, idle: bool) -> dict[str, Any]:
    """The row before the signals of a bucket: the files with its states, inside the table.

    The bucket is written as a `whole`, or `idle`: without signals there is nothing to do.
    """
    content = json.dumps({"files": list(files), "whole": whole, "idle": idle})
    return {"rule": _FILES, "key": "", FAILURE: content, BUCKET: bucket}


def result_schema() -> Any:
    """The columns of the reduce."""
    pa = import_pyarrow()
    alerts = arrow_table([], 0).schema
    states = [field for field in detector_schema() if field.name not in alerts.names]
    numbers = [pa.field(name, pa.int64()) for name in NUMBERS]
    return pa.schema([*alerts, *states, *numbers, (FAILURE, pa.string()), (ROW, pa.string())])


@attrs.frozen(kw_only=True)
class BucketStep:
    """The reduce of a step, for the time of a pass."""

    given: BatchInput  #: and `left_out`: what is read and evaluated, and the numbers of rules that read nothing
    left_out: frozenset[int]
    over: EvaluationPass
    has_other_ends: bool  #: detectors that wait for heartbeats may have something to do
    step: int  #: and `buckets`: its number, and the number of buckets
    buckets: int
    table: LakeTable  #: of the detectors

    def __call__(self, connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
        """The rows of `result_schema` for some buckets."""
        failed: dict[int, str] = {}
        rows = (row for batch in batches for row in signal_rows(batch))
        for bucket, own in groupby(rows, key=itemgetter(-1)):
            yield from self._bucket(connection, bucket, own, failed)
        yield from _batches([{"number": number, FAILURE: reason} for number, reason in failed.items()], FIGURES)

    def _bucket(self, connection: Any, bucket: str, rows: Iterator[SignalRow], failed: dict[int, str]) -> Iterator[Any]:
        stored = json.loads(next(rows)[-2])
        first = next(rows, None)
        if first is None and stored["idle"]:
            return
        rows = rows if first is None else chain([first], rows)

        def signals() -> Iterator[SignalRow]:
            for row in rows:
                if row[AT] is None:
                    failed[row[RULE]] = row[-2]
                else:
                    yield row[:-2]

        evaluator = self.given.evaluator(self.left_out)
        detectors = _Bucket(connection, self.table, stored["files"], self.step - 1, evaluator)
        detectors.restore_due(self.over, everything=stored["whole"], promised=self.has_other_ends)
        merged = heapq.merge(detectors.waiting, signals(), key=signal_order)
        portions = StepPortions(_portions(merged), self.over)

        def has(subject: Subject) -> bool:
            return bucket_of(self.given.hashes[subject[0]], subject[1], self.buckets) == bucket

        detectors.restore(filter(has, evaluator.expected_subjects()))
        alerts = [alert for orphan in detectors.orphans for alert in orphans_cleared(orphan, self.over.begin)]
        alerts += evaluator.step(detectors.restore_each(portions), self.over, has=has)
        if stored["whole"]:
            evaluator.touched.update(evaluator.detectors)
        states, due = detectors.dump_touched(self.over.end)
        hashes = self.given.hashes
        waiting = [
            {"part": WAITING, "hash": hashes[row[RULE]], "key": row[KEY], "content": json.dumps(row[AT:])}
            for row in portions.waiting
        ]
        shared = {BUCKET: bucket, "step": self.step}
        yield from _alert_batches(alerts, self.step, ALERT)
        pending = list(evaluator.pending())
        yield from _alert_batches(pending, self.step, PENDING)
        yield from _batches([{**row, **shared} for row in (*states, *waiting)], DETECTOR)
        counts = portions.counts
        due = min([due, *(row[AT] for row in portions.waiting)])
        figures = (counts.rows, counts.misdated, counts.too_late, len(waiting), len(pending), due)
        yield from _batches([{**dict(zip(NUMBERS, figures, strict=False)), **shared}], FIGURES)


class _Bucket:
    """The detectors of a bucket that are needed in a step, and what earlier steps have stored of it."""

    def __init__(
        self, connection: Any, table: LakeTable, paths: Sequence[str], last_step: int, evaluator: Evaluator
    ) -> None:
        """Read what is stored in some files; the connection holds a temporary table until the next bucket."""
        self._connection, self.evaluator = connection, evaluator
        #: Hash and key of those that are stored, and the ones of rules that are no more.
        self._known: set[tuple[str, str]] = set()
        self.orphans: list[StoredState] = []
        self._rows = stored_rows(table, paths) if paths else detector_schema().empty_table()
        connection.register("qmf_bucket", self._rows)
        latest = "arg_max({'name': name, 'kind': kind, 'due': due, 'pending': pending, 'content': content}, step)"
        connection.execute(
            f"create or replace temp table qmf_states as from (select hash, key, unnest({latest}) from qmf_bucket "
            f"where part = {text(STATE)} group by hash, key) where content is not null"
        )
        numbers = {hash: number for number, hash in enumerate(evaluator.hashes)}
        waiting = connection.execute(
            f"select hash, key, content from qmf_bucket where part = {text(WAITING)} and step = {last_step}"
        ).fetchall()
        rows = [(numbers[hash], key, *json.loads(own)) for hash, key, own in waiting if hash in numbers]
        #: The signals that waited for their time.
        self.waiting: list[SignalRow] = sorted(rows, key=signal_order)

    def restore_due(self, over: EvaluationPass, *, everything: bool, promised: bool) -> None:
        """Restore those that have something to do without signals, and find the orphans."""
        where = "true"
        agents = sorted({json.dumps(agent)[1:-1] for _at, agent in over.goodbyes})
        if not everything and len(agents) <= _FEW:
            hashes = ", ".join(map(text, self.evaluator.hashes)) or "''"
            where = f"due < {over.end} or pending or hash not in ({hashes})"
            where += "".join(f" or contains(content, {text(agent)})" for agent in agents)
            where += """ or contains(content, '"promised"')""" if promised else ""
        self._restore(where)

    def restore(self, subjects: Iterable[Subject]) -> None:
        """Restore those of subjects that are stored."""
        hashes = self.evaluator.hashes
        missing = {(hashes[own[0]], own[1]) for own in subjects if own not in self.evaluator.detectors}
        if missing:
            rows = [{"hash": hash, "key": key} for hash, key in sorted(missing)]
            self._connection.register("qmf_wanted", import_pyarrow().Table.from_pylist(rows))
            self._restore("(hash, key) in (select (hash, key) from qmf_wanted)")

    def restore_each(self, portions: Iterable[Sequence[SignalRow]]) -> Iterator[Sequence[SignalRow]]:
        """The same portions, before each of which its detectors are restored."""
        for portion in portions:
            self.restore({(row[RULE], row[KEY]) for row in portion})
            yield portion

    def dump_touched(self, now: int) -> tuple[list[dict[str, Any]], int]:
        """The rows of states that may have changed, and when a detector has something to do."""
        rows = [state_row(attrs.evolve(orphan, state=None)) for orphan in self.orphans]
        sql = f"select min(due) from qmf_states where due >= {now}"
        ((due,),) = self._connection.execute(sql).fetchall()
        due = NEVER if due is None else int(due)
        touched = list(self.evaluator.touched)
        for subject, stored in zip(touched, self.evaluator.stored_states(touched, now), strict=True):
            detector = self.evaluator.detectors[subject]
            if stored.state is None and (stored.hash, stored.key) not in self._known:
                continue
            figures = {"due": detector.due, "pending": any(True for _ in detector.pending())}
            rows.append(state_row(stored) | figures)
            due = min(due, detector.due)
        return rows, due

    def _restore(self, where: str) -> None:
        sql = f"select hash, key, name, kind, content from qmf_states where {where}"
        for row in self._connection.execute(sql).fetchall():
            stored = StoredState(*row)
            if self.evaluator.restore(stored):
                self._known.add((stored.hash, stored.key))
            else:
                self.orphans.append(stored)


def _portions(rows: Iterable[SignalRow]) -> Iterator[list[SignalRow]]:
    iterator = iter(rows)
    while portion := list(islice(iterator, _PORTION)):
        yield portion


def _batches(rows: Sequence[dict[str, Any]], row: str) -> Iterator[Any]:
    schema = result_schema()
    for start in range(0, len(rows), _PORTION):
        own = [{**item, ROW: row} for item in rows[start : start + _PORTION]]
        yield import_pyarrow().RecordBatch.from_pylist(own, schema=schema)


def _alert_batches(alerts: Sequence[AlertRow], step: int, row: str) -> Iterator[Any]:
    for start in range(0, len(alerts), _PORTION):
        table = arrow_table(alerts[start : start + _PORTION], step)
        yield from fill_columns(table, result_schema(), ROW, row).to_batches()
