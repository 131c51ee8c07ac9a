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
    """

    name: str
    agent: str
    object: str
    member: str
    unit: str | None
    is_rate: bool
    points: tuple[tuple[float, float], ...] = ()


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
        level = max(abs(self.before), abs(self.after))
        return (self.after - self.before) / level if level else 0.0


@attrs.frozen(kw_only=True)
class Chart:
    """Series of one member together.

    Attributes:
        title: class and member.
        unit: of the values.
        series: the largest ones.
        more: number of objects that are not among them.
    """

    title: str
    unit: str | None
    series: tuple[Series, ...]
    more: int = 0


@attrs.frozen(kw_only=True)
class AvailabilityInterval:
    """An interval of an agent's availability."""

    agent: str
    state: str
    epoch: int | None
    cause: str
    start_ns: int
    end_ns: int


@attrs.frozen(kw_only=True)
class AgentRow:
    """An agent in its table: seconds in each state, and number of restarts."""

    agent: str
    up: float
    down: float
    unknown: float
    restarts: int

    @property
    def availability(self) -> float | None:
        """Fraction of the known time in which it was up; None where nothing is known."""
        known = self.up + self.down
        return self.up / known if known else None


@attrs.frozen(kw_only=True)
class AlertRow:
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


@attrs.frozen(kw_only=True)
class EndedObjectRow:
    """An object that ended, in its table; `lived` is in seconds."""

    name: str
    agent: str
    object: str
    lived: float | None
    ended_ns: int
    ended_by: str


@attrs.frozen(kw_only=True)
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


@attrs.frozen(kw_only=True)
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
        samples: number of rows of objects.
        objects: number of objects.
        events: start of the window in seconds, severity, and number.
        alerts: None where the lake has no table of alerts.
        lifetimes: start of the window in seconds, objects created, and objects ended.
        gaps: what recorders missed: reason and number.
        *_left: number of rows that are not shown.
    """

    title: str
    lake: str
    time_range: TimeRange
    made_ns: int
    samples: int = 0
    objects: int = 0
    events: tuple[tuple[float, int, int], ...] = ()
    alerts: tuple[AlertRow, ...] | None = None
    presence: tuple[AvailabilityInterval, ...] = ()
    agents: tuple[AgentRow, ...] = ()
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
