"""What a report shows, as values. Times are nanoseconds since 1970."""

from __future__ import annotations

import attrs

from qmf.pipeline.report.time_range import Span


@attrs.frozen(kw_only=True)
class Series:
    """One member of one object over time.

    Attributes:
        name, agent, object, member: of what; `name` is that of the class.
        unit: of the values; those of counters are per second.
        is_rate: it is a counter.
        points: time of each window's beginning in seconds, and the value there.
    """

    name: str
    agent: str
    object: str
    member: str
    unit: str | None
    is_rate: bool
    points: tuple[tuple[float, float], ...] = ()


@attrs.frozen(kw_only=True)
class Mover:
    """A series that isn't what it was.

    Attributes:
        series: it.
        before, after: mean of the span's first and second half.
        score: how far they are apart, measured by how far windows of one half are.
    """

    series: Series
    before: float
    after: float
    score: float

    @property
    def change(self) -> float:
        """The change as a part of the larger of both, from -1 to 1 for values of one sign."""
        level = max(abs(self.before), abs(self.after))
        return (self.after - self.before) / level if level else 0.0


@attrs.frozen(kw_only=True)
class Chart:
    """Series of one member together.

    Attributes:
        title: class and member.
        unit: of the values.
        series: the largest ones.
        more: how many objects are not among them.
    """

    title: str
    unit: str | None
    series: tuple[Series, ...]
    more: int = 0


@attrs.frozen(kw_only=True)
class Presence:
    """An interval of an agent's availability."""

    agent: str
    state: str
    epoch: int | None
    cause: str
    start_ns: int
    end_ns: int


@attrs.frozen(kw_only=True)
class AgentLine:
    """An agent in the table: seconds in each state, and how often it started anew."""

    agent: str
    up: float
    down: float
    unknown: float
    restarts: int

    @property
    def availability(self) -> float | None:
        """Part of the known time in which it was up; None where nothing is known."""
        known = self.up + self.down
        return self.up / known if known else None


@attrs.frozen(kw_only=True)
class AlertLine:
    """An alert; without an end it is open."""

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
class LifeLine:
    """Objects of one class: how many there were, came and went, by how they ended."""

    name: str
    objects: int
    created: int
    ended: tuple[tuple[str, int], ...]


@attrs.frozen(kw_only=True)
class Ended:
    """An object that is no more."""

    name: str
    agent: str
    object: str
    lived: float | None
    ended_ns: int
    ended_by: str


@attrs.frozen(kw_only=True)
class CallLine:
    """A call that the bus showed."""

    time_ns: int
    user: str | None
    origin: str | None
    agent: str | None
    operation: str
    target: str | None
    result: str
    text: str | None


@attrs.frozen(kw_only=True)
class Changed:
    """A property that changed."""

    time_ns: int
    name: str
    agent: str
    object: str
    property: str
    previous: str | None
    value: str | None


@attrs.frozen(kw_only=True)
class Report:
    """All of it.

    Attributes:
        title, lake, span: what it is about.
        made_ns: when it was made.
        samples: rows of objects.
        objects: different ones.
        events: number by the beginning of their window in seconds, and severity.
        alerts: None where the lake has no table of alerts.
        births: objects created and ended, by the beginning of the window in seconds.
        gaps: what recorders say they missed: reason and number.
        *_left: how many more there are than are shown.
    """

    title: str
    lake: str
    span: Span
    made_ns: int
    samples: int = 0
    objects: int = 0
    events: tuple[tuple[float, int, int], ...] = ()
    alerts: tuple[AlertLine, ...] | None = None
    presence: tuple[Presence, ...] = ()
    agents: tuple[AgentLine, ...] = ()
    movers: tuple[Mover, ...] = ()
    charts: tuple[Chart, ...] = ()
    lives: tuple[LifeLine, ...] = ()
    births: tuple[tuple[float, int, int], ...] = ()
    ended: tuple[Ended, ...] = ()
    ended_left: int = 0
    calls: tuple[CallLine, ...] = ()
    calls_left: int = 0
    changes: tuple[Changed, ...] = ()
    changes_left: int = 0
    gaps: tuple[tuple[str, int], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing was recorded."""
        return not (self.samples or self.events or self.presence)
