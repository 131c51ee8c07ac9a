"""The events of all agents as a log of records, from the opening of the server on; filters for its readers."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable

import attrs

from qmf.console.aio import Client, Dropped, EventRaised, Missed, Notification
from qmf.schema import Severity
from qmf.views.events import SEVERITIES, is_severe
from qmf.web.management.representations import event_json
from qmf.web.streams.record_log import RecordLog


class EventFeed:
    """Records the events that a console receives.

    Attributes:
        log: the records; their data is as of `event_json`, or `{"agent", "count"}` of the kind ``lost`` for events
            that a broker dropped on their way to the server.
    """

    def __init__(self, client: Client, history: int) -> None:
        """Args:

        client: the console.
        history: events that are kept.
        """
        self.log = RecordLog(history)
        self._client = client
        self._unlisten: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Begin to record."""
        self._unlisten = self._client.listen(self._notified)

    def close(self) -> None:
        """End the log and its streams."""
        self._unlisten()
        self.log.close()

    def _notified(self, item: Notification) -> None:
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
        severity: the least severity, or None for all.
        name: pattern (``*``, ``?``) of the class, or None.
        package, agent: exactly, or None.
        text: in the class or in an argument, in any case; or None.
    """

    severity: Severity | None = None
    name: str | None = None
    package: str | None = None
    agent: str | None = None
    text: str | None = None

    def __call__(self, data: object) -> bool:
        """Whether a record is wanted; one that tells of lost events always is."""
        if not isinstance(data, dict) or "severity" not in data:
            return True
        if self.agent is not None and data["agent"] != self.agent:
            return False
        if self.package is not None and data["package"] != self.package:
            return False
        if self.name is not None and not fnmatch.fnmatchcase((data["class"] or "").lower(), self.name.lower()):
            return False
        if self.severity is not None and not is_severe(_number(str(data["severity"])), self.severity):
            return False
        return self.text is None or _contains(data, self.text.lower())


def _number(name: str) -> int:
    return SEVERITIES[name] if name in SEVERITIES else int(name)


def _contains(data: dict[str, object], text: str) -> bool:
    arguments = data["arguments"]
    values = [str(value) for value in arguments.values()] if isinstance(arguments, dict) else []
    return any(text in value.lower() for value in (str(data["class"]), str(data["agent"]), *values))
