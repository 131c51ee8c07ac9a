"""What notifications must not forget over a restart: active alerts, and who was told what. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeVar

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert

K = TypeVar("K")
V = TypeVar("V")


class TrackedDict(dict[K, V]):
    """A dictionary that remembers what changed; changed by `put` and `discard` only.

    Attributes:
        changes: since the last `changes.clear()`; None for what was removed.
    """

    def __init__(self, content: Mapping[K, V] | None = None) -> None:
        super().__init__(content or {})
        self.changes: dict[K, V | None] = {}

    def put(self, key: K, value: V) -> None:
        """Set a value."""
        if self.get(key) != value:
            self[key] = value
            self.changes[key] = value

    def discard(self, key: K) -> V | None:
        """Remove a value, if there is one."""
        if key not in self:
            return None
        self.changes[key] = None
        return self.pop(key)


class SentState(enum.Enum):
    """What an integration was told of an alert.

    OWED: nothing yet, but it must be told even if the alert ends before that, unless it is muted by then; SENT: perhaps
    that it fires, since that was sent and not confirmed; FIRING: that it fires.
    """

    OWED = "owed"
    SENT = "sent"
    FIRING = "firing"


@attrs.frozen
class IntegrationCounts:
    """What happened with the notifications of an integration.

    Attributes:
        delivered, failed: attempts that succeeded and failed.
        alerts: in all delivered notifications.
        last_error: of the last attempt; empty after a success.
        last_at: time of the last attempt, ns since 1970.
    """

    delivered: int = 0
    failed: int = 0
    alerts: int = 0
    last_error: str = ""
    last_at: int = 0


class NotificationState:
    """All state of the dispatcher.

    Attributes:
        alerts: that are active, or whose end somebody must be told of, by id.
        held: alerts of the past that are not notified before the job has reached the present.
        told: what each integration was told of an alert, by its id.
        sent: when an integration was last notified of a group, by both keys; ns since 1970.
        counts: by integration.
    """

    def __init__(self) -> None:
        self.alerts: TrackedDict[str, ActiveAlert] = TrackedDict()
        self.held: TrackedDict[str, bool] = TrackedDict()
        self.told: TrackedDict[str, Mapping[str, SentState]] = TrackedDict()
        self.sent: TrackedDict[tuple[str, str], int] = TrackedDict()
        self.counts: TrackedDict[str, IntegrationCounts] = TrackedDict()

    def sent_state(self, alert_id: str, integration: str) -> SentState | None:
        """What an integration was told of an alert."""
        return self.told.get(alert_id, {}).get(integration)

    def tell(self, alert_id: str, integration: str, told: SentState | None) -> None:
        """Record what an integration was told; None to forget it."""
        entries = {key: value for key, value in self.told.get(alert_id, {}).items() if key != integration}
        if told is not None:
            entries[integration] = told
        if entries:
            self.told.put(alert_id, entries)
        else:
            self.told.discard(alert_id)

    def keep_integrations(self, keys: set[str]) -> None:
        """Forget what was told to integrations that don't exist any more."""
        for alert_id, entries in list(self.told.items()):
            for key in entries.keys() - keys:
                self.tell(alert_id, key, None)
        for pair in [pair for pair in self.sent if pair[0] not in keys]:
            self.sent.discard(pair)
        for key in self.counts.keys() - keys:
            self.counts.discard(key)

    def last_sent(self) -> dict[str, int]:
        """When each group was notified last, ns since 1970."""
        found: dict[str, int] = {}
        for (_, group), at in self.sent.items():
            found[group] = max(at, found.get(group, at))
        return found

    def forget_group(self, key: str) -> None:
        """Forget when a group was notified."""
        for pair in [pair for pair in self.sent if pair[1] == key]:
            self.sent.discard(pair)
