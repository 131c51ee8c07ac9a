"""Functions compiled from source text, for loops over fields that are known once for all.

The text is put together from names and numbers of ours. Names that a schema or a peer chose are only passed in as
values.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import os
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, TypeVar

T = TypeVar("T")

#: Set in the environment to do without compiled modules.
NO_NATIVE = "QMF_NO_NATIVE"

#: Of the compiled module that fits; see `VERSION` in `records.c`.
_VERSION = 2


def compile_function(name: str, source: str, names: Mapping[str, object], owner: str) -> Callable[..., Any]:
    """Compile a function. Its text is kept where tracebacks and debuggers look for it (`linecache`).

    Args:
        name: of the function in the source.
        source: one ``def``.
        names: the function's globals.
        owner: what the function is for, as tracebacks show it, e.g. ``queue``.

    Returns:
        the function.
    """
    file = f"<{name} of {owner}>"
    space: dict[str, Any] = dict(names)
    exec(_code(source, file), space)
    # Entries without a time are never checked against a disk.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    function = space.pop(name)  # no cycle of function and globals
    assert callable(function)
    return function  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=1024)
def _code(source: str, file: str) -> CodeType:
    """The code of a text. Several agents or consoles in a process have the same classes, and so the same texts."""
    return compile(source, file, "exec")  # our own text, see above


def fast_constructor(cls: type[T], *, acyclic: bool = False) -> Callable[..., T]:
    """A function that makes instances of a frozen class in a quarter of the time that the class takes, or less.

    The `__init__` of a frozen class calls `object.__setattr__` for each field. This function is a compiled one
    (`records.c`), or fills an instance of a twin class, which has the same slots and is not frozen, and then changes
    its class. It takes a value for each slot, in their order and by position. No default, validator, converter or
    `__init__` runs.

    Args:
        cls: a class with `__slots__` and no base; of attrs, one with ``weakref_slot=False``.
        acyclic: as of `filler`.

    Raises:
        TypeError: the class has other bases, or special slots such as ``__weakref__``.
    """
    slots = tuple(vars(cls).get("__slots__", ()))
    if cls.__bases__ != (object,) or not slots or any(name.startswith("__") for name in slots):
        raise TypeError(f"{cls.__name__} has more than slots of its own")
    native = filler(cls, slots, acyclic=acyclic)
    if native is not None:
        return native
    twin = type(f"{cls.__name__}Draft", (), {"__slots__": slots})
    lines = [
        f"def make({', '.join(slots)}):",
        "    draft = new(twin)",
        *(f"    draft.{name} = {name}" for name in slots),
        "    draft.__class__ = cls",
        "    return draft",
        "",
    ]
    names = {"new": object.__new__, "twin": twin, "cls": cls}
    make: Callable[..., T] = compile_function("make", "\n".join(lines), names, cls.__name__)
    return make


def filler(cls: type[T], slots: tuple[str, ...], *, acyclic: bool = False) -> Callable[..., T] | None:
    """The compiled function that makes instances of a class which has slots only; no `__init__` and no `__new__` runs.

    Args:
        cls: the class.
        slots: names of its slots, in the order in which the function takes their values.
        acyclic: nothing that the values refer to ever refers to the instance. The collector of cycles then does not
            look at it, which was a quarter of the time of a program that keeps hundreds of thousands.

    Returns:
        the function; None where compiled modules are not installed, or not wanted.

    Raises:
        TypeError: the class has no such slot.
    """
    module = compiled_records()
    return None if module is None else module.maker(cls, slots, acyclic)


@functools.cache
def compiled_records() -> Any:
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf._records")
    except ImportError:
        return None
    return module if module.VERSION == _VERSION else None
