"""Which objects and events are about what agents and consoles create on a broker for themselves.

Their queues, bindings, subscriptions, links, sessions and connections are marked (`qmf.console.marks`). Tables leave
them out, unless asked for everything: a broker without applications looks empty then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.console.aio import ObjectId, RemoteEvent, RemoteObject
from qmf.console.marks import is_own_connection, is_own_name
from qmf.web.pages.live.site import Site

_PACKAGE = "org.apache.qpid.broker"
Values = Mapping[str, object]


def _own_text(value: object) -> bool:
    return isinstance(value, str) and is_own_name(value)


def _named(name: str) -> Callable[[Values], bool]:
    return lambda values: _own_text(values.get(name))


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

    def __init__(self, site: Site) -> None:
        """`site` knows the connections that sessions refer to, if they are followed."""
        self._site = site

    def is_own(self, obj: RemoteObject) -> bool:
        """True for an object about what an agent or a console created for itself."""
        key = obj.class_key
        if key is None or key.package != _PACKAGE:
            return False
        if key.name == "session":
            return self._is_own_session(obj)
        test = _TESTS.get(key.name)
        return test is not None and test(obj.data.values)

    def _is_own_session(self, obj: RemoteObject) -> bool:
        connection = obj["connectionRef"] if "connectionRef" in obj.data.values else None
        if not isinstance(connection, ObjectId):
            return False
        followed = self._site.followed_class(_PACKAGE, "connection")
        found = None if followed is None else followed.get(connection)
        return found is not None and self.is_own(found)


def is_own_event(event: RemoteEvent) -> bool:
    """True for an event about what an agent or a console created or deleted.

    So is the end of a subscription without a name: qpidd reports that of each AMQP 1.0 link as one of nobody to
    nothing.
    """
    key = event.class_key
    if key is None or key.package != _PACKAGE:
        return False
    values = event.arguments
    if key.name == "unsubscribe" and not any(values.values()):
        return True
    return (
        _own_text(values.get("qName")) or _own_text(values.get("dest")) or is_own_connection(values.get("properties"))
    )
