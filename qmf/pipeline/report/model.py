"""The content of a report, as values. Times are nanoseconds since 1970."""

from __future__ import annotations

import attrs

from qmf.pipeline.report.time_range import TimeRange


@attrs.frozen(kw_only=True)
class Series:
    """One member of one object over time: the start of each window in seconds, and its value, of counters per second.

    `name` is that of the class; `label` tells the object apart in its chart.
    """

    name: str
    agent: str
    object: str
    member: str
    unit: str | None
    is_rate: bool
    points: tuple[tuple[float, float], ...] = ()
    label: str = ""


@attrs.frozen(kw_only=True)
class ChangedSeries:
    """A "top mover": the means of both halves of the range differ, by `score` relative to the spread within a half."""

    series: Series
    before: float
    after: float
    score: float

    @property
    def change(self) -> float:
        """The change relative to the larger mean, from -1 to 1 for values of one sign."""
        return relative_change(self.before, self.after)


def relative_change(before: float, after: float) -> float:
    """The change relative to the larger value; 0 where both are 0."""
    level = max(abs(before), abs(after))
    return (after - before) / level if level else 0.0


@attrs.frozen(kw_only=True)
class Chart:
    """Series of one member together: the largest ones, and the number of objects that are not among them."""

    title: str
    unit: str | None
    series: tuple[Series, ...]
    more: int = 0
    is_rate: bool = True


@attrs.frozen(kw_only=True)
class Anomaly:
    """Windows of a series, in seconds since 1970, with values far from the usual ones; `value` was furthest away.

    The median `usual`, and `spread`, which is like a standard deviation, are those of this hour on `days` days; of all
    values for 0.
    """

    series: Series
    start: float
    end: float
    value: float
    usual: float
    spread: float
    days: int = 0

    @property
    def score(self) -> float:
        """The distance from the usual value in spreads."""
        return abs(self.value - self.usual) / self.spread if self.spread else 0.0


@attrs.frozen(kw_only=True)
class ComparedSeries:
    """The mean of a series in two ranges; None where it had no values."""

    series: Series
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """The change relative to the larger mean; None where one is not known."""
        if self.before is None or self.after is None:
            return None
        return relative_change(self.before, self.after)


@attrs.frozen(kw_only=True)
class ComparedNumber:
    """A number of the summary in two ranges; `unit` is empty or ``%``. None where it is not known."""

    name: str
    before: float | None
    after: float | None
    unit: str = ""


@attrs.frozen(kw_only=True)
class RangeComparison:
    """The report's range beside another one: the series that differ most, and the number of others that differ."""

    other: TimeRange
    numbers: tuple[ComparedNumber, ...]
    series: tuple[ComparedSeries, ...]
    left: int = 0


@attrs.frozen
class AvailabilityInterval:
    """A state of an agent, from one time to another; `cause` is that of its beginning."""

    agent: str
    state: str
    epoch: int | None
    cause: str
    start_ns: int
    end_ns: int


@attrs.frozen(kw_only=True)
class ReportedAgent:
    """An agent in its table: seconds in each state, and the last state with the time until which it is known."""

    agent: str
    up: float
    down: float
    unknown: float
    restarts: int
    state: str = "unknown"
    known_until_ns: int = 0

    @property
    def availability(self) -> float | None:
        """Fraction of the known time in which it was up; None where nothing is known."""
        known = self.up + self.down
        return self.up / known if known else None


@attrs.frozen(kw_only=True)
class ReportedAlert:
    """An alert in its table; `cleared_ns` is None while it is open."""

    alert_id: str
    rule: str
    severity: int
    subject: str
    message: str
    began_ns: int
    raised_ns: int
    cleared_ns: int | None = None
    reason: str = ""


@attrs.frozen(kw_only=True)
class ClassObjectsRow:
    """Objects of one class in their table: numbers that existed, were created, and ended by each cause."""

    name: str
    objects: int
    created: int
    ended: tuple[tuple[str, int], ...]


@attrs.frozen
class EndedObjectRow:
    """An object that ended, in its table; `lived` is in seconds."""

    name: str
    agent: str
    object: str
    lived: float | None
    ended_ns: int
    ended_by: str


@attrs.frozen
class CallRow:
    time_ns: int
    user: str | None
    origin: str | None
    agent: str | None
    operation: str
    target: str | None
    result: str
    text: str | None


@attrs.frozen
class PropertyChangeRow:
    time_ns: int
    name: str
    agent: str
    object: str
    property: str
    previous: str | None
    value: str | None


#: The units of numbers of the summary that have one.
UNITS = {"availability": "%"}


@attrs.frozen(kw_only=True)
class Report:
    """The whole report; `time_range` is the part of the range that was `asked` for in which something was recorded.

    `events` and `lifetimes` have the start of a window in seconds, then severity and number, or the numbers of objects
    created and ended; `event_classes` class, severity and number. Fields that end with `_left` are numbers of rows that
    are not shown. Where `anomalies` is None nobody looked for them, and where `alerts` is, nothing was correlated;
    `anomaly_days` is 0 for too few days.
    """

    title: str
    lake: str
    time_range: TimeRange
    made_ns: int
    asked: TimeRange | None = None
    known_until_ns: int = 0
    unrecorded: tuple[tuple[int, int], ...] = ()
    own_left_out: bool = True
    samples: int = 0
    objects: int = 0
    events: tuple[tuple[float, int, int], ...] = ()
    event_classes: tuple[tuple[str, int, int], ...] = ()
    event_classes_left: int = 0
    anomalies: tuple[Anomaly, ...] | None = None
    anomalies_left: int = 0
    anomaly_days: int = 0
    comparison: RangeComparison | None = None
    alerts: tuple[ReportedAlert, ...] | None = None
    presence: tuple[AvailabilityInterval, ...] = ()
    agents: tuple[ReportedAgent, ...] = ()
    movers: tuple[ChangedSeries, ...] = ()
    charts: tuple[Chart, ...] = ()
    classes: tuple[ClassObjectsRow, ...] = ()
    lifetimes: tuple[tuple[float, int, int], ...] = ()
    ended: tuple[EndedObjectRow, ...] = ()
    ended_left: int = 0
    calls: tuple[CallRow, ...] = ()
    calls_left: int = 0
    changes: tuple[PropertyChangeRow, ...] = ()
    changes_left: int = 0
    gaps: tuple[tuple[str, int], ...] = ()

    @property
    def numbers(self) -> dict[str, float | None]:
        """The numbers of the summary, in `UNITS`."""
        known = sum(row.up + row.down for row in self.agents)
        return {
            "agents": len(self.agents),
            "availability": sum(row.up for row in self.agents) / known * 100 if known else None,
            "restarts": sum(row.restarts for row in self.agents),
            "objects": self.objects,
            "samples": self.samples,
            "events": sum(count for _, _, count in self.events),
            "alerts": None if self.alerts is None else len(self.alerts),
        }

    @property
    def is_empty(self) -> bool:
        return not (self.samples or self.events or self.presence)
