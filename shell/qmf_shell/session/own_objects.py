"""Which objects and events of a broker are about what agents and consoles of this project create on it themselves.

Their queues, bindings, subscriptions, links, sessions and connections are marked (`qmf.console.marks`). Lists leave
them out, unless the user wants everything: a broker without applications looks empty then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from qmf.console.marks import is_own_connection, is_own_name
from qmf_shell.session.backend import ClassName, EventRecord, ObjectIdentity, ObjectKey, ObjectRecord

_PACKAGE = "org.apache.qpid.broker"
#: The class whose objects sessions refer to.
CONNECTION: ClassName = (_PACKAGE, "connection")
SESSION: ClassName = (_PACKAGE, "session")
#: Own connections that are remembered, also after their end: their sessions may be reported later.
_REMEMBERED = 10_000
Values = Mapping[str, object]


def _queue(values: Values) -> bool:
    return _own_text(values.get("name"))


def _of_queue(values: Values) -> bool:
    return _own_reference(values.get("queueRef"))


def _link(values: Values) -> bool:
    return _own_text(values.get("name"))


def _subscription(values: Values) -> bool:
    return _link(values) or _of_queue(values)


def _connection(values: Values) -> bool:
    return is_own_connection(values.get("remoteProperties"))


#: The classes whose objects may be own ones, with the test; sessions are known by their connection.
_TESTS: Mapping[str, Callable[[Values], bool]] = {
    "queue": _queue,
    "binding": _of_queue,
    "subscription": _subscription,
    "incoming": _link,
    "outgoing": _link,
    "connection": _connection,
}


def _own_text(value: object) -> bool:
    return isinstance(value, str) and is_own_name(value)


def _own_reference(value: object) -> bool:
    name = value.name if isinstance(value, ObjectKey) else value
    return isinstance(name, str) and is_own_name(name.rpartition(":")[2])


def is_own_object(item: ObjectRecord, own_connections: Collection[ObjectKey] = ()) -> bool:
    """True for an object about what an agent or a console created.

    Args:
        item: the object.
        own_connections: the connections of agents and consoles, for sessions.
    """
    key = item.identity.class_key
    return _is_own((key.package, key.name), item.values, own_connections)


def _is_own(name: ClassName, values: Values, own_connections: Collection[ObjectKey]) -> bool:
    if name == SESSION:
        return values.get("connectionRef") in own_connections
    test = _TESTS.get(name[1]) if name[0] == _PACKAGE else None
    return test is not None and test(values)


def may_be_own(name: ClassName) -> bool:
    """True for a class whose objects may be about what an agent or a console created."""
    return name[0] == _PACKAGE and (name[1] in _TESTS or name == SESSION)


def is_own_event(event: EventRecord) -> bool:
    """True for an event about what an agent or a console created or deleted.

    So is the end of a subscription without a name: qpidd reports that of each AMQP 1.0 link, ours or not, as one of
    nobody to nothing.
    """
    package, _, name = event.name.rpartition(":")
    if package != _PACKAGE:
        return False
    values = event.values
    if name == "unsubscribe" and not any(values.values()):
        return True
    return (
        _own_text(values.get("qName")) or _own_text(values.get("dest")) or is_own_connection(values.get("properties"))
    )


def own_connections(connections: Sequence[ObjectRecord]) -> set[ObjectKey]:
    """The keys of those connections that are own ones."""
    return {item.identity.key for item in connections if is_own_object(item)}


def is_own_index(identity: ObjectIdentity) -> bool:
    """True for a destroyed object whose index shows that it was an own one: sessions and connections don't show it."""
    return identity.class_key.package == _PACKAGE and any(map(is_own_name, identity.index.split(",")))


def own_note(count: int) -> list[str]:
    """What a table says of the objects that it leaves out."""
    return [f"{count:,} of agents and consoles not shown (--all)"] if count else []


class OwnObjectTracker:
    """Tells whether published objects are own ones; for sessions it remembers the connections that were published."""

    def __init__(self) -> None:
        # Oldest first; only keys are used.
        self._connections: dict[ObjectKey, None] = {}

    def notice(self, key: ObjectKey, name: ClassName, values: Values) -> bool:
        """True if an object that was published is an own one."""
        if not may_be_own(name):
            return False
        own = _is_own(name, values, self._connections)
        if own and name == CONNECTION:
            self._connections[key] = None
            if len(self._connections) > _REMEMBERED:
                del self._connections[next(iter(self._connections))]
        return own
