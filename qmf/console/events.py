"""Events in the published API, and how they are printed."""

from __future__ import annotations

import time
from uuid import UUID

from qmf.console.aio import RemoteEvent
from qmf.console.identity import ClassKey
from qmf.console.proxies import Agent, object_id
from qmf.console.schema_views import SchemaClass
from qmf.protocol import ObjectId as CoreId
from qmf.schema import QmfType

_SEVERITIES = ("EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG")


class Event:
    """Something that happened at an agent.

    Prints like ``Thu Jan 29 19:53:19 2009 INFO  org.apache.qpid.broker:bind broker=localhost:5672 qName=orders``.

    Attributes:
        agent: the agent that raised it.
        broker, session: the broker and the session through which it was received.
        classKey: its class, or None.
        schema: the schema of its class, or None.
        arguments: by name.
        timestamp: nanoseconds since 1970.
        severity: 0 (emergency) to 7 (debug).
        isV2: always True.
    """

    isV2 = True

    def __init__(self, core: RemoteEvent, agent: Agent, schema: SchemaClass | None) -> None:
        self.core = core
        self.agent = agent
        self._arguments: dict[str, object] | None = None
        self.broker = agent.getBroker()
        self.session = agent.session
        self.classKey = ClassKey(core.class_key) if core.class_key else None
        self.schema = schema
        self.timestamp = core.timestamp
        self.severity = core.severity

    @property
    def arguments(self) -> dict[str, object]:
        """Arguments by name, in schema order."""
        if self._arguments is None:
            self._arguments = {
                name: object_id(value, self.agent) if isinstance(value, CoreId) else value
                for name, value in dict(self.core.arguments).items()
            }
        return self._arguments

    def getClassKey(self) -> ClassKey | None:
        """Key of its class; None for an event without schema."""
        return self.classKey

    def getArguments(self) -> dict[str, object]:
        """Arguments by name, in schema order."""
        return self.arguments

    def getTimestamp(self) -> int:
        """When it happened: nanoseconds since 1970, by the agent's clock."""
        return self.timestamp

    def getSchema(self) -> SchemaClass | None:
        """The schema of its class; None when no agent sent it."""
        return self.schema

    def __repr__(self) -> str:
        kinds = {item.name: item.core.type for item in self.schema.arguments} if self.schema else {}
        name = f"{self.classKey.getPackageName()}:{self.classKey.getClassName()}" if self.classKey else "event"
        words = [date(self.timestamp), severity(self.severity), name, f"broker={self.broker.getUrl()}"]
        words += [f"{key}={quote(value_text(value, kinds.get(key)))}" for key, value in self.arguments.items()]
        return " ".join(words)


def value_text(value: object, kind: QmfType | None = None) -> str:
    """A value as text: times as dates in UTC, booleans as T and F."""
    if isinstance(value, bool):
        return "T" if value else "F"
    if kind is not None and kind.name == "absTime" and isinstance(value, int):
        return date(value)
    return str(value) if isinstance(value, (str, int, float, UUID, CoreId)) else repr(value)


def quote(text: str) -> str:
    """The text, in quotes if it contains a space."""
    return f'"{text}"' if " " in text else text


def date(nanoseconds: int) -> str:
    """A time in UTC as ``Thu Jan 29 19:53:19 2009``."""
    return time.asctime(time.gmtime(nanoseconds // 1_000_000_000))


def severity(number: int) -> str:
    """A severity in five letters; ``INV-n`` for a number that QMF doesn't define."""
    return _SEVERITIES[number] if 0 <= number < len(_SEVERITIES) else f"INV-{number}"
