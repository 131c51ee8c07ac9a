"""The high-level messaging API for asyncio; `qmf.messaging` is its synchronous form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports
from qmf.messaging.aio.connection import Connection
from qmf.messaging.aio.message import ReceivedMessage
from qmf.messaging.aio.receiver import Receiver
from qmf.messaging.aio.sender import Sender
from qmf.messaging.aio.session import Session

if TYPE_CHECKING:
    from qmf.messaging.aio.consumer import Consumer
else:
    # Consumers of the synchronous form stand on the classes above.
    __getattr__, __dir__ = lazy_exports(__name__, {"qmf.messaging.aio.consumer": "Consumer"})

__all__ = ["Connection", "Consumer", "ReceivedMessage", "Receiver", "Sender", "Session"]
