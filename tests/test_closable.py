"""What a block closes at its end, also when it fails."""

from __future__ import annotations

import pytest

from qmf._closable import AsyncClosable, Closable


class Door(Closable):
    closed = 0

    def close(self) -> None:
        self.closed += 1


class AsyncDoor(AsyncClosable):
    closed = 0

    async def close(self) -> None:
        self.closed += 1


def test_it_is_closed_after_the_block() -> None:
    with Door() as door:
        assert door.closed == 0
    assert door.closed == 1
    with pytest.raises(LookupError), door:
        raise LookupError
    assert door.closed == 2


async def test_it_is_closed_after_the_asynchronous_block() -> None:
    async with AsyncDoor() as door:
        assert door.closed == 0
    assert door.closed == 1
    with pytest.raises(LookupError):
        async with door:
            raise LookupError
    assert door.closed == 2
