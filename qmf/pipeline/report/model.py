"""The content of a report, as values. Times are nanoseconds since 1970."""

from __future__ import annotations

import attrs

from qmf.pipeline.report.time_range import TimeRange


@attrs.frozen(kw_only=True)
class Series:
    """One member of one object over time.

    Attributes:
        name, agent, object, member: of the series; `name` is that of the class.
        unit: of the values; values of counters are per second.
        is_rate: the member is a counter.
        points: start of each window in seconds, and the value.
        label: what tells its object apart in its chart; empty where there is nothing to tell.
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
    """A series whose values changed: a "top mover".

    Attributes:
        series: the series.
        before, after: mean of the first and the second half of the time range.
        score: difference of the means, relative to the spread of the windows within a half.
    """

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
    """Values of a series that were far from the usual ones.

    Attributes:
        series: the series.
        start, end: of the windows, in seconds since 1970.
        value: the value that was furthest away.
        usual: the median that it was compared with.
        spread: the usual distance from it: as much as a standard deviation, for values of a normal distribution.
        days: number of days whose values at this hour it was compared with; 0: with those of the whole range.
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
    """An agent in its table.

    Attributes:
        agent: its name.
        up, down, unknown: seconds in each state.
        restarts: how often it restarted.
        state: at the end of the range.
        known_until_ns: until when that is known: its last heartbeat, or the end of the recording.
    """

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
    """A call in its table."""

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
    """A change of a property in its table."""

    time_ns: int
    name: str
    agent: str
    object: str
    property: str
    previous: str | None
    value: str | None


@attrs.frozen(kw_only=True)
class Report:
    """The whole report.

    Attributes:
        title, lake, time_range: subject of the report.
        made_ns: when it was made.
        asked: the range that was asked for; `time_range` is the part of it in which something was recorded.
        known_until_ns: the last row of the recording in the range.
        unrecorded: longer times in the range in which nothing was recorded.
        samples: number of rows of objects.
        objects: number of objects.
        own_left_out: own objects of agents and consoles are not in it.
        events: start of the window in seconds, severity, and number.
        event_classes: class, severity and number of the most frequent events.
        anomalies: None where there are too few windows to look for them.
        anomaly_days: the number of days that values were compared with; 0 where there were too few.
        alerts: None where the lake has no table of alerts.
        lifetimes: start of the window in seconds, objects created, and objects ended.
        gaps: what recorders missed: reason and number.
        *_left: number of rows that are not shown.
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
    def is_empty(self) -> bool:
        """Nothing was recorded."""
        return not (self.samples or self.events or self.presence)
