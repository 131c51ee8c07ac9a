"""Which objects and events of a broker are about what agents, consoles and tools of this project create there.

Their queues, bindings, subscriptions, links, sessions and connections are marked (`qmf._marks`). Lists, metrics and
reports leave them out, unless asked for everything: a broker without applications looks empty then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf._marks import is_own_connection, is_own_name

#: The package of brokers' classes.
BROKER_PACKAGE = "org.apache.qpid.broker"
CONNECTION, SESSION = "connection", "session"
#: The values that show of an object whether it is an own one, by class; sessions are known by their connection.
_NAME, _QUEUE, _PROPERTIES = "name", "queueRef", "remoteProperties"
_TELLING = {
    "queue": (_NAME,),
    "binding": (_QUEUE,),
    "subscription": (_QUEUE, _NAME),
    "incoming": (_NAME,),
    "outgoing": (_NAME,),
    CONNECTION: (_PROPERTIES,),
}
#: Arguments of events that name queues and links, and the one with the properties of a connection.
EVENT_NAMES, EVENT_PROPERTIES = ("qName", "dest"), "properties"
#: The event that qpidd reports of each link of AMQP 1.0, ours or not, as the end of nobody to nothing.
UNSUBSCRIBE = "unsubscribe"

Values = Mapping[str, object]


def object_name(value: object) -> object:
    """The name in a reference, as messages or `ObjectId` have it; every other value unchanged."""
    if isinstance(value, Mapping):
        return value.get("_object_name")
    return getattr(value, "object_name", value)


def may_be_own(package: str, class_name: str) -> bool:
    """True for a class whose objects may be own ones."""
    return package == BROKER_PACKAGE and (class_name in _TELLING or class_name == SESSION)


def is_own_object(
    package: str,
    class_name: str,
    values: Values,
    is_own_reference: Callable[[object], bool] = lambda _: False,
) -> bool:
    """True for an object about what an agent, a console or a tool created for itself.

    Args:
        values: its values by wire name.
        is_own_reference: tells of the `connectionRef` of a session whether it is an own connection.
    """
    if not may_be_own(package, class_name):
        return False
    if class_name == SESSION:
        return is_own_reference(values.get("connectionRef"))
    # Lists ask this of each of their objects, whose values are decoded for it: only those of its class are looked at.
    return any(_is_own_value(name, values.get(name)) for name in _TELLING[class_name])


def has_own_values(values: Values) -> bool:
    """As `is_own_object`, for values of a broker's class other than its sessions."""
    return any(_is_own_value(name, values.get(name)) for name in (_NAME, _QUEUE, _PROPERTIES))


def _is_own_value(name: str, value: object) -> bool:
    if name == _PROPERTIES:
        return is_own_connection(value)
    if name == _QUEUE:
        queue = object_name(value)
        return isinstance(queue, str) and is_own_name(queue.rpartition(":")[2])
    return _is_own_text(value)


def is_own_event(package: str, name: str, values: Values) -> bool:
    """True for an event of what an agent, a console or a tool created or deleted, or of `UNSUBSCRIBE` of nobody."""
    if package != BROKER_PACKAGE:
        return False
    if name == UNSUBSCRIBE and not any(values.values()):
        return True
    return any(_is_own_text(values.get(key)) for key in EVENT_NAMES) or is_own_connection(values.get(EVENT_PROPERTIES))


def _is_own_text(value: object) -> bool:
    return isinstance(value, str) and is_own_name(value)
