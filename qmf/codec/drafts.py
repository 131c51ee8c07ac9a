"""Making frozen values by the thousand.

The `__init__` of a frozen class calls `object.__setattr__` for each field, which takes most of the time that a value
takes. Here an instance begins as one of a twin class with the same slots and without the lock, is filled like any
object, and becomes one of the frozen class at the end: the same value in a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from qmf.codec.generated import build

T = TypeVar("T")


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes instances of a class, and takes a value for each of its slots, in their order.

    Nothing runs but that: no default, validator, converter or `__init__`.

    Args:
        cls: a class with `__slots__` and no base; of attrs, one with ``weakref_slot=False``.

    Raises:
        TypeError: it has other bases, or a slot that is no plain one.
    """
    slots = tuple(vars(cls).get("__slots__", ()))
    if cls.__bases__ != (object,) or not slots or any(name.startswith("__") for name in slots):
        raise TypeError(f"{cls.__name__} has more than slots of its own")
    twin = type(f"{cls.__name__}Draft", (), {"__slots__": slots})
    source = "\n".join(
        [
            f"def make({', '.join(slots)}):",
            "    draft = new(twin)",
            *(f"    draft.{name} = {name}" for name in slots),
            "    draft.__class__ = cls",
            "    return draft",
            "",
        ]
    )
    made: Callable[..., T] = build("make", source, {"new": object.__new__, "twin": twin, "cls": cls}, cls.__name__)
    return made
