"""The bus: alerts as events and objects of the job's agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.receivers.base import UnreachableError

#: Publishes rows that were not published before, and waits for the broker; False where the job ends meanwhile.
Publish = Callable[[Sequence[AlertRow]], bool]


class BusSender:
    """Publishes the changes of each alert, of which the job's ledger knows which were published before."""

    def __init__(self, publish: Publish | None) -> None:
        """Make a sender.

        Args:
            publish: None where the job has no agent.
        """
        self._publish = publish

    def send(self, notification: AlertNotification) -> None:
        """As of `Sender`."""
        if self._publish is None:
            raise UnreachableError("the job was started without the bus; restart it")
        rows = {row.key: row for alert in notification.alerts for row in rows_of(alert)}
        if not self._publish(in_order(rows.values())):
            raise UnreachableError("the job ended before the broker had confirmed it")

    def close(self) -> None:
        """As of `Sender`; the agent is the job's."""


def rows_of(alert: ActiveAlert) -> list[AlertRow]:
    """The rows of the table about an alert, as far as they are known."""
    return [AlertRow(**row) for row in alert.detail.values()]


def with_row(row: AlertRow, content: dict[str, object]) -> ActiveAlert:
    """An alert after a change that a row of the table tells; `content` is the row's."""
    return ActiveAlert.from_alert(row.alert(), {row.change: content})
