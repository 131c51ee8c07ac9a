"""Which objects and events lists leave out, unless the user wants everything: see `qmf.views.internal`."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Mapping

from qmf.views import internal
from qmf.views.internal import BROKER_PACKAGE
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.session.backend import ClassName

#: The class whose objects sessions refer to.
CONNECTION: ClassName = (BROKER_PACKAGE, internal.CONNECTION)
SESSION: ClassName = (BROKER_PACKAGE, internal.SESSION)
#: Own connections that are remembered, also after their end: their sessions may be reported later.
_REMEMBERED = 10_000
Values = Mapping[str, object]


def is_own_object(item: ObjectView, is_own_connection: Callable[[object], bool] = lambda _: False) -> bool:
    """True for an object about what an agent or a console created; of a session its connection tells."""
    # Asked of each object of a list: its identity and its converted values cost more than the answer.
    name = item.schema.package, item.schema.name.lower()  # agents send it in lower case, the schema may not have it
    return internal.is_own_object(*name, item.values if name == SESSION else item.received_values, is_own_connection)


def split_own(
    objects: Iterable[ObjectView], connections: Callable[[], Iterable[ObjectView]]
) -> tuple[list[ObjectView], list[ObjectView]]:
    """The objects that are no own ones, and those that are; `connections` returns all, if there are sessions."""

    @functools.cache
    def own_connections() -> set[object]:
        return {item.identity.key for item in connections() if is_own_object(item)}

    others: list[ObjectView] = []
    own: list[ObjectView] = []
    for item in objects:
        (own if is_own_object(item, lambda key: key in own_connections()) else others).append(item)
    return others, own


def may_be_own(name: ClassName) -> bool:
    """True for a class whose objects may be about what an agent or a console created."""
    return internal.may_be_own(*name)


def own_note(count: int) -> list[str]:
    """What a table says of the objects that it leaves out."""
    return [f"{count:,} of agents and consoles not shown (--all)"] if count else []


class OwnObjectTracker:
    """Tells whether published objects are own ones; for sessions it remembers the connections that were published."""

    def __init__(self) -> None:
        # Oldest first; only keys are used. A plain dict looks for its oldest key past all that were removed.
        self._connections: collections.OrderedDict[ObjectKey, None] = collections.OrderedDict()

    def notice(self, key: ObjectKey, name: ClassName, values: Values) -> bool:
        """True if an object that was published is an own one."""
        if not may_be_own(name):
            return False
        own = internal.is_own_object(*name, values, self._connections.__contains__)
        if own and name == CONNECTION:
            self._connections[key] = None
            if len(self._connections) > _REMEMBERED:
                self._connections.popitem(last=False)
        return own
