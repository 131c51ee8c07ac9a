"""Objects of a broker as `BrokerAgent` returns them: their values at the time of the answer.

The values are attributes by the names of the schema (`schemas/broker.xml`); one that the broker does not send is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from qmf.errors import NotFoundError, ProtocolError
from qmf.views.internal import has_own_values

PACKAGE = "org.apache.qpid.broker"
MQTT_PACKAGE = "qmf.mqtt"


class Manager(Protocol):
    """What objects need of the `BrokerAgent` that they come from."""

    def call(self, method: str, arguments: Mapping[str, Any] | None = None, addr: str = ...) -> dict[str, Any]:
        """Call a method of the object with the name `addr`."""
        ...

    def find(self, object_name: str) -> dict[str, Any] | None:
        """The content of an object; None if there is none of this name."""
        ...


class BrokerObject:
    """An object of the broker.

    Attributes:
        broker: the `BrokerAgent` that it comes from.
        content: the object as received, with its times and ids.
        values: properties and statistics by name.
    """

    #: Name of the class in the broker's schema; in lower case, as it is sent.
    class_name = ""

    def __init__(self, broker: Manager, content: Mapping[str, Any]) -> None:
        self.broker = broker
        self._take(content)

    def _take(self, content: Mapping[str, Any]) -> None:
        values = content.get("_values")
        if not isinstance(values, dict):
            raise ProtocolError(f"an object of the broker has no values: {dict(content)!r}")
        self.content = content
        self.values: dict[str, Any] = values

    def __getattr__(self, name: str) -> Any:
        # Not for names of Python itself: copying an object asks for these before `values` exists.
        if name.startswith("__") or name == "values":
            raise AttributeError(name)
        return referenced_name(self.values.get(name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.getObjectId()!r})"

    def getObjectId(self) -> str:
        """Name of the object: ``package:class:key``."""
        return str(self._id().get("_object_name", ""))

    def getAttributes(self) -> dict[str, Any]:
        """Properties and statistics by name."""
        return self.values

    def getCreateTime(self) -> int:
        """When the object was created: nanoseconds since 1970."""
        return int(self.content.get("_create_ts", 0))

    def getDeleteTime(self) -> int:
        """When the object was deleted: nanoseconds since 1970; 0 if it exists."""
        return int(self.content.get("_delete_ts", 0))

    def getUpdateTime(self) -> int:
        """When the values were read: nanoseconds since 1970."""
        return int(self.content.get("_update_ts", 0))

    @property
    def is_own(self) -> bool:
        """True for what an agent, a console or a `BrokerAgent` created for itself, see `is_own`."""
        return is_own(self.values)

    def update(self) -> None:
        """Read the values again.

        Raises:
            NotFoundError: the object does not exist any more.
            QmfError: as the methods of `BrokerAgent`.
        """
        content = self.broker.find(self.getObjectId())
        if content is None:
            raise NotFoundError(self.class_name or "object", self.getObjectId())
        self._take(content)

    def _id(self) -> Mapping[str, Any]:
        found = self.content.get("_object_id")
        return found if isinstance(found, dict) else {}


class Broker(BrokerObject):
    """The broker itself."""

    class_name = "broker"


class Cluster(BrokerObject):
    """A cluster of brokers; brokers of today have none."""

    class_name = "cluster"


class HaBroker(BrokerObject):
    """The replication of a qpidd with high availability."""

    class_name = "habroker"


class Memory(BrokerObject):
    """The memory that the broker's process uses."""

    class_name = "memory"


class Connection(BrokerObject):
    """A connection of a client."""

    class_name = "connection"

    def close(self) -> None:
        """Close the connection.

        Raises:
            QmfError: as the methods of `BrokerAgent`.
        """
        self.broker.call("close", {}, f"{PACKAGE}:connection:{self.address}")


class Session(BrokerObject):
    """A session of a connection."""

    class_name = "session"


class MqttSession(BrokerObject):
    """A session of MQTT, whether or not its client is connected."""

    class_name = "mqttsession"

    def disconnect(self) -> None:
        """Close the connection of the client; the session stays for its expiry.

        Raises:
            QmfError: as the methods of `BrokerAgent`.
        """
        self.broker.call("disconnect", {}, self.getObjectId())

    def end(self) -> None:
        """End the session with its queue.

        Raises:
            QmfError: as the methods of `BrokerAgent`.
        """
        self.broker.call("end", {}, self.getObjectId())


class Subscription(BrokerObject):
    """A consumer of a queue."""

    class_name = "subscription"


class Exchange(BrokerObject):
    """An exchange."""

    class_name = "exchange"


class Binding(BrokerObject):
    """A binding between an exchange and a queue."""

    class_name = "binding"

    def __repr__(self) -> str:
        return f"Binding key: {self.values.get('bindingKey')}"


class Queue(BrokerObject):
    """A queue."""

    class_name = "queue"

    def purge(self, request: int, filter: Mapping[str, Any] | None = None) -> None:
        """Discard messages.

        Args:
            request: how many; 0 for all.
            filter: which, e.g. ``{"filter_type": "header_match_str", "filter_params": {"header_key": "colour",
                "header_value": "red"}}``; None for all.

        Raises:
            QmfError: as the methods of `BrokerAgent`.
        """
        arguments: dict[str, Any] = {"request": request}
        if filter is not None:
            arguments["filter"] = dict(filter)
        self.broker.call("purge", arguments, f"{PACKAGE}:queue:{self.name}")

    def reroute(
        self, request: int, useAltExchange: bool, exchange: str, filter: Mapping[str, Any] | None = None
    ) -> None:
        """Remove messages, and publish them to an exchange.

        Args:
            request: how many; 0 for all.
            useAltExchange: to the queue's alternate exchange, rather than `exchange`.
            exchange: name of the exchange.
            filter: as of `purge`.

        Raises:
            QmfError: as the methods of `BrokerAgent`.
        """
        arguments = {
            "request": request,
            "useAltExchange": useAltExchange,
            "exchange": exchange,
            "filter": dict(filter or {}),
        }
        self.broker.call("reroute", arguments, f"{PACKAGE}:queue:{self.name}")


class Link(BrokerObject):
    """A link to another broker."""

    class_name = "link"


class Acl(BrokerObject):
    """The access control of the broker."""

    class_name = "acl"


def is_own(values: Mapping[str, Any]) -> bool:
    """True for the values of a queue, binding, subscription, link or connection that agents, consoles and tools of this
    project created on the broker for themselves.
    """
    return has_own_values(values)


def referenced_name(value: Any) -> Any:
    """Of a reference the key of the object, such as the name of a queue; every other value unchanged."""
    if isinstance(value, dict) and isinstance(value.get("_object_name"), str):
        name: str = value["_object_name"]
        return name.split(":", 2)[2] if name.count(":") > 1 else name
    return value
