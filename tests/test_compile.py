"""`fast_constructor` makes the same values as the class does, by a compiled function or by one in Python."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from collections.abc import Callable

import attrs
import pytest

from qmf import _compile
from qmf._compile import compile_function, fast_constructor, filler


@attrs.frozen(weakref_slot=False)
class Point:
    x: int
    y: int = 0
    name: str = attrs.field(default="", kw_only=True)


@pytest.fixture(params=["compiled", "plain"])
def make_point(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Point]:
    """Makes points, in both ways."""
    if request.param == "plain":
        monkeypatch.setattr(_compile, "compiled_records", lambda: None)
    elif _compile.compiled_records() is None:
        pytest.skip("the module is not compiled")
    return fast_constructor(Point)


def test_what_is_made_is_the_same_as_what_the_class_makes(make_point: Callable[..., Point]) -> None:
    point = make_point(1, 2, "p")
    assert point == Point(1, 2, name="p")
    assert type(point) is Point
    assert hash(point) == hash(Point(1, 2, name="p"))
    assert repr(point) == repr(Point(1, 2, name="p"))
    assert attrs.evolve(point, x=5) == Point(5, 2, name="p")
    assert copy.copy(point) == pickle.loads(pickle.dumps(point)) == point


def test_what_is_made_is_frozen(make_point: Callable[..., Point]) -> None:
    point = make_point(1, 2, "p")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 3  # type: ignore[attr-defined]


def test_every_slot_must_be_given(make_point: Callable[..., Point]) -> None:
    for wrong in ((), (1, 2), (1, 2, "p", 4)):
        with pytest.raises(TypeError):
            make_point(*wrong)
    with pytest.raises(TypeError):
        make_point(1, 2, unknown="p")


def test_values_are_referred_to_as_often_as_they_are_held(make_point: Callable[..., Point]) -> None:
    value = object()
    before = sys.getrefcount(value)
    points = [make_point(value, value, value) for _ in range(10)]
    assert sys.getrefcount(value) == before + 30
    points[0] = make_point(points, 1, "a cycle")
    del points
    gc.collect()
    assert sys.getrefcount(value) == before


class Named:
    __slots__ = ("__weakref__", "name", "value")

    def __init__(self, value: int, name: str) -> None:
        self.value = value
        self.name = name


@pytest.mark.skipif(_compile.compiled_records() is None, reason="the module is not compiled")
def test_slots_are_filled_in_the_order_that_is_asked_for() -> None:
    make = filler(Named, ("value", "name"))
    assert make is not None
    made = make(1, "a")
    assert (type(made), made.value, made.name) == (Named, 1, "a")
    assert weakref.ref(made)() is made
    with pytest.raises(TypeError, match="'__init__' is no slot of Named"):
        filler(Named, ("__init__",))
    with pytest.raises(AttributeError):
        filler(Named, ("other",))
    with pytest.raises(TypeError, match="a class of Python"):
        filler(int, ("real",))


@pytest.mark.skipif(_compile.compiled_records() is None, reason="the module is not compiled")
def test_the_collector_of_cycles_does_not_look_at_acyclic_values() -> None:
    tracked, untracked = fast_constructor(Point), fast_constructor(Point, acyclic=True)
    assert (gc.is_tracked(tracked(1, 2, [])), gc.is_tracked(untracked(1, 2, []))) == (True, False)
    held = [3]
    before = sys.getrefcount(held)
    points = [untracked(held, 2, "p") for _ in range(10)]
    assert sys.getrefcount(held) == before + 10
    assert copy.copy(points[0]) == Point(held, 2, name="p")  # type: ignore[arg-type]
    del points
    assert sys.getrefcount(held) == before


def test_without_the_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_compile.NO_NATIVE, "1")
    assert _compile.compiled_records.__wrapped__() is None


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


def test_a_text_is_compiled_once_and_its_names_are_each_functions_own() -> None:
    source = "def read():\n    return value\n"
    one, two = (compile_function("read", source, {"value": value}, "twice") for value in (1, 2))
    assert one.__code__ is two.__code__
    assert (one(), two()) == (1, 2)
    other = compile_function("read", source, {"value": 3}, "another owner")
    assert other.__code__.co_filename == "<read of another owner>"
