"""What a ``with`` block closes at its end."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closable:
    """Something with `close`; as a context manager it is given to the block, and closed after it."""

    __slots__ = ()

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClosable:
    """As `Closable`, for ``async with``."""

    __slots__ = ()

    async def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
