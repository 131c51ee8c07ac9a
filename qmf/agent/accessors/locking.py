"""Accessors with a lock of their own, for interpreters without a global lock (see `qmf.agent.accessors.accessors`).

Same results, at twice the time and some more memory: on such an interpreter threads truly run at the same time.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

A = TypeVar("A")

#: Whether the interpreter keeps the promise that plain accessors rely on. A global lock that is there stays.
HAS_GLOBAL_LOCK = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()

_METHODS = ("inc", "dec", "set", "sample", "_read", "_take", "_restore")


@functools.cache
def locking_subclass(cls: type[A]) -> type[A]:
    """A subclass of an accessor class whose methods hold a lock."""

    def __init__(self: Any, *arguments: Any) -> None:
        self._lock = threading.Lock()
        cls.__init__(self, *arguments)

    members: dict[str, object] = {"__slots__": ("_lock",), "__doc__": cls.__doc__, "__init__": __init__}
    for name in _METHODS:
        if hasattr(cls, name):
            members[name] = _holding(getattr(cls, name))
    if "average" in vars(cls):
        members["average"] = property(_holding(vars(cls)["average"].fget))
    return type(cls.__name__, (cls,), members)


def _holding(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def locked(self: Any, *arguments: Any) -> Any:
        with self._lock:
            return method(self, *arguments)

    return locked
