"""Rules as values: which rows to select, when to raise an alert, and its text. Pure: no file, no engine.

There are seven kinds of rules, each a subclass of `Rule`. `rule_file` reads rules from TOML, `detectors` evaluate them.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping
from typing import ClassVar

import attrs

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.schema import Severity

SECOND = 10**9

#: Tables of a file of rules that are not rules, but about notifications.
NOTIFY_TABLES = frozenset({"route", "receiver", "inhibit"})


class RuleError(PipelineError):
    """Rules that can't be evaluated: a line for each error, with file, line, rule and key."""


class RuleKind(enum.Enum):
    """What a rule detects; the value is the keyword in the file."""

    THRESHOLD = "threshold"
    RATE = "rate"
    RATIO = "ratio"
    ABSENCE = "absence"
    SEQUENCE = "sequence"
    COUNT = "count"
    JOIN = "join"


class SelectedTable(enum.Enum):
    """Which table of the lake a selector reads."""

    SAMPLES = "samples"
    EVENTS = "events"
    HEARTBEATS = "heartbeats"
    GAPS = "gaps"
    AGENTS = "agents"

    @property
    def has_class(self) -> bool:
        """True where a selector names a class."""
        return self in (SelectedTable.SAMPLES, SelectedTable.EVENTS)

    @property
    def kind(self) -> RowKind:
        """The kind of its rows."""
        return RowKind.OBJECTS if self is SelectedTable.SAMPLES else RowKind(self.value)


class Aggregate(enum.Enum):
    """How the values of a group's members become one."""

    SUM = "sum"
    AVERAGE = "avg"
    MIN = "min"
    MAX = "max"
    COUNT = "count"


class Per(enum.Enum):
    """The subjects of an absence rule."""

    AGENT = "agent"
    OBJECT = "object"
    RULE = "rule"  #: one for the whole rule


@attrs.frozen(kw_only=True)
class RuleSelector:
    """The rows that a rule selects."""

    source: SelectedTable  #: the table
    #: and `name`: of the class; None for any package (only one may have the class), and for rows without a class
    package: str | None = None
    name: str | None = None
    agent: str | None = None  #: and `object`: patterns with ``*`` and ``?`` that the names must match; None for all
    object: str | None = None
    where: str | None = None  #: condition in SQL on the columns of the class; None for no condition

    @property
    def class_text(self) -> str:
        """The class, for messages."""
        return f"{self.package}:{self.name}" if self.package else self.name or self.source.value


@attrs.frozen
class RulePlace:
    """Where a rule and its keys are written, for messages; lines are missing where they are not known."""

    file: str = "rules"
    line: int | None = None
    lines: Mapping[str, int] = attrs.field(factory=dict)

    def of(self, key: str) -> str:
        """File and line of a key."""
        line = self.lines.get(key, self.line)
        return self.file if line is None else f"{self.file}:{line}"


@attrs.frozen(kw_only=True)
class Rule:
    """Base of all rules.

    Attributes:
        name: unique; part of its alerts' ids.
        severity: of its alerts; of a rule with several levels that of the lowest.
        message: template of the alerts' text; None for that of the kind.
        labels, annotations: templates of the alerts' labels and further texts, by name.
        unit: of the value, for people; None to find out from the schema.
        follow: for each column with a reference, the class of the objects that it refers to, ``package:class``.
        evidence: columns to keep with each sample or event of the evidence.
        place: where it is written; rules that differ in it only are equal.
    """

    kind: ClassVar[RuleKind]

    name: str
    severity: Severity = Severity.WARN
    message: str | None = None
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    unit: str | None = None
    follow: Mapping[str, str] = attrs.field(factory=dict)
    evidence: tuple[str, ...] = ()
    place: RulePlace = attrs.field(factory=RulePlace, eq=False, repr=False)

    @property
    def hash(self) -> str:
        """12 hex digits that depend on everything in the rule but its place."""
        content = attrs.asdict(self, filter=lambda item, _value: item.name != "place", value_serializer=_plain)
        content["kind"] = self.kind.value
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def selectors(self) -> tuple[RuleSelector, ...]:
        """Its selectors; the role of a signal is the index of its selector."""
        raise NotImplementedError

    def where(self, key: str) -> str:
        """File, line, rule and key, for messages."""
        return f"{self.place.of(key.partition('.')[0])}: {self.name}: {key}"

    @property
    def grouped_by(self) -> tuple[str, ...]:
        """The columns or expressions that identify a subject; none where agent and object do."""
        found: tuple[str, ...] = getattr(self, "by", ())
        return found


@attrs.frozen(kw_only=True)
class _OneSelectorRule(Rule):
    """Base of rules about the rows of one selector."""

    of: RuleSelector

    @property
    def selectors(self) -> tuple[RuleSelector, ...]:
        return (self.of,)


@attrs.frozen(kw_only=True)
class Level:
    """A limit with its severity."""

    severity: Severity  #: of the alert while this is the highest level that applies
    limit: float  #: a value beyond it is bad
    clear: float  #: a value here, or on the good side of it, is good again: hysteresis
    duration: int = 0  #: ns that the value must be bad without interruption; 0 for at once


