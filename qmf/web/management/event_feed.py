"""The events of all agents as a log of records, from the opening of the server on; filters for its readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from qmf.console.aio import Dropped, EventRaised, Missed, Notification, ObjectId
from qmf.views.event_filter import EventFilter
from qmf.views.events import SEVERITIES, EventView
from qmf.web.consoles import WebConsole
from qmf.web.management.representations import event_json
from qmf.web.readers.readable_console import ReadableConsole
from qmf.web.streams.record_log import RecordLog


class EventFeed:
    """Records the events that a console receives.

    Attributes:
        log: the records; their data is as of `event_json`, or `{"agent", "count"}` of the kind ``lost`` for events
            that a broker dropped on their way to the server: how many they were, or their messages if that is not
            known.
    """

    def __init__(self, client: WebConsole, history: int) -> None:
        """Make a feed, which records nothing before `open`; `history`: events that are kept."""
        self.log = RecordLog(history)
        self._client = client
        self._unlisten: Callable[[], None] = lambda: None

    def open(self, before: RecordLog | None = None, wanted: Callable[[object], bool] = bool) -> None:
        """Begin to record.

        Args:
            before: has records that come first.
            wanted: says of the content of each whether it does.
        """
        for record in () if before is None else before.records(before.end):
            if wanted(record.data):
                self.log.add(record.kind, record.data)
        self._unlisten = self._client.listen(self._on_notification)

    def close(self) -> None:
        """End the log and its streams."""
        self._unlisten()
        self.log.close()

    def _on_notification(self, item: Notification) -> None:
        match item:
            case EventRaised(event=event):
                self.log.add("event", event_json(event))
            case Missed(agent=agent) if item.of_events:
                self.log.add("lost", {"agent": agent.name, "count": item.lost_events})
            case Dropped(count=count):
                self.log.add("lost", {"agent": None, "count": count})


def is_readable(console: ReadableConsole, data: object) -> bool:
    """Whether a record of `EventFeed` may be read by those who have a console."""
    if not isinstance(data, dict):
        return False
    agent = data["agent"]
    if "severity" not in data:
        return agent is not None and console.sees_agent(agent)
    about = data["object"]
    object_id = None if about is None else ObjectId(about["name"], about["agent"])
    arguments = data["arguments"].values()
    # A reference is JSON with a name.
    texts = [item["name"] if isinstance(item, dict) and "name" in item else item for item in arguments]
    return console.sees_event(data["package"] or "", data["class"] or "", agent, object_id, texts)


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
