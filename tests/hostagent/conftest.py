"""Fixtures of the host agent's tests."""

from __future__ import annotations

import pytest
from hostagent.fakes import World


@pytest.fixture
def world() -> World:
    """A machine that the test makes up."""
    return World()
