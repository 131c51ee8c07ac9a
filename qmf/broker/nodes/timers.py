"""Calls that are to happen later, as event loops make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Cancellable(Protocol):
    """A call that is to happen later."""

    def cancel(self) -> None:
        """Do not call."""


#: As the method of asyncio's loops: seconds, and what to call.
CallLater = Callable[[float, Callable[[], None]], Cancellable]
