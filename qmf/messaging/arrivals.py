"""The compiled functions for messages that arrive (`arrivals.c`), where they are installed.

The deliveries of a read are made in one call; a message that has all but its content and its ids in common with others
is taken apart.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from qmf.bus.engine.native import NO_NATIVE

#: Of the module that fits; see `VERSION` there.
_VERSION = 3


class ArrivalFunctions:
    """The functions of the compiled module; they are described there."""

    def __init__(self, module: Any) -> None:
        self.places: Callable[[type, tuple[str, ...]], bytes] = module.places
        self.make: Callable[[type, bytes, tuple[object, ...], list[Any]], list[Any]] = module.make
        self.take_apart: Callable[[type[Any], tuple[Any, ...], bytes, object], Any] = module.take_apart


@functools.cache
def arrival_functions() -> ArrivalFunctions | None:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.messaging._arrivals")
    except ImportError:
        return None
    return ArrivalFunctions(module) if module.VERSION == _VERSION else None
