"""The groups of active alerts: which alerts are notified together, and when each group is looked at. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.routes import SECOND, Route

#: ns between looks at a group whose `group_interval` is shorter, where nothing changes.
MIN_INTERVAL = 5 * SECOND

#: ns; later than everything.
NEVER = 1 << 62


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
