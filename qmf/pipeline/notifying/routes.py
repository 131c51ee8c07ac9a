"""The tree of routes, and groups of active alerts: who learns of an alert, with which others, and how often. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.matchers import Matcher, all_match

SECOND = 10**9

#: Alertmanager's defaults.
GROUP_WAIT, GROUP_INTERVAL, REPEAT_INTERVAL = 30 * SECOND, 300 * SECOND, 4 * 3600 * SECOND

#: ns between looks at a group whose `group_interval` is shorter, where nothing changes.
MIN_INTERVAL = 5 * SECOND

#: ns; later than everything.
NEVER = 1 << 62

#: In `group_by`: by all labels, so that each alert is a group of its own.
ALL_LABELS = "..."


@attrs.frozen(kw_only=True)
class Route:
    """A node of the tree.

    Attributes:
        key: identifies the node, made from the matchers on the way to it.
        receiver: name of the receiver.
        matchers: all must match; the root has none.
        group_by: labels whose values define a group, or `ALL_LABELS`; none for one group of all.
        group_wait: ns from the start of a group's first alert to its first notification.
        group_interval: ns between looks at a group that was notified.
        repeat_interval: ns after which a notification is repeated while nothing changed.
        continues: the siblings after this node are tried as well.
        routes: children; the first one that matches takes the alert.
    """

    key: str = "{}"
    receiver: str
    matchers: tuple[Matcher, ...] = ()
    group_by: tuple[str, ...] = ()
    group_wait: int = GROUP_WAIT
    group_interval: int = GROUP_INTERVAL
    repeat_interval: int = REPEAT_INTERVAL
    continues: bool = False
    routes: tuple[Route, ...] = ()

    def find(self, labels: Mapping[str, str]) -> list[Route]:
        """The deepest nodes that match; none where this one doesn't."""
        if not all_match(self.matchers, labels):
            return []
        found: list[Route] = []
        for child in self.routes:
            matching = child.find(labels)
            found += matching
            if matching and not child.continues:
                break
        return found or [self]

    def group_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of an alert's group."""
        names = sorted(labels) if ALL_LABELS in self.group_by else self.group_by
        return {name: labels[name] for name in names if name in labels}

    def group_key(self, labels: Mapping[str, str]) -> str:
        """Identifies the group of an alert with these labels, as Alertmanager writes it."""
        pairs = (str(Matcher(name, value)) for name, value in sorted(self.group_labels(labels).items()))
        return f"{self.key}:{{{', '.join(pairs)}}}"


@attrs.define
class Group:
    """Alerts that are notified together.

    Attributes:
        route, key, labels: of the group.
        alerts: ids.
        seen: ids of alerts that it was looked at with.
        flush_at: when it is looked at next.
        waiting: integrations that have something to be told.
        refused: when integrations that refused are tried again.
        resend: when integrations are sent what they would forget.
    """

    route: Route
    key: str
    labels: Mapping[str, str]
    alerts: set[str] = attrs.field(factory=set)
    seen: set[str] = attrs.field(factory=set)
    flush_at: int = NEVER
    flushed: bool = False
    waiting: set[str] = attrs.field(factory=set)
    refused: dict[str, int] = attrs.field(factory=dict)
    resend: dict[str, int] = attrs.field(factory=dict)

    def has_work(self, now: int) -> bool:
        """True if somebody may have to be told something now."""
        return self.flush_at <= now or bool(self.waiting) or any(at <= now for at in self.resend.values())

    def flush(self, now: int) -> None:
        """The group is looked at."""
        self.flushed = True
        self.seen = set(self.alerts)
        self.flush_at = now + max(self.route.group_interval, MIN_INTERVAL)

    def add(self, alert: ActiveAlert, now: int) -> None:
        """Take an alert, or its change."""
        self.alerts.add(alert.id)
        if not self.flushed:
            self.flush_at = max(now, min(self.flush_at, alert.starts_ns + self.route.group_wait))
        elif not self.route.group_interval:
            self.flush_at = now

    def was_missed(self, alert: ActiveAlert) -> bool:
        """True for an alert that lasted long enough to be notified, but was found after its end."""
        return (
            alert.ends_ns is not None
            and alert.id not in self.seen
            and alert.ends_ns - alert.starts_ns >= self.route.group_wait
        )


class Groups:
    """All groups of a tree of routes."""

    def __init__(self, root: Route) -> None:
        self._root = root
        self._groups: dict[str, Group] = {}
        self._of: dict[str, tuple[Group, ...]] = {}

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def get(self, key: str) -> Group | None:
        """A group by its key."""
        return self._groups.get(key)

    def of(self, alert: ActiveAlert) -> tuple[Group, ...]:
        """The groups of an alert, made where they don't exist."""
        if alert.id not in self._of:
            routes = self._root.find(alert.labels)
            self._of[alert.id] = tuple(self._group(route, alert.labels) for route in routes)
        return self._of[alert.id]

    def remove(self, alert_id: str) -> list[str]:
        """Remove an alert; the keys of the groups that ended with it."""
        ended: list[str] = []
        for group in self._of.pop(alert_id, ()):
            group.alerts.discard(alert_id)
            if not group.alerts and self._groups.pop(group.key, None) is not None:
                ended.append(group.key)
        return ended

    def _group(self, route: Route, labels: Mapping[str, str]) -> Group:
        key = route.group_key(labels)
        if key not in self._groups:
            self._groups[key] = Group(route, key, route.group_labels(labels))
        return self._groups[key]
