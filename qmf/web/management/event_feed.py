"""The events of all agents as a log of records, from the opening of the server on; filters for its readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from qmf.console.aio import Client, Dropped, EventRaised, Missed, Notification
from qmf.views.event_filter import EventFilter
from qmf.views.events import SEVERITIES, EventView
from qmf.web.management.representations import event_json
from qmf.web.streams.record_log import RecordLog


class EventFeed:
    """Records the events that a console receives.

    Attributes:
        log: the records; their data is as of `event_json`, or `{"agent", "count"}` of the kind ``lost`` for events
            that a broker dropped on their way to the server.
    """

    def __init__(self, client: Client, history: int) -> None:
        """Make a feed, which records nothing before `open`.

        Args:
            client: the console.
            history: events that are kept.
        """
        self.log = RecordLog(history)
        self._client = client
        self._unlisten: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Begin to record."""
        self._unlisten = self._client.listen(self._on_notification)

    def close(self) -> None:
        """End the log and its streams."""
        self._unlisten()
        self.log.close()

    def _on_notification(self, item: Notification) -> None:
        match item:
            case EventRaised(event=event):
                self.log.add("event", event_json(event))
            case Missed(agent=agent, count=count):
                self.log.add("lost", {"agent": agent.name, "count": count})
            case Dropped(count=count):
                self.log.add("lost", {"agent": None, "count": count})


@attrs.frozen(kw_only=True)
class EventSelection:
    """Which events a reader wants.

    Attributes:
        filter: the filter.
        agent: the name of the agent, exactly; or None.
    """

    filter: EventFilter
    agent: str | None = None

    def __call__(self, data: object) -> bool:
        """Whether a record is wanted; one that tells of lost events always is."""
        if not isinstance(data, dict) or "severity" not in data:
            return True
        return self.agent in (None, data["agent"]) and self.filter.passes(_view(data))


def _view(data: Mapping[str, Any]) -> EventView:
    """What a filter looks at, of a record as of `event_json`."""
    name, severity = f"{data['package'] or ''}:{data['class'] or ''}", data["severity"]
    number = SEVERITIES[severity] if severity in SEVERITIES else int(severity)
    return EventView(name, 0, number, data["arguments"], data["agent"])
