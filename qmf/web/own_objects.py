"""Which objects metrics and pages leave out, unless asked for everything: see `qmf.views.internal`."""

from __future__ import annotations

from collections.abc import Callable

from qmf.console.aio import ObjectId, RemoteObject
from qmf.views import internal


class OwnObjects:
    """Tells own objects from others."""

    def __init__(self, find_connection: Callable[[ObjectId], RemoteObject | None]) -> None:
        """`find_connection` finds the connections that sessions refer to; None for what is not known."""
        self._find_connection = find_connection

    def is_own(self, obj: RemoteObject) -> bool:
        """True for an object about what an agent or a console created for itself."""
        key = obj.class_key
        if key is None:
            return False
        return internal.is_own_object(key.package, key.name, obj.data.values, lambda _: self._has_own_connection(obj))

    def _has_own_connection(self, session: RemoteObject) -> bool:
        connection = session.typed_values.get("connectionRef")
        found = self._find_connection(connection) if isinstance(connection, ObjectId) else None
        return found is not None and self.is_own(found)
