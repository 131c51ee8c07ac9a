"""The high-level messaging API for asyncio; `qmf.messaging` is its synchronous form."""

from __future__ import annotations

from qmf.messaging.aio.connection import Connection
from qmf.messaging.aio.consumer import Consumer
from qmf.messaging.aio.message import ReceivedMessage
from qmf.messaging.aio.receiver import Receiver
from qmf.messaging.aio.sender import Sender
from qmf.messaging.aio.session import Session

__all__ = ["Connection", "Consumer", "ReceivedMessage", "Receiver", "Sender", "Session"]
