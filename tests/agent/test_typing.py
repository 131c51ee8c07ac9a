"""What mypy knows of generated classes: this file is checked with `mypy --strict`, and runs as well."""

from __future__ import annotations

from typing import assert_type
from uuid import UUID

import pytest
from agent.warehouse import Shelf, Site

from qmf.agent import Attribute, Counter, HiLo, Mma, ObjectId
from qmf.errors import ConstraintError


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
