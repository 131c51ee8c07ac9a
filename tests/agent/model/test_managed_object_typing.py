"""What mypy knows of generated classes: this file is checked with `mypy --strict`, and runs as well."""

from __future__ import annotations

from typing import assert_type
from uuid import UUID

import pytest
from agent.warehouse import Shelf, Site

from qmf.agent import Agent, Attribute, Counter, HiLo, Mma, ObjectId, agent_of
from qmf.bus import MemoryBus, MemoryExchange
from qmf.errors import CallerError, ConstraintError


def test_reading_has_the_schema_type() -> None:
    shelf = Shelf(number=1)
    assert_type(shelf.number, int)
    assert_type(shelf.label, str | None)
    assert_type(shelf.weight, float)
    assert_type(shelf.token, UUID)
    assert_type(shelf.siteRef, ObjectId | None)
    assert_type(shelf.in_, Counter)
    assert_type(shelf.users, HiLo)
    assert_type(shelf.wait, Mma)
    assert_type(shelf.wait.average, float)
    assert_type(Shelf.number, Attribute[int])
    assert isinstance(Shelf.number, Attribute)


def test_the_agent_of_an_object_has_its_type() -> None:
    agent = Agent(MemoryBus(MemoryExchange()), vendor="v", product="p")
    shelf = Shelf(number=1)
    with pytest.raises(CallerError, match="is in no agent"):
        agent_of(shelf)
    agent.add(shelf)
    assert_type(agent_of(shelf), Agent)
    assert agent_of(shelf) is agent
    agent.remove(shelf)
    with pytest.raises(CallerError, match="is in no agent"):
        agent_of(shelf)


def test_assignment_is_checked() -> None:
    shelf = Shelf(number=1)
    shelf.nextRef = Site(name="a")
    shelf.nextRef = ObjectId("a")
    shelf.nextRef = None
    with pytest.raises(ConstraintError):
        shelf.limit = "7"  # type: ignore[assignment]
    with pytest.raises(ConstraintError):
        shelf.in_ = 5  # type: ignore[assignment]
    with pytest.raises(ConstraintError):
        shelf.nextRef = "a"  # type: ignore[assignment]
