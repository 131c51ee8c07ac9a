"""Fixtures of the tests of the web console."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from web.pages.browsing import Scene, opened_browser, opened_scene
from web.pages.world import World, world

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest_asyncio.fixture
async def opened() -> AsyncIterator[World]:
    """A world with three shelves."""
    async with world() as found:
        yield found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A broker, an agent with many shelves, and the console."""
    with opened_scene(tmp_path_factory.mktemp("web") / "errors") as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without windows."""
    with opened_browser() as found:
        yield found
