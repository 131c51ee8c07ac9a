"""`fast_constructor` makes the same values as the class does."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from qmf._compile import fast_constructor


@attrs.frozen(weakref_slot=False)
class Point:
    x: int
    y: int = 0
    name: str = attrs.field(default="", kw_only=True)


make_point = fast_constructor(Point)


def test_what_is_made_is_the_same_as_what_the_class_makes() -> None:
    point = make_point(1, 2, "p")
    assert point == Point(1, 2, name="p")
    assert type(point) is Point
    assert hash(point) == hash(Point(1, 2, name="p"))
    assert repr(point) == repr(Point(1, 2, name="p"))
    assert attrs.evolve(point, x=5) == Point(5, 2, name="p")
    assert copy.copy(point) == pickle.loads(pickle.dumps(point)) == point


def test_what_is_made_is_frozen() -> None:
    point = make_point(1, 2, "p")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 3  # type: ignore[attr-defined]


def test_every_slot_must_be_given() -> None:
    with pytest.raises(TypeError):
        make_point(1, 2)


@attrs.frozen
class WithWeakReferences:
    x: int


@attrs.frozen(slots=False)
class WithoutSlots:
    x: int


@attrs.frozen(weakref_slot=False)
class Derived(Point):
    z: int = 0


@pytest.mark.parametrize("cls", [WithWeakReferences, WithoutSlots, Derived, int])
def test_classes_that_cannot_be_made_so(cls: type) -> None:
    with pytest.raises(TypeError, match="more than slots of its own"):
        fast_constructor(cls)
