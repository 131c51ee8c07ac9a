"""An object with statistics of every kind."""

from __future__ import annotations

import pytest
from agent.object_states import settle
from agent.warehouse import Shelf


@pytest.fixture
def shelf() -> Shelf:
    """A shelf of which nothing is due."""
    shelf = Shelf(number=1)
    settle(shelf)
    return shelf
