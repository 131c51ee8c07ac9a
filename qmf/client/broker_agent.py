"""`BrokerAgent`: the queries and methods of a broker, under their published names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, TypeVar

from qmf._closable import Closable
from qmf._marks import OWN_CONNECTION
from qmf.client import objects
from qmf.client.objects import PACKAGE, BrokerObject
from qmf.client.requests import RequestChannel
from qmf.errors import ProtocolError, RemoteError
from qmf.messaging import Connection, ConnectionError, Timeout
from qmf.protocol import ErrorCode

BROKER_OBJECT = f"{PACKAGE}:broker:amqp-broker"
ACL_OBJECT = f"org.apache.qpid.acl:acl:{BROKER_OBJECT}"

#: The default broker.
DEFAULT_URL = "localhost"

T = TypeVar("T")
Obj = TypeVar("Obj", bound=BrokerObject)


class Sasl(Protocol):
    """How to log in.

    Attributes:
        mechs: mechanisms that are allowed, separated by spaces; None for all.
        user, password: None for ANONYMOUS.
    """

    mechs: str | None
    user: str | None
    password: str | None


class BrokerAgent(Closable):
    """Manages one broker: an embedded broker of this project or a qpidd. Any thread may use it.

    Methods that find nothing return None or an empty list. All methods raise:

    * `RemoteError`: the broker refused the request; `text` and `code` are those of the broker;
    * `RequestTimeout`: it did not answer in time. A method may have been executed all the same;
    * `IncompleteAnswer`: the broker dropped parts of its answer;
    * `MessagingError`: the connection failed, or the broker has no management.

    Source: published Python API, `qmf.client.BrokerAgent` and `qpidtoollibs.BrokerAgent`.
    """

    def __init__(self, conn: Connection, timeout: float = 10.0) -> None:
        """Prepare requests to a broker; nothing is sent yet.

        Args:
            conn: an open connection. `close` leaves it open.
            timeout: seconds to wait for an answer.

        Raises:
            MessagingError: the broker has no management.
        """
        self._channel = RequestChannel(conn, timeout)
        self._reconnect_delays: Iterable[float] = ()
        self._make_connection: Callable[[], Connection] | None = None

    @staticmethod
    def connection(
        url: str | None = None, timeout: float = 10.0, sasl: Sasl | None = None, **options: Any
    ) -> Connection:
        """An open connection for a `BrokerAgent`.

        Args:
            url: of the broker, also as ``user/password@host:port``; None for this machine.
            timeout: seconds for connecting.
            sasl: how to log in, instead of by URL and options.
            options: of `qmf.messaging.Connection`.

        Raises:
            ConnectionError: it could not be made, or an option is wrong.
        """
        if sasl is not None:
            given = {"sasl_mechanisms": sasl.mechs, "username": sasl.user, "password": sasl.password}
            options |= {name: str(value) for name, value in given.items() if value}
        options["client_properties"] = {OWN_CONNECTION: True, **(options.get("client_properties") or {})}
        connection = Connection(url or DEFAULT_URL, **options)
        try:
            connection.open(timeout)
        except BaseException:
            connection.close()
            raise
        return connection

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        timeout: float = 10.0,
        sasl: Sasl | None = None,
        reconnect_delays: Iterable[float] | None = None,
        **options: Any,
    ) -> Self:
        """A `BrokerAgent` with a connection of its own, which `close` closes.

        Args:
            url, timeout, sasl, options: as of `connection`; the timeout is that of answers, too.
            reconnect_delays: seconds to wait before each attempt to connect again when the connection is lost, such as
                a `ReconnectDelays`. The request that failed is sent again then, so a method may be executed twice.

        Raises:
            ConnectionError: as `connection`.
            MessagingError: the broker has no management.
        """

        def make() -> Connection:
            return cls.connection(url, timeout, sasl, **options)

        connection = make()
        try:
            agent = cls(connection, timeout)
        except BaseException:
            connection.close()
            raise
        agent._make_connection = make
        agent._reconnect_delays = reconnect_delays or ()
        return agent

    def reconnect(self, connection: Connection) -> None:
        """Use another open connection from now on. One that `connect` made is closed, another one is left open.

        Raises:
            MessagingError: the broker has no management.
        """
        old, self._channel = self._channel, RequestChannel(connection, self._channel.timeout)
        if self._make_connection is not None:
            old.connection.close()

    def close(self) -> None:
        """End the use of the connection; one that `connect` made is closed. A second call does nothing."""
        if self._make_connection is None:
            self._channel.close()
        else:
            self._channel.connection.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._channel.connection!r})"

    # Objects

    def getBroker(self) -> objects.Broker | None:
        """The broker itself, with its statistics."""
        return self._single(objects.Broker)

    def getCluster(self) -> objects.Cluster | None:
        """The cluster of the broker."""
        return self._single(objects.Cluster)

    def getHaBroker(self) -> objects.HaBroker | None:
        """The state of the broker's high availability."""
        return self._single(objects.HaBroker)

    def getAllConnections(self) -> list[objects.Connection]:
        """Connections of clients, this one as well."""
        return self._all(objects.Connection)

    def getConnection(self, oid: str) -> objects.Connection | None:
        """The connection with this key: its address, see `objects.Connection`."""
        return self._find_named(objects.Connection, oid)

    def getAllSessions(self) -> list[objects.Session]:
        """Sessions of all connections."""
        return self._all(objects.Session)

    def getSession(self, oid: str) -> objects.Session | None:
        """The session with this key."""
        return self._find_named(objects.Session, oid)

    def getAllMqttSessions(self) -> list[objects.MqttSession]:
        """Sessions of MQTT; none of a broker without it."""
        return self._all(objects.MqttSession)

    def getMqttSession(self, clientId: str) -> objects.MqttSession | None:
        """The session of MQTT with this client identifier."""
        content = self.find(f"{objects.MQTT_PACKAGE}:{objects.MqttSession.class_name}:{clientId}")
        return None if content is None else objects.MqttSession(self, content)

    def getAllSubscriptions(self) -> list[objects.Subscription]:
        """Consumers of queues."""
        return self._all(objects.Subscription)

    def getSubscription(self, oid: str) -> objects.Subscription | None:
        """The consumer with this key."""
        return self._find_named(objects.Subscription, oid)

    def getAllExchanges(self) -> list[objects.Exchange]:
        """Exchanges; the name of the default exchange is empty."""
        return self._all(objects.Exchange)

    def getExchange(self, name: str) -> objects.Exchange | None:
        """The exchange of this name."""
        return self._find_named(objects.Exchange, name)

    def getAllQueues(self) -> list[objects.Queue]:
        """Queues, those of this program as well."""
        return self._all(objects.Queue)

    def getQueue(self, name: str) -> objects.Queue | None:
        """The queue of this name."""
        return self._find_named(objects.Queue, name)

    def getAllBindings(self) -> list[objects.Binding]:
        """Bindings; `exchangeRef` and `queueRef` are the names of what they bind."""
        return self._all(objects.Binding)

    def getAllLinks(self) -> list[objects.Link]:
        """Links to other brokers."""
        return self._all(objects.Link)

    def getAcl(self) -> objects.Acl | None:
        """The access control; None if the broker has none."""
        return self._single(objects.Acl)

    def getMemory(self) -> objects.Memory | None:
        """The memory that the broker uses; None where it does not tell."""
        return self._single(objects.Memory)

    def query(self, _type: str, oid: str) -> BrokerObject | None:
        """An object of any class by its key.

        Args:
            _type: name of the class, such as ``queue``.
            oid: key of the object; of a queue its name.
        """
        content = self.find(f"{PACKAGE}:{_type.lower()}:{oid}")
        return None if content is None else BrokerObject(self, content)

    # Methods of the broker

    def echo(self, sequence: int = 1, body: str = "Body") -> dict[str, Any]:
        """Ask for an answer with the same values, to test the path to the broker."""
        return self.call("echo", {"sequence": sequence, "body": body})

    def queueMoveMessages(
        self, srcQueue: str, destQueue: str, qty: int, filter: Mapping[str, Any] | None = None
    ) -> None:
        """Move messages from one queue to another: `qty` of them, 0 for all; `filter` as of `Queue.purge`."""
        arguments: dict[str, Any] = {"srcQueue": srcQueue, "destQueue": destQueue, "qty": qty}
        if filter is not None:
            arguments["filter"] = dict(filter)
        self.call("queueMoveMessages", arguments)

    def queueRedirect(self, sourceQueue: str, targetQueue: str) -> dict[str, Any]:
        """Deliver what is sent to one queue to another one; an empty target ends that."""
        return self.call("queueRedirect", {"sourceQueue": sourceQueue, "targetQueue": targetQueue})

    #: The same under its other published name.
    Redirect = queueRedirect

    def setLogLevel(self, level: str) -> None:
        """Set what the broker logs, such as ``notice+,debug+:Broker``."""
        self.call("setLogLevel", {"level": level})

    def getLogLevel(self) -> dict[str, Any]:
        """What the broker logs, as ``level``."""
        return self.call("getLogLevel")

    def setTimestampConfig(self, receive: bool) -> None:
        """Set whether the broker adds a timestamp to each message that it receives."""
        self.call("setTimestampConfig", {"receive": receive})

    def getTimestampConfig(self) -> dict[str, Any]:
        """Whether the broker adds timestamps, as ``receive``."""
        return self.call("getTimestampConfig")

    def setLogHiresTimestamp(self, logHires: bool) -> None:
        """Set whether times in the log have fractions of seconds."""
        self.call("setLogHiresTimestamp", {"logHires": logHires})

    def getLogHiresTimestamp(self) -> dict[str, Any]:
        """Whether times in the log have fractions of seconds, as ``logHires``."""
        return self.call("getLogHiresTimestamp")

    def addExchange(
        self, exchange_type: str, name: str, options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Create an exchange: ``direct``, ``topic``, ``fanout``, ``headers`` or ``xml``.

        Args:
            exchange_type, name: of the exchange.
            options: such as ``durable``, ``qpid.msg_sequence``; the broker refuses those that it does not know.
            kwargs: further options.
        """
        self.create("exchange", name, {"exchange-type": exchange_type, **(options or {}), **kwargs}, strict=True)

    def delExchange(self, name: str) -> None:
        """Delete an exchange."""
        self.call("delete", {"type": "exchange", "name": name})

    def addQueue(self, name: str, options: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Create a queue.

        Args:
            name: of the queue.
            options: such as ``durable``, ``qpid.max_count``; the broker refuses those that it does not know.
            kwargs: further options.
        """
        self.create("queue", name, {**(options or {}), **kwargs}, strict=True)

    def delQueue(self, name: str, if_empty: bool = True, if_unused: bool = True) -> None:
        """Delete a queue; by default only an empty one without consumers."""
        self.delete("queue", name, {"if_empty": if_empty, "if_unused": if_unused})

    def bind(
        self, exchange: str, queue: str, key: str = "", options: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Bind a queue to an exchange.

        Args:
            exchange, queue, key: what is bound, and the binding key.
            options: arguments of the binding, such as ``x-match`` and the headers for a headers exchange.
            kwargs: further arguments.
        """
        self.create("binding", f"{exchange}/{queue}/{key}", {**(options or {}), **kwargs}, strict=True)

    def unbind(self, exchange: str, queue: str, key: str = "") -> None:
        """Remove a binding."""
        self.call("delete", {"type": "binding", "name": f"{exchange}/{queue}/{key}"})

    def reloadAclFile(self) -> None:
        """Read the file of the access control again."""
        self.call("reloadACLFile", {}, ACL_OBJECT)

    def acl_lookup(
        self, userName: str, action: str, aclObj: str, aclObjName: str, propMap: Mapping[str, str]
    ) -> dict[str, Any]:
        """What the access control says about an action, as ``result``."""
        arguments = {
            "userId": userName,
            "action": action,
            "object": aclObj,
            "objectName": aclObjName,
            "propertyMap": dict(propMap),
        }
        return self.call("Lookup", arguments, ACL_OBJECT)

    def acl_lookupPublish(self, userName: str, exchange: str, key: str) -> dict[str, Any]:
        """What the access control says about publishing, as ``result``."""
        arguments = {"userId": userName, "exchangeName": exchange, "routingKey": key}
        return self.call("LookupPublish", arguments, ACL_OBJECT)

    def create(
        self, _type: str, name: str, properties: Mapping[str, Any] | None = None, strict: bool = False
    ) -> dict[str, Any]:
        """Create an object.

        Args:
            _type: ``queue``, ``exchange``, ``topic``, ``binding``, ``link``, ``bridge``, ...
            name: of the object; of a binding ``exchange/queue/key``.
            properties: by the names of qpidd.
            strict: have properties refused that the broker does not know.
        """
        arguments = {"type": _type, "name": name, "properties": dict(properties or {}), "strict": strict}
        return self.call("create", arguments)

    def delete(self, _type: str, name: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Delete an object; `options` of a queue are ``if_empty`` and ``if_unused``."""
        return self.call("delete", {"type": _type, "name": name, "options": dict(options or {})})

    # Requests

    def call(
        self,
        method: str,
        arguments: Mapping[str, Any] | None = None,
        addr: str = BROKER_OBJECT,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Call a method.

        Args:
            method: its name.
            arguments: by name.
            addr: name of the object: ``package:class:key``.
            timeout: seconds to wait for the answer; None for those of the `BrokerAgent`.

        Returns:
            the output arguments.
        """
        content = {"_object_id": {"_object_name": addr}, "_method_name": method, "_arguments": dict(arguments or {})}
        (answer,) = self._retry(lambda: self._channel.request("_method_request", content, timeout))
        values = answer.content.get("_arguments") if isinstance(answer.content, dict) else None
        return values if isinstance(values, dict) else {}

    #: The name that published scripts use.
    _method = call

    def find(self, object_name: str) -> dict[str, Any] | None:
        """The content of the object with the name ``package:class:key``; None if there is none."""
        found = self._query({"_what": "OBJECT", "_object_id": {"_object_name": object_name}})
        return found[0] if len(found) == 1 else None

    def find_all(self, class_name: str) -> list[dict[str, Any]]:
        """The contents of all objects of a class, whose name is in lower case; none of an unknown class."""
        return self._query({"_what": "OBJECT", "_schema_id": {"_class_name": class_name.lower()}})

    def _query(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            parts = self._retry(lambda: self._channel.request("_query_request", query))
        except RemoteError as error:
            if error.code == ErrorCode.UNKNOWN_OBJECT:
                return []
            raise
        found: list[dict[str, Any]] = []
        for part in parts:
            items = part.content
            if not isinstance(items, list) or not all(
                isinstance(item, dict) and isinstance(item.get("_values"), dict) for item in items
            ):
                raise ProtocolError(f"the broker answered a query with {items!r}")
            found += items
        return found

    def _all(self, cls: type[Obj]) -> list[Obj]:
        return [cls(self, item) for item in self.find_all(cls.class_name)]

    def _single(self, cls: type[Obj]) -> Obj | None:
        return next(iter(self._all(cls)), None)

    def _find_named(self, cls: type[Obj], key: str) -> Obj | None:
        content = self.find(f"{PACKAGE}:{cls.class_name}:{key}")
        return None if content is None else cls(self, content)

    def _retry(self, request: Callable[[], T]) -> T:
        while True:
            try:
                return request()
            except ConnectionError:
                if not self._reconnect():
                    raise

    def _reconnect(self) -> bool:
        if self._make_connection is None:
            return False
        for delay in self._reconnect_delays:
            time.sleep(delay)
            try:
                connection = self._make_connection()
            except (ConnectionError, Timeout):
                continue
            self.reconnect(connection)
            return True
        return False

    # Last, since its name hides that of the type in annotations.
    def list(self, _type: str) -> list[dict[str, Any]]:
        """The values of all objects of a class, such as ``queue``."""
        return [item["_values"] for item in self.find_all(_type)]
