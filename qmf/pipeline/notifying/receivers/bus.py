"""The bus: alerts as events and objects of the job's agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.pipeline.correlate.alerts import Alert, AlertRow, in_order
from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.receivers.base import NotificationSender, ReceiverSettings, UnreachableError

#: Publishes rows that were not published before, and waits for the broker; False where the job ends meanwhile.
Publish = Callable[[Sequence[AlertRow]], bool]


@attrs.frozen(kw_only=True)
class BusConfig(ReceiverSettings):
    """The bus: events and objects of the agent that `correlate` starts. It is told of ends, since objects must go."""

    repeats: bool = False


class BusSender(NotificationSender):
    """Publishes the changes of each alert, of which the job's ledger knows which were published before."""

    def __init__(self, publish: Publish | None) -> None:
        """Make a sender; `publish` is None where the job has no agent."""
        self._publish = publish

    def send(self, notification: AlertNotification) -> None:
        if self._publish is None:
            raise UnreachableError("the job was started without the bus; restart it")
        rows = {row.key: row for alert in notification.alerts for row in rows_of(alert)}
        if not self._publish(in_order(rows.values())):
            raise UnreachableError("the job ended before the broker had confirmed it")


def rows_of(alert: Alert) -> list[AlertRow]:
    """The rows of the table about an alert, as far as they are known."""
    return [AlertRow(**row) for row in alert.detail.values()]


def with_row(row: AlertRow) -> Alert:
    """An alert after a change that a row of the table tells."""
    return row.alert({row.change: attrs.asdict(row)})
