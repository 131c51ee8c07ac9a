"""What is being opened: it can be awaited, or entered as a context that closes it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

OpenedT = TypeVar("OpenedT", bound=AbstractAsyncContextManager[Any])
P = ParamSpec("P")


class Opening(Coroutine[Any, Any, OpenedT], AbstractAsyncContextManager[OpenedT]):
    """A coroutine that opens something: ``await`` it, or enter it with ``async with``, which closes it at its end."""

    __slots__ = ("_opened", "_work")

    def __init__(self, work: Coroutine[Any, Any, OpenedT]) -> None:
        """Take the coroutine, which is not started yet.

        Args:
            work: opens it.
        """
        self._work = work
        self._opened: OpenedT | None = None

    def send(self, value: Any) -> Any:
        """See `Coroutine`."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """See `Coroutine`."""
        return self._work.throw(*error)

    def close(self) -> None:
        """See `Coroutine`."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, OpenedT]:
        return self._work.__await__()

    async def __aenter__(self) -> OpenedT:
        opened = self._opened = await self._work
        return await opened.__aenter__()  # type: ignore[no-any-return]  # which is itself

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.__aexit__(kind, error, trace)


def opens(function: Callable[P, Coroutine[Any, Any, OpenedT]]) -> Callable[P, Opening[OpenedT]]:
    """Decorator of a coroutine function that opens something: what it returns can be entered as well."""

    @wraps(function)
    def opening(*args: P.args, **kwargs: P.kwargs) -> Opening[OpenedT]:
        return Opening(function(*args, **kwargs))

    return opening
