"""Fixtures of the tests of the web console."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from web.pages.world import World, world


@pytest_asyncio.fixture
async def opened() -> AsyncIterator[World]:
    """A world with three shelves."""
    async with world() as found:
        yield found
