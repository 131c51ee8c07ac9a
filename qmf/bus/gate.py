"""The compiled wait of an event loop (`gate.c`), where it is installed: other threads may act for it meanwhile."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Sized
from typing import Any, Protocol

from qmf.bus.engine.native import NO_NATIVE, native

#: Of the module that fits; see `GATE_VERSION` in `gate.h`.
_VERSION = 2
#: In place of a descriptor in what `Gate.wait` returns.
READ, LEFT = -1, -2


class Gate(Protocol):
    """The gate of one loop; its methods are described in `gate.c`. It is open while the loop's thread waits.

    Attributes:
        address: where what the engine needs of it is.
    """

    address: int

    def wait(self, milliseconds: int, descriptor: int, buffer: memoryview | None, /) -> list[tuple[int, int]]:
        """Wait for events, on the loop's thread."""

    def signal(self, descriptor: int, owner: object, /) -> None:
        """Wake up a thread once the loop waits."""

    def wake(self) -> None:
        """End the wait."""

    def epoch(self) -> int:
        """What an action on another thread is based on; 0 if the gate is shut."""

    def watch(self, descriptor: int, /) -> None:
        """Wait for a socket that `wait` reads, too."""

    def unwatch(self, descriptor: int, /) -> bool:
        """Undo `watch`; True if another thread waits for the socket: it will close that descriptor."""

    def close(self) -> None:
        """The loop does not wait any more."""


@functools.cache
def _module() -> Any:
    if os.environ.get(NO_NATIVE) or native() is None:
        return None
    try:
        module = importlib.import_module("qmf.bus._gate")
    except ImportError:
        return None
    return module if module.VERSION == _VERSION else None


def has_gates() -> bool:
    """Whether loops can have gates here: on Linux, with the compiled modules, and with the interpreter's lock."""
    return _module() is not None


def new_gate(poll: int, posted: Sized) -> Gate:
    """The gate of a loop, where `has_gates`.

    Args:
        poll: descriptor of its epoll.
        posted: while that is not empty, the loop does not wait.
    """
    gate: Gate = _module().Gate(poll, posted)
    return gate
