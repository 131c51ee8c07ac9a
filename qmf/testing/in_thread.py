"""`Recorder` and `FakeAgent` for tests without an event loop: each has an event loop in a background thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from qmf.console import LoopThread

T = TypeVar("T")
TOpened = TypeVar("TOpened", bound=AbstractAsyncContextManager[Any])


class InThread(Generic[TOpened]):
    """Opens an object on an event loop in a thread of its own, and runs its coroutines there.

    ``with InThread(lambda: Recorder(exchange)) as recorder:``, then ``recorder.run(recorder.it.there("till"))``. For
    tests of threaded programs: in a coroutine it would block the loop.

    Attributes:
        it: the object. Its attributes and plain methods may be used from the test's thread.
    """

    it: TOpened

    def __init__(self, make: Callable[[], TOpened]) -> None:
        """Prepare the thread, which starts when the block is entered.

        Args:
            make: makes the object; called in the thread.
        """
        self._make = make
        self._loop = LoopThread("qmf-testing")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the object and wait for its result; raises the error of the coroutine."""
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
            self._loop.run(self.it.__aexit__(None, None, None))
        finally:
            self._loop.stop()
