"""Evaluates rules over sorted signals: changes of alerts, and the states of the detectors. Pure.

Signals are sorted by rule, subject and time, so that a batch needs one detector at a time, and its memory doesn't grow
with the data. A stream keeps its detectors from step to step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from qmf.pipeline.correlate.alerts import PENDING, AlertRow
from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import BEGIN, NEVER, Detector, DetectorContext, Signal, open_alerts
from qmf.pipeline.correlate.rules import AbsenceRule, Rule
from qmf.pipeline.correlate.signal_reader import SignalRow

#: The subject of a detector: number of the rule, and key.
Subject = tuple[int, str]

#: Positions in a `SignalRow`.
RULE, KEY, AT, TS = 0, 1, 2, 3


@attrs.frozen
class StoredState:
    """The state of a detector, as of `Detector.dump`, with hash, name and kind of its rule, and its subject's key."""

    hash: str
    key: str
    name: str
    kind: str
    state: str | None  #: None for that of a new detector


@attrs.frozen(kw_only=True)
class EvaluationPass:
    """One pass over the signals."""

    begin: int  #: signals before this time were evaluated by earlier passes
    end: int  #: signals from this time on belong to later passes
    start: int  #: from when on expected subjects are waited for
    #: ends of agents that they announced within this time, as (time, agent), in order
    goodbyes: Sequence[tuple[int, str]] = ()
    outages: Sequence[tuple[int, int]] = ()  #: intervals in which no recorder was recording, as (begin, end), in order
    ended: Mapping[str, int] = attrs.field(factory=dict)  #: as of `ended_runs`
    #: rows may count at their own time; otherwise all count as of their arrival, and none is misdated
    dated: bool = True


@attrs.frozen
class EvaluationCounts:
    """What a pass did: the number of signals, and of these how many counted as of their arrival, or were dropped."""

    rows: int = 0
    misdated: int = 0
    too_late: int = 0

    def __add__(self, other: EvaluationCounts) -> EvaluationCounts:
        """The counts of both."""
        return EvaluationCounts(self.rows + other.rows, self.misdated + other.misdated, self.too_late + other.too_late)

    def __str__(self) -> str:
        return (
            f"{self.rows} rows evaluated, of which {self.misdated} count as of their arrival "
            f"and {self.too_late} came too late"
        )


