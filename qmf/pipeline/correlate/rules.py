"""Rules as values: which rows to select, when to raise an alert, and its text. Pure: no file, no Spark.

There are six kinds of rules, each a subclass of `Rule`. `rule_file` reads rules from TOML, `detectors` evaluate them.
"""

from __future__ import annotations

import enum
import hashlib
import json
from typing import ClassVar

import attrs

from qmf.schema import Severity

SECOND = 10**9

#: Tables of a file of rules that are not rules, but about notifications.
NOTIFY_TABLES = frozenset({"route", "receiver", "inhibit"})


class RuleKind(enum.Enum):
    """What a rule detects; the value is the keyword in the file."""

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
    """The rows that a rule selects.

    Attributes:
        source: the table.
        package, name: of the class; None for any package (only one may have the class), and for heartbeats.
        agent, object: patterns with ``*`` and ``?`` that the names must match; None for all.
        where: condition in Spark's SQL on the columns of the class; None for no condition.
    """

    source: RowSource
    package: str | None = None
    name: str | None = None
    agent: str | None = None
    object: str | None = None
    where: str | None = None

    @property
    def class_text(self) -> str:
        """The class, for messages."""
        return f"{self.package}:{self.name}" if self.package else self.name or self.source.value


@attrs.frozen(kw_only=True)
class Rule:
    """Base of all rules.

    Attributes:
        name: unique; part of its alerts' ids.
        severity: of its alerts.
        message: template of the alerts' text; None for that of the kind.
        evidence: columns to keep with each sample or event of the evidence.
    """

    kind: ClassVar[RuleKind]

    name: str
    severity: Severity = Severity.WARN
    message: str | None = None
    evidence: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """12 hex digits that depend on everything in the rule."""
        content = {"kind": self.kind.value, **attrs.asdict(self, value_serializer=_plain)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """Its selectors; the role of a signal is the index of its selector."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Limits:
    """When a value is bad, and when it is good again.

    Attributes:
        limit: a value beyond it is bad.
        above: beyond means higher; otherwise lower.
        clear: a value here, or on the good side of it, is good again: hysteresis.
        duration: ns that the value must be bad without interruption; 0 for at once.
        stale: ns after which a value without a newer one is discarded; None for never.
    """

    limit: float
    above: bool
    clear: float
    duration: int = 0
    stale: int | None = None

    def is_bad(self, value: float) -> bool:
        """True where a value is beyond the limit."""
        return value > self.limit if self.above else value < self.limit

    def is_good(self, value: float) -> bool:
        """True where a value clears the alert."""
        return value <= self.clear if self.above else value >= self.clear


@attrs.frozen(kw_only=True)
class ThresholdRule(Rule):
    """A value of an object is beyond a limit for some time.

    Attributes:
        of: the objects.
        value: column, or an expression in Spark's SQL.
        limits: for the value.
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
        limits: for the change per second.
        over: ns over which the change is measured; 0 for the step from one sample to the next.
        counter: the value only grows, so a lower one is a restart; None to find out from the schema.
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
    """Nothing arrived from an agent or object that was there before.

    Attributes:
        of: the rows that are expected.
        per_agent: the subject is an agent; otherwise an object.
        duration: ns without a row, while the bus was recorded.
        goodbye: also for agents that said goodbye, and objects that were deleted.
        forget: ns without a row after which the alert is cleared and none is expected any more; None for never.
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
    """Events arrive one after the other within a time.

    Attributes:
        steps: the events, in order; at least two.
        by: columns or expressions that must be the same in all of them.
        within: ns from the first to the last.
        clear_after: ns without another complete sequence, after which the alert is cleared.
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
    """A number of events of a group arrive within a time.

    Attributes:
        of: the events.
        by: columns or expressions that define the groups.
        at_least: number of events.
        within: ns; the alert is cleared when fewer events are that recent.
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
    """An event arrives while the object that it is about is in a certain state.

    Attributes:
        event, object: the rows to join; `object.where` is the state.
        event_id, object_id: columns or expressions that must be the same, besides the agent.
        same_agent: the event's agent must be the object's.
        within: ns between the two at most.
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
