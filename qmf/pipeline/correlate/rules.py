"""Rules as values: what to look at, when to raise an alert, and what it says. Pure: no file, no Spark.

A rule belongs to one of six kinds. What all have is in `Rule`, what a kind adds in its class. `rulefile` makes them of
TOML, `machines` say what they do.
"""

from __future__ import annotations

import enum
import hashlib
import json
from typing import ClassVar

import attrs

from qmf.schema import Severity

SECOND = 10**9


class RuleKind(enum.Enum):
    """What a rule watches for; the value is the word in the file."""

    THRESHOLD = "threshold"
    RATE = "rate"
    ABSENCE = "absence"
    SEQUENCE = "sequence"
    COUNT = "count"
    JOIN = "join"


class RowSource(enum.Enum):
    """Which table of the lake a selector reads."""

    SAMPLES = "samples"
    EVENTS = "events"
    HEARTBEATS = "heartbeats"


@attrs.frozen(kw_only=True)
class Selector:
    """Which rows a rule looks at.

    Attributes:
        source: the table.
        package, name: of the class; None for any package (there must be one only), and for heartbeats.
        agent, object: patterns with ``*`` and ``?`` that the names must fit; None for all.
        where: condition in Spark's SQL on the columns of the class; None for none.
    """

    source: RowSource
    package: str | None = None
    name: str | None = None
    agent: str | None = None
    object: str | None = None
    where: str | None = None

    @property
    def class_text(self) -> str:
        """The class as in a message."""
        return f"{self.package}:{self.name}" if self.package else self.name or self.source.value


@attrs.frozen(kw_only=True)
class Rule:
    """What all rules have.

    Attributes:
        name: tells it apart; part of its alerts' ids.
        severity: of its alerts.
        message: template of the text; None for that of the kind.
        evidence: columns that are kept with each sample or event of the evidence.
    """

    kind: ClassVar[RuleKind]

    name: str
    severity: Severity = Severity.WARN
    message: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """12 hex digits that change with anything in the rule."""
        content = {"kind": self.kind.value, **attrs.asdict(self, value_serializer=_plain)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """All rows it looks at; a signal's role is the place here."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Limits:
    """When a number counts as bad, and when as good again.

    Attributes:
        limit: bad is beyond it.
        above: beyond is higher; lower otherwise.
        clear: good again is here, or on the good side of it: hysteresis.
        duration: ns that it must be bad without a break; 0 for at once.
        stale: ns after which a value without a newer one is forgotten; None for never.
    """

    limit: float
    above: bool
    clear: float
    duration: int = 0
    stale: int | None = None

    def is_bad(self, value: float) -> bool:
        """It is beyond the limit."""
        return value > self.limit if self.above else value < self.limit

    def is_good(self, value: float) -> bool:
        """An alert ends."""
        return value <= self.clear if self.above else value >= self.clear


@attrs.frozen(kw_only=True)
class ThresholdRule(Rule):
    """A value of an object is beyond a limit for some time.

    Attributes:
        of: the objects.
        value: column, or an expression in Spark's SQL.
        limits: see there.
    """

    kind = RuleKind.THRESHOLD

    of: Selector
    value: str
    limits: Limits

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return (self.of,)


@attrs.frozen(kw_only=True)
class RateRule(Rule):
    """A value of an object changes too fast, or too slowly.

    Attributes:
        of, value: as of `ThresholdRule`.
        limits: on the change per second.
        over: ns that the change is measured over; 0 for the step from one sample to the next.
        counter: the value counts up, so a lower one is a restart; None asks the schema.
        continued: counters outlive restarts of their agents: only a lower value is a restart.
    """

    kind = RuleKind.RATE

    of: Selector
    value: str
    limits: Limits
    over: int = 0
    counter: bool | None = None
    continued: bool = False

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return (self.of,)


@attrs.frozen(kw_only=True)
class AbsenceRule(Rule):
    """Nothing was heard of somebody who was there.

    Attributes:
        of: what should come.
        per_agent: whoever is missed is an agent; an object otherwise.
        duration: ns without anything, while the bus was recorded.
        goodbye: agents that took their leave, and objects that were deleted, are missed, too.
        forget: ns without anything after which the alert ends and nobody is expected any more; None for never.
    """

    kind = RuleKind.ABSENCE

    of: Selector
    per_agent: bool
    duration: int
    goodbye: bool = True
    forget: int | None = None

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return (self.of,)


@attrs.frozen(kw_only=True)
class SequenceRule(Rule):
    """Events come one after the other within a time.

    Attributes:
        steps: the events, in order; at least two.
        by: columns or expressions that must be the same in all of them.
        within: ns from the first to the last.
        clear_after: ns without another whole sequence, after which the alert ends.
    """

    kind = RuleKind.SEQUENCE

    steps: tuple[Selector, ...]
    by: tuple[str, ...]
    within: int
    clear_after: int

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return self.steps


@attrs.frozen(kw_only=True)
class CountRule(Rule):
    """So many events of a group come within a time.

    Attributes:
        of: the events.
        by: columns or expressions that make the groups.
        at_least: how many.
        within: ns; the alert ends when fewer are that young.
    """

    kind = RuleKind.COUNT

    of: Selector
    by: tuple[str, ...]
    at_least: int
    within: int

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return (self.of,)


@attrs.frozen(kw_only=True)
class JoinRule(Rule):
    """An event comes, and the object that it is about is in a state of interest.

    Attributes:
        event, object: what to join; `object.where` is the state of interest.
        event_id, object_id: columns or expressions that must be the same, besides the agent.
        same_agent: the event's agent must be the object's.
        within: ns between the two at most: an older state is not known any more, a newer one comes too late.
    """

    kind = RuleKind.JOIN

    event: Selector
    object: Selector
    event_id: str
    object_id: str
    same_agent: bool
    within: int

    @property
    def selectors(self) -> tuple[Selector, ...]:
        return (self.event, self.object)


def _plain(_owner: object, _field: object, value: object) -> object:
    return value.value if isinstance(value, enum.Enum) else value
