"""What mutes an alert: a silence, or inhibition by one that makes it superfluous, e.g. that its agent is dead. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import NAME_LABEL, Alert
from qmf.pipeline.correlate.rules import Rule, SelectedTable
from qmf.pipeline.notifying.matchers import Matcher, all_match
from qmf.pipeline.notifying.silences import Silence, find_silence

#: Default of `InhibitRule.outlast`.
OUTLAST = 60 * 10**9


@attrs.frozen(kw_only=True)
class InhibitRule:
    """While an alert matches the source, those that match the target are not notified."""

    name: str = ""  #: for people; may be empty
    source: tuple[Matcher, ...]  #: and `target`: matchers of labels
    target: tuple[Matcher, ...]
    equal: tuple[str, ...] = ()  #: labels whose values must be the same in both
    #: ns that an ended source still inhibits alerts that began before its end: what follows from it ends a little
    #: later
    outlast: int = OUTLAST

    def to_json(self) -> dict[str, Any]:
        """For a file."""
        sides = {name: [matcher.to_json() for matcher in getattr(self, name)] for name in ("source", "target")}
        return attrs.asdict(self, recurse=False) | sides

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> InhibitRule:
        """The reverse of `to_json`."""
        sides = {name: tuple(map(Matcher.from_json, content[name])) for name in ("source", "target")}
        return cls(**{**content, **sides, "equal": tuple(content["equal"])})


#: Rules whose alerts are about what an agent publishes of its objects.
_STATE_KINDS = ("threshold", "rate", "ratio", "absence")


def default_inhibition(rules: Iterable[Rule]) -> tuple[InhibitRule, ...]:
    """The inhibition where a configuration has none: of an agent without heartbeats, nothing else is notified.

    Its objects are not measured any more, so that other absences follow from it and values are those of before. Alerts
    that came from events are not inhibited: they happened.
    """
    sources: list[str] = []
    targets: list[str] = []
    for rule in rules:
        if rule.kind.value in _STATE_KINDS:
            of_heartbeats = all(selector.source is SelectedTable.HEARTBEATS for selector in rule.selectors)
            (sources if of_heartbeats else targets).append(rule.name)
    if not sources or not targets:
        return ()
    return (
        InhibitRule(
            name="agent-dead",
            source=(_one_of(sources), Matcher("agent", "", is_equal=False)),
            target=(_one_of(targets),),
            equal=("agent",),
        ),
    )


def _one_of(names: Iterable[str]) -> Matcher:
    return Matcher(NAME_LABEL, "|".join(re.escape(name) for name in names), is_regex=True)


class Inhibitor:
    """Answers which alert inhibits another; made from the alerts that are active at one time."""

    def __init__(
        self, rules: Sequence[InhibitRule], alerts: Iterable[Alert], ended: Iterable[tuple[Alert, int]] = ()
    ) -> None:
        """Index the sources among alerts, and among those that ended a short time ago, with the ns since then."""
        self._rules = rules
        firing = sorted((alert for alert in alerts if alert.is_firing), key=lambda alert: (alert.starts_ns, alert.id))
        #: For each rule by its values: sources, and whether they match the target as well.
        self._sources: list[dict[tuple[str, ...], list[tuple[Alert, bool]]]] = []
        candidates = [*((alert, 0) for alert in firing), *ended]
        for rule in rules:
            found: dict[tuple[str, ...], list[tuple[Alert, bool]]] = {}
            for alert, ago in candidates:
                if (alert.is_firing or ago < rule.outlast) and all_match(rule.source, alert.labels):
                    both = all_match(rule.target, alert.labels)
                    found.setdefault(_values(rule, alert.labels), []).append((alert, both))
            self._sources.append(found)

    def source_of(self, alert: Alert) -> Alert | None:
        """The first source of an alert, or None.

        An alert that matches both sides of a rule is not inhibited by another one that does, so alerts never inhibit
        themselves or each other.
        """
        for rule, sources in zip(self._rules, self._sources, strict=True):
            if not sources or not all_match(rule.target, alert.labels):
                continue
            is_source = all_match(rule.source, alert.labels)
            for source, is_target in sources.get(_values(rule, alert.labels), ()):
                ends = source.ends_ns
                if not (is_source and is_target) and (ends is None or alert.starts_ns <= ends):
                    return source
        return None


def _values(rule: InhibitRule, labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in rule.equal)


@attrs.frozen
class Mute:
    """Why an alert is not notified: the silence that matches it, or the alert that inhibits it."""

    silence: Silence | None = None
    inhibited_by: Alert | None = None

    def __bool__(self) -> bool:
        """True where it is muted."""
        return self.silence is not None or self.inhibited_by is not None


class Muting:
    """Answers for the alerts and silences of one time."""

    def __init__(self, inhibitor: Inhibitor, silences: Sequence[Silence], now: int) -> None:
        self._inhibitor = inhibitor
        self._silences = silences
        self._now = now
        self._known: dict[str, Mute] = {}

    def of(self, alert: Alert) -> Mute:
        """What mutes an alert."""
        found = self._known.get(alert.id)
        if found is None:
            silence = find_silence(self._silences, alert.labels, self._now)
            found = self._known[alert.id] = Mute(silence, self._inhibitor.source_of(alert))
        return found
