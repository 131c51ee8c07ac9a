"""Inhibition: an alert that makes others superfluous, e.g. a dead agent those about its objects. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.matchers import Matcher, all_match, parse_matchers


@attrs.frozen(kw_only=True)
class InhibitRule:
    """While an alert matches the source, those that match the target are not notified.

    Attributes:
        name: for people; may be empty.
        source, target: matchers of labels.
        equal: labels whose values must be the same in both.
    """

    name: str = ""
    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...] = ()


#: Without rules of the file's own: an agent without heartbeats inhibits what is known of its objects, which are no
#: longer measured.
DEFAULT_INHIBITION = (
    InhibitRule(
        name="agent-dead",
        source=parse_matchers(['kind="absence"', 'of="heartbeats"', 'agent!=""']),
        target=parse_matchers(['kind=~"absence|threshold|rate|ratio"', 'of!="heartbeats"']),
        equal=("agent",),
    ),
)


class Inhibitor:
    """Answers which firing alert inhibits another; made from the alerts that are active at one time."""

    def __init__(self, rules: Sequence[InhibitRule], alerts: Iterable[ActiveAlert]) -> None:
        """Index the sources among some alerts; those that are not firing are ignored."""
        self._rules = rules
        firing = sorted((alert for alert in alerts if alert.is_firing), key=lambda alert: (alert.starts_ns, alert.id))
        self._sources: list[dict[tuple[str, ...], list[tuple[ActiveAlert, bool]]]] = []
        for rule in rules:
            found: dict[tuple[str, ...], list[tuple[ActiveAlert, bool]]] = {}
            for alert in firing:
                if all_match(rule.source, alert.labels):
                    both = all_match(rule.target, alert.labels)
                    found.setdefault(_values(rule, alert.labels), []).append((alert, both))
            self._sources.append(found)

    def inhibited_by(self, alert: ActiveAlert) -> ActiveAlert | None:
        """The first source of an alert, or None.

        An alert that matches both sides of a rule is not inhibited by another one that does, so alerts never inhibit
        themselves or each other.
        """
        for rule, sources in zip(self._rules, self._sources, strict=True):
            if not sources or not all_match(rule.target, alert.labels):
                continue
            is_source = all_match(rule.source, alert.labels)
            for source, both in sources.get(_values(rule, alert.labels), ()):
                if not (is_source and both):
                    return source
        return None


def _values(rule: InhibitRule, labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in rule.equal)
