"""Events of brokers for programs that receive them with `qmf.messaging`."""

from __future__ import annotations

import time
from typing import Any

from qmf.client.requests import with_texts
from qmf.errors import ProtocolError
from qmf.messaging import Message


class EventHelper:
    """Makes addresses to receive events from, and events of received messages."""

    def eventAddress(self, pkg: str = "*", cls: str = "*", sev: str = "*") -> str:
        """The address of a receiver for events.

        Args:
            pkg: package, e.g. ``org.apache.qpid.broker``; ``*`` for all.
            cls: name of the event, e.g. ``clientConnect``; ``*`` for all.
            sev: ``emerg``, ``alert``, ``crit``, ``error``, ``warn``, ``note``, ``info`` or ``debug``; ``*`` for all.
        """
        return f"qmf.default.topic/agent.ind.event.{pkg.replace('.', '_')}.{cls}.{sev}.#"

    def event(self, msg: Message) -> BrokerEvent:
        """The event in a message; of several the first.

        Raises:
            ProtocolError: the message is not an event.
        """
        return BrokerEvent(msg)


class BrokerEvent:
    """An event. Its arguments are attributes; one that it does not have is None.

    Attributes:
        msg: the message that it came in.
        content: the event as received, with texts where qpidd sends them as bytes.
        values: the arguments by name.
        schema_id: package, name and hash of its class.
        name: ``package:class``.
    """

    def __init__(self, msg: Message) -> None:
        """Read an event from a message.

        Raises:
            ProtocolError: the message is not an event.
        """
        try:
            self.msg = msg
            self.content: dict[str, Any] = with_texts(msg.content[0])
            self.values: dict[str, Any] = self.content["_values"]
            self.schema_id: dict[str, Any] = self.content["_schema_id"]
            self.name = f"{self.schema_id['_package_name']}:{self.schema_id['_class_name']}"
        except (TypeError, LookupError) as error:
            raise ProtocolError(f"not an event: {msg!r}") from error

    def __repr__(self) -> str:
        arguments = "".join(f" {name}={value}" for name, value in self.values.items())
        return f"{time.strftime('%c', time.gmtime(self.getTimestamp() / 1e9))} {self.name}{arguments}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "values":
            raise AttributeError(name)
        return self.values.get(name)

    def getAttributes(self) -> dict[str, Any]:
        """The arguments by name."""
        return self.values

    def getTimestamp(self) -> int:
        """When it was raised: nanoseconds since 1970."""
        return int(self.content.get("_timestamp", 0))