@attrs.frozen(kw_only=True)
class Limits:
    """When a value is bad, and when it is good again."""

    above: bool  #: beyond a limit means higher; otherwise lower
    levels: tuple[Level, ...]  #: from the least severe to the most severe; each limit is beyond the one before
    stale: int | None = None  #: ns after which a value without a newer one is discarded; None for never
    keep: int = 0  #: ns that an alert stays after its value was good again

    def is_bad(self, value: float, level: Level) -> bool:
        """True where a value is beyond the limit of a level."""
        return value > level.limit if self.above else value < level.limit

    def is_good(self, value: float, level: Level) -> bool:
        """True where a value clears a level."""
        return value <= level.clear if self.above else value >= level.clear


@attrs.frozen(kw_only=True)
class ValueRule(_OneSelectorRule):
    """Base of rules that compare a number with limits."""

    value: str  #: column, or an expression in SQL
    limits: Limits  #: for the number
    #: columns or expressions that define the groups of `aggregate`, or the subjects; none for agent and object
    by: tuple[str, ...] = ()
    aggregate: Aggregate | None = None  #: the values of a group's members become one; None for a number of each subject


@attrs.frozen(kw_only=True)
class ThresholdRule(ValueRule):
    """A value is beyond a limit for some time."""

    kind = RuleKind.THRESHOLD


@attrs.frozen(kw_only=True)
class RateRule(ValueRule):
    """A value changes too fast, or too slowly: the number is the change per second."""

    kind = RuleKind.RATE

    over: int = 0  #: ns over which the change is measured; 0 for the step from one sample to the next
    counter: bool | None = None  #: the value only grows, so a lower one is a restart; None to find out from the schema
    continued: bool = False  #: counters outlive restarts of their agents: only a lower value is a restart


@attrs.frozen(kw_only=True)
class RatioSide:
    """One side of a ratio."""

    of: RuleSelector  #: the rows with the value
    value: str  #: column, or an expression in SQL
    id: str  #: column or expression that must be the same on both sides


@attrs.frozen(kw_only=True)
class RatioRule(Rule):
    """The value of an object, divided by that of another object that it belongs to, is beyond a limit."""

    kind = RuleKind.RATIO

    dividend: RatioSide  #: its objects are the subjects
    divisor: RatioSide  #: where several objects have the same id, their values are added
    limits: Limits  #: for the quotient
    same_agent: bool = True  #: both sides must have the same agent

    @property
    def selectors(self) -> tuple[RuleSelector, ...]:
        return (self.dividend.of, self.divisor.of)


@attrs.frozen(kw_only=True)
class AbsenceRule(_OneSelectorRule):
    """Nothing arrived from an agent or object that was there before, or that must be there."""

    kind = RuleKind.ABSENCE

    per: Per  #: what a subject is
    duration: int  #: ns without a row, while the bus was recorded
    expect: tuple[str, ...] = ()  #: names of agents that must be there from the beginning, even if they were never seen
    goodbye: bool = True  #: also for agents that said goodbye, and objects that were deleted
    #: ns without a row after which the alert is cleared and none is expected any more; None for never
    forget: int | None = None

    @property
    def expected_keys(self) -> tuple[str, ...]:
        """The keys of subjects that exist from the beginning."""
        return ("",) if self.per is Per.RULE else self.expect


@attrs.frozen(kw_only=True)
class SequenceRule(Rule):
    """Events arrive one after the other within a time."""

    kind = RuleKind.SEQUENCE

    steps: tuple[RuleSelector, ...]  #: the events, in order; at least two
    by: tuple[str, ...]  #: columns or expressions that must be the same in all of them
    within: int  #: ns from the first to the last
    clear_after: int  #: ns without another complete sequence, after which the alert is cleared

    @property
    def selectors(self) -> tuple[RuleSelector, ...]:
        return self.steps


@attrs.frozen(kw_only=True)
class CountRule(_OneSelectorRule):
    """A number of events, or other rows, of a group arrive within a time."""

    kind = RuleKind.COUNT

    by: tuple[str, ...]  #: columns or expressions that define the groups
    at_least: int  #: number of events
    within: int  #: ns; the alert is cleared when fewer events are that recent


@attrs.frozen(kw_only=True)
class JoinRule(Rule):
    """An event arrives while the object that it is about is in a certain state."""

    kind = RuleKind.JOIN

    event: RuleSelector  #: and `object`: the rows to join; `object.where` is the state that the rule is about
    object: RuleSelector
    event_id: str  #: and `object_id`: columns or expressions that must be the same, besides the agent
    object_id: str
    same_agent: bool  #: the event's agent must be the object's
    within: int  #: ns between the two at most

    @property
    def selectors(self) -> tuple[RuleSelector, ...]:
        return (self.event, self.object)


def _plain(_owner: object, _field: object, value: object) -> object:
    return value.value if isinstance(value, enum.Enum) else value
