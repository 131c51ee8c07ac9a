"""Binding keys that several users of one client need at the same time: bound for the first, unbound after the last."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.console.aio.wire import Wire


class SharedBindings:
    """Counts who needs a key. Keys that the program bound itself are left alone."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._users: dict[str, int] = {}
        self._own: set[str] = set()

    async def hold(self, keys: Iterable[str]) -> None:
        """Receive what these keys match, at least until `release`.

        Raises:
            NetworkError: the broker refused, or there is no connection.
        """
        for key in keys:
            self._users[key] = self._users.get(key, 0) + 1
            if await self._wire.bind(key):
                self._own.add(key)

    async def release(self, keys: Iterable[str]) -> None:
        """Undo one `hold` of these keys."""
        for key in keys:
            left = self._users.get(key, 0) - 1
            if left > 0:
                self._users[key] = left
                continue
            self._users.pop(key, None)
            if key in self._own:
                self._own.discard(key)
                await self._wire.unbind(key)
