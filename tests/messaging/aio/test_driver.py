"""The network connection under the asyncio API."""

from __future__ import annotations

from typing import get_args

from qmf.bus.engine.events import EngineEvent, EventBatch
from qmf.messaging.aio.driver import HANDLERS


def test_every_event_of_the_engine_has_a_handler() -> None:
    assert set(HANDLERS) == set(get_args(EngineEvent)) | set(get_args(EventBatch))
