"""A broker's store whose answers wait until a test lets them go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from broker.visible_broker import VisibleBroker

from qmf.broker.nodes.recorder import NotStored, OnStored


class SlowStore:
    """A broker's store whose answers wait until they are let go."""

    def __init__(self, broker: VisibleBroker) -> None:
        self.waiting: list[Callable[[], None]] = []
        recorder = broker.registry.recorder
        assert recorder is not None
        self._close_unit = recorder.close_unit
        self._slow = True
        recorder.close_unit = self._close_later  # type: ignore[method-assign, assignment]

    def _close_later(self, stored: OnStored | None) -> bool:
        if stored is None:
            return self._close_unit(None)

        def on_stored(error: NotStored | None) -> None:
            if self._slow:
                self.waiting.append(partial(stored, error))
            else:
                stored(error)

        return self._close_unit(on_stored)

    def let_go(self) -> None:
        """Answer, and from now on at once."""
        self._slow = False
        while self.waiting:
            self.waiting.pop(0)()