class Evaluator:
    """Holds the detectors of some rules."""

    def __init__(self, rules: Sequence[Rule], hashes: Sequence[str]) -> None:
        """Begin without detectors; the hashes are those of the rules as the user wrote them."""
        self.rules = rules
        #: The numbers of rules that read nothing, as they don't fit their classes: time doesn't pass for them.
        self.left_out: frozenset[int] = frozenset()
        self.hashes = hashes
        self._numbers = {hash: number for number, hash in enumerate(hashes)}
        self._context = DetectorContext()
        #: How many goodbyes of the pass a detector knows, and the times of all.
        self._told: dict[Subject, int] = {}
        self._times: list[int] = []
        self.detectors: dict[Subject, Detector] = {}
        #: The subjects that the last pass touched.
        self.touched: set[Subject] = set()
        self.rows = self.misdated = 0

    def restore(self, stored: StoredState) -> bool:
        """Restore a detector, unless its subject has one; False if its rule is not among those evaluated."""
        number = self._numbers.get(stored.hash)
        if number is not None and stored.state is not None and (number, stored.key) not in self.detectors:
            self._detector((number, stored.key)).load(stored.state)
        return number is not None

    def stored_states(self, subjects: Iterable[Subject], now: int) -> Iterator[StoredState]:
        """The states of detectors after everything before a time."""
        for number, key in subjects:
            rule = self.rules[number]
            state = self.detectors[number, key].dump(now)
            yield StoredState(self.hashes[number], key, rule.name, rule.kind.value, state)

    def pending(self) -> Iterator[AlertRow]:
        """The alerts whose condition holds, but not for long enough yet."""
        for (number, _key), detector in self.detectors.items():
            for change in detector.pending():
                yield attrs.evolve(change, rule_hash=self.hashes[number], change=PENDING)

    def expected_signals(self, over: EvaluationPass) -> list[SignalRow]:
        """A row for each subject that is expected, before the time of the pass: the first one of its signals.

        For a batch, which is divided by subjects: the subjects of these rows are evaluated though they have no other.
        """
        at = over.begin - 1
        return [(*subject, *seed._replace(at=at, ts=at)) for subject, seed in self._seeds(over).items()]

    def batch(self, portions: Iterable[Sequence[SignalRow]], over: EvaluationPass) -> Iterator[AlertRow]:
        """Evaluate the sorted signals of some subjects, those of `expected_signals` among them; keep no detector.

        Signals outside of the time of the pass are left out. Numbers of signals are added to `rows` and `misdated`.
        """
        self._start(over)
        seeds = self._seeds(over)
        last: Subject | None = None
        for portion in portions:
            for subject, rows in _groups(portion):
                if last is not None and subject != last:
                    yield from self._finish_detector(last, over)
                last = subject
                if subject in seeds:
                    self._detector(subject).feed(seeds.pop(subject))
                if over.dated:
                    self.misdated += sum(row[AT] != row[TS] for row in rows)
                own = [row for row in rows if over.begin <= row[AT] < over.end]
                self.rows += len(own)
                self._feed(subject, own, over)
        if last is not None:
            yield from self._finish_detector(last, over)

    def expected_subjects(self) -> list[Subject]:
        """The subjects that are expected from the beginning."""
        return [
            (number, key)
            for number, rule in enumerate(self.rules)
            if isinstance(rule, AbsenceRule) and number not in self.left_out
            for key in rule.expected_keys
        ]

    def step(
        self,
        portions: Iterable[Sequence[SignalRow]],
        over: EvaluationPass,
        *,
        has: Callable[[Subject], bool] = lambda _subject: True,
    ) -> list[AlertRow]:
        """Evaluate the sorted signals of one step, which are within its time, and keep the detectors.

        `has` says whether an expected subject belongs to this evaluator; the signals are of those that do.
        """
        self._start(over)
        self.touched = set()
        for subject, seed in self._seeds(over).items():
            if subject not in self.detectors and has(subject):
                self._detector(subject).feed(seed)
                self.touched.add(subject)
        for portion in portions:
            for subject, own in _groups(portion):
                self._feed(subject, own, over)
        found: list[AlertRow] = []
        for subject, detector in self.detectors.items():
            if subject[0] in self.left_out:
                continue
            if over.goodbyes:
                self._tell(subject, detector, over, NEVER)
            elif detector.due >= over.end and subject not in self.touched:
                continue
            if detector.due < over.end:
                detector.advance(over.end)
            self.touched.add(subject)
            if detector.changes:
                found += [attrs.evolve(change, rule_hash=self.hashes[subject[0]]) for change in detector.changes]
                detector.changes = []
        return found

    # -- detectors

    def _seeds(self, over: EvaluationPass) -> dict[Subject, Signal]:
        """The subjects that are expected from the beginning, with the signal that says so."""
        return {
            subject: Signal(over.start, over.start, "", 0, None, BEGIN, None, None, subject[1] or None, None, None)
            for subject in self.expected_subjects()
        }

    def _start(self, over: EvaluationPass) -> None:
        if (self._context.outages, self._context.ended) != (over.outages, over.ended):
            self._context.outages, self._context.ended = over.outages, over.ended
            for detector in self.detectors.values():
                detector.on_ends_known()
        self._told = {}
        self._times = [at for at, _agent in over.goodbyes]

    def _detector(self, subject: Subject) -> Detector:
        detector = self.detectors.get(subject)
        if detector is None:
            number, key = subject
            detector = self.detectors[subject] = create_detector(self.rules[number], key, self._context)
        return detector

    def _feed(self, subject: Subject, rows: Sequence[SignalRow], over: EvaluationPass) -> None:
        detector = self._detector(subject)
        self.touched.add(subject)
        feed, tells = detector.feed, bool(over.goodbyes)
        for row in rows:
            at = row[AT]
            if tells:
                self._tell(subject, detector, over, at)
            if detector.due < at:
                detector.advance(at)
            feed(Signal._make(row[AT:]))

    def _tell(self, subject: Subject, detector: Detector, over: EvaluationPass, until: int) -> None:
        """Tell a detector about the goodbyes before a time, each once in a pass."""
        start = self._told.get(subject, 0)
        end = bisect_left(self._times, until, start)
        for at, agent in over.goodbyes[start:end]:
            if detector.due < at:
                detector.advance(at)
            detector.goodbye(agent, at)
        self._told[subject] = end

    def _finish_detector(self, subject: Subject, over: EvaluationPass) -> Iterator[AlertRow]:
        """Bring a detector to the end of a pass, and forget it."""
        detector = self.detectors.pop(subject)
        self._tell(subject, detector, over, NEVER)
        if detector.due < over.end:
            detector.advance(over.end)
        for change in detector.changes:
            yield attrs.evolve(change, rule_hash=self.hashes[subject[0]])


def orphans_cleared(stored: StoredState, at: int) -> list[AlertRow]:
    """The ends of the alerts of a rule that was changed or removed, by the state of a detector of it."""
    alerts = open_alerts(stored.name, stored.kind, stored.key, stored.state or "{}")
    return [attrs.evolve(alert.clear(at, "the rule was changed or removed"), rule_hash=stored.hash) for alert in alerts]


def _groups(rows: Sequence[SignalRow]) -> Iterator[tuple[Subject, Sequence[SignalRow]]]:
    """Rows of one subject together."""
    start = 0
    for index in range(1, len(rows) + 1):
        if index == len(rows) or rows[index][KEY] != rows[start][KEY] or rows[index][RULE] != rows[start][RULE]:
            yield (rows[start][RULE], rows[start][KEY]), rows[start:index]
            start = index
