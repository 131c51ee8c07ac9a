"""What is followed once however many look at it, and for a while after the last of them left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

import attrs

from qmf._background_tasks import BackgroundTasks


class Following(Protocol):
    """Something that follows objects for all who look at them."""

    async def run(self) -> None:
        """Follow until cancelled, or until the client is closed."""


K = TypeVar("K", bound=Hashable)
F = TypeVar("F", bound=Following)


@attrs.define(eq=False)
class _Kept(Generic[F]):
    item: F
    task: asyncio.Task[None]
    users: int = 0
    timer: asyncio.TimerHandle | None = None


class FollowedStore(Generic[K, F]):
    """Everything that is followed, by what was selected. Belongs to the event loop."""

    def __init__(self, make: Callable[[K], F], kept: float) -> None:
        """Make a store that follows nothing yet.

        Args:
            make: makes what follows a selection; it is started by the store.
            kept: seconds for which it runs when nobody has a lease of it any more.
        """
        self._make = make
        self._seconds = kept
        self._kept: dict[K, _Kept[F]] = {}
        self._tasks = BackgroundTasks()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[F]:
        return iter([kept.item for kept in self._kept.values()])

    def get(self, selection: K) -> F | None:
        """What follows a selection already, or None."""
        kept = self._kept.get(selection)
        return None if kept is None else kept.item

    def lease(self, selection: K) -> tuple[F, Callable[[], None]]:
        """Follow a selection, or join those who do. What has ended is made again.

        Returns:
            what follows it, and a function that ends the lease; a second call of it does nothing.

        Raises:
            Exception: as of `make`.
        """
        kept = self._kept.get(selection)
        if kept is None or kept.task.done():
            item = self._make(selection)
            kept = self._kept[selection] = _Kept(item, self._tasks.spawn(item.run()))
        kept.users += 1
        if kept.timer is not None:
            kept.timer.cancel()
            kept.timer = None
        leases = [kept]

        def release() -> None:
            for held in leases:
                held.users -= 1
                if not held.users:
                    held.timer = asyncio.get_running_loop().call_later(self._seconds, self._drop, selection, held)
            leases.clear()

        return kept.item, release

    def drop_idle(self) -> bool:
        """End one thing that nobody has a lease of; False when there is none."""
        for selection, kept in self._kept.items():
            if not kept.users:
                self._drop(selection, kept)
                return True
        return False

    async def close(self) -> None:
        """End everything, and wait for it."""
        for kept in self._kept.values():
            if kept.timer is not None:
                kept.timer.cancel()
        self._kept.clear()
        await self._tasks.cancel()

    def _drop(self, selection: K, kept: _Kept[F]) -> None:
        if kept.timer is not None:
            kept.timer.cancel()
        if self._kept.get(selection) is kept:
            del self._kept[selection]
        kept.task.cancel()
