"""Events and heartbeats as single lines, as the old `qpid-printevents` printed them, or as JSON."""

from __future__ import annotations

import json
import time

import attrs

from qmf.views.cells import Instant
from qmf.views.events import HEARTBEAT_SEVERITY, EventView, LostEvents, severity_name
from qmf.views.objects import ObjectKey
from qmf.views.text import clean
from qmf_shell.render.json_lines import cell_value, plain_tree
from qmf_shell.session.backend import HeartbeatRecord

#: Five letters each, as in the old tool.
_SEVERITIES = ("EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG")
_COLOURS = ("41;97", "41;97", "1;31", "31", "33", "36", "32", "2")


@attrs.frozen(kw_only=True)
class EventLineFormatter:
    """Makes lines of events and heartbeats.

    Attributes:
        json: lines of JSON.
        local_time: times in the machine's time zone instead of UTC; not for JSON.
        colour: colours for severities; not for JSON.
    """

    json: bool = False
    local_time: bool = False
    colour: bool = False

    def line(self, item: EventView | HeartbeatRecord) -> str:
        """One line, without its end."""
        if isinstance(item, HeartbeatRecord):
            arguments: dict[str, object] = {"agent": item.agent, "interval": item.interval}
            item = EventView("qmf:heartbeat", item.timestamp, HEARTBEAT_SEVERITY, arguments, "", None, item.broker)
        return _json_line(item) if self.json else self._text_line(item)

    def _text_line(self, event: EventView) -> str:
        arguments = event.schema.arguments if event.schema else ()
        times = {argument.name for argument in arguments if argument.type.name == "absTime"}
        parts = [event.name, f"broker={event.broker}"]
        if isinstance(event, LostEvents):
            parts.append(str(event))
        else:
            for name, value in event.values.items():
                text = self._date(value) if name in times and isinstance(value, int) else _value_text(value)
                parts.append(f"{name}={_quote(text)}")
        return " ".join([self._date(event.timestamp), self._severity(event.severity), *map(clean, parts)])

    def _date(self, nanoseconds: int) -> str:
        seconds = nanoseconds // 1_000_000_000
        try:
            return time.asctime(time.localtime(seconds) if self.local_time else time.gmtime(seconds))
        except (OverflowError, ValueError, OSError):
            return f"{nanoseconds} ns"

    def _severity(self, number: int) -> str:
        if not 0 <= number < len(_SEVERITIES):
            return f"INV-{number}"
        name = _SEVERITIES[number]
        return f"\x1b[{_COLOURS[number]}m{name}\x1b[0m" if self.colour else name


def _json_line(event: EventView) -> str:
    values = {
        name: value.object_name if isinstance(value, ObjectKey) else value for name, value in event.values.items()
    }
    line = {
        "time": cell_value(Instant(event.timestamp)),
        "severity": severity_name(event.severity) if 0 <= event.severity <= 7 else event.severity,
        "event": event.name,
        "broker": event.broker,
        "agent": event.agent or values.get("agent"),
        "arguments": plain_tree(values),
    }
    return json.dumps(line, default=str, allow_nan=False)


def _value_text(value: object) -> str:
    """A value as the old tool wrote it: T and F for booleans."""
    if isinstance(value, bool):
        return "T" if value else "F"
    return str(value)


def _quote(text: str) -> str:
    return f'"{text}"' if " " in text or not text else text
