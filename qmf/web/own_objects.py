"""Which objects are about what agents and consoles create on a broker for themselves.

Their queues, bindings, subscriptions, links, sessions and connections are marked (`qmf.console.marks`). Tables and
metrics leave them out, unless asked for everything: a broker without applications looks empty then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.console.aio import ObjectId, RemoteObject
from qmf.console.marks import is_own_connection, is_own_name

#: The package of brokers' classes.
BROKER_PACKAGE = "org.apache.qpid.broker"
Values = Mapping[str, object]


def _named(name: str) -> Callable[[Values], bool]:
    def test(values: Values) -> bool:
        value = values.get(name)
        return isinstance(value, str) and is_own_name(value)

    return test


def _refers(name: str) -> Callable[[Values], bool]:
    def test(values: Values) -> bool:
        value = values.get(name)
        text = value.get("_object_name") if isinstance(value, Mapping) else getattr(value, "object_name", value)
        return isinstance(text, str) and is_own_name(text.rpartition(":")[2])

    return test


#: The classes whose objects may be own ones, with the test; sessions are known by their connection.
_TESTS: Mapping[str, Callable[[Values], bool]] = {
    "queue": _named("name"),
    "binding": _refers("queueRef"),
    "subscription": lambda values: _named("name")(values) or _refers("queueRef")(values),
    "incoming": _named("name"),
    "outgoing": _named("name"),
    "connection": lambda values: is_own_connection(values.get("remoteProperties")),
}


class OwnObjects:
    """Tells own objects from others."""

    def __init__(self, find_connection: Callable[[ObjectId], RemoteObject | None]) -> None:
        """`find_connection` finds the connections that sessions refer to; None for what is not known."""
        self._find_connection = find_connection

    def is_own(self, obj: RemoteObject) -> bool:
        """True for an object about what an agent or a console created for itself."""
        key = obj.class_key
        if key is None or key.package != BROKER_PACKAGE:
            return False
        if key.name == "session":
            return self._is_own_session(obj)
        test = _TESTS.get(key.name)
        return test is not None and test(obj.data.values)

    def _is_own_session(self, obj: RemoteObject) -> bool:
        connection = obj["connectionRef"] if "connectionRef" in obj.data.values else None
        found = self._find_connection(connection) if isinstance(connection, ObjectId) else None
        return found is not None and self.is_own(found)
