"""Handing bytes to a protocol of asyncio, of either kind, as its transport would."""

from __future__ import annotations

import asyncio
from typing import cast


def feed(protocol: asyncio.BaseProtocol, data: bytes | bytearray | memoryview, transport: asyncio.Transport) -> None:
    """Hand bytes to a protocol.

    Args:
        protocol: with `data_received` or with buffers of its own.
        data: what came.
        transport: of the protocol; nothing is handed over any more once it is closing.
    """
    if not isinstance(protocol, asyncio.BufferedProtocol):
        cast("asyncio.Protocol", protocol).data_received(bytes(data))
        return
    left = memoryview(data)
    while left and not transport.is_closing():
        buffer = memoryview(protocol.get_buffer(len(left)))
        count = min(len(left), len(buffer))
        buffer[:count] = left[:count]
        protocol.buffer_updated(count)
        left = left[count:]
