"""A notification, and what comes of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert


class NotificationOutcome(enum.Enum):
    """What came of a notification.

    DELIVERED: the receiver has it; UNREACHABLE: trying again later helps; REFUSED: the receiver doesn't want this one.
    """

    DELIVERED = "delivered"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


@attrs.frozen(kw_only=True)
class AlertNotification:
    """A message to one integration about one group.

    Attributes:
        integration: its key.
        receiver: name of the receiver.
        group_key, group_labels: of the group.
        firing, resolved: the alerts, by their start.
        at: when it was made, ns since 1970.
    """

    integration: str
    receiver: str
    group_key: str
    group_labels: Mapping[str, str]
    firing: tuple[ActiveAlert, ...]
    resolved: tuple[ActiveAlert, ...]
    at: int

    @property
    def alerts(self) -> tuple[ActiveAlert, ...]:
        """All alerts, those that fire first."""
        return self.firing + self.resolved

    @property
    def status(self) -> str:
        """``firing`` while one of them fires, else ``resolved``."""
        return "firing" if self.firing else "resolved"
