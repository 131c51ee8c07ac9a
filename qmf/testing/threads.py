"""`Recorder` and `FakeAgent` for tests without an event loop: each on one of its own, in a background thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from qmf.console import LoopThread

T = TypeVar("T")


class Opened(Protocol):
    """What `async with` can open."""

    async def __aenter__(self) -> object:
        """Open."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object:
        """Close."""


TOpened = TypeVar("TOpened", bound=Opened)


class InThread(Generic[TOpened]):
    """Opens something on an event loop in a thread of its own, and runs its coroutines there.

    ``with InThread(lambda: Recorder(exchange)) as recorder:``, then ``recorder.run(recorder.it.there("till"))``. For
    tests of plain threaded programs: in a coroutine it would block the loop.

    Attributes:
        it: what was opened. Attributes and functions that are no coroutines may be used from the test's thread.
    """

    it: TOpened

    def __init__(self, make: Callable[[], TOpened]) -> None:
        """Args:

        make: makes it; called in the thread.
        """
        self._make = make
        self._loop = LoopThread("qmf-testing")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of it and wait for the result; raises what that raises."""
        return self._loop.run(work)

    def __enter__(self) -> Self:
        async def begin() -> TOpened:
            it = self._make()
            await it.__aenter__()
            return it

        try:
            self.it = self._loop.run(begin())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(_end(self.it))
        finally:
            self._loop.stop()


async def _end(it: Opened) -> None:
    await it.__aexit__(None, None, None)
