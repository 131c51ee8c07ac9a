"""What a protocol without an engine writes: the bytes of a turn of the loop go out together, up to a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: Bytes that may wait to be written before queues deliver no more.
_MAX_BACKLOG = 256 * 1024
#: Seconds that a connection which is being closed may take to write what waits.
_LINGER = 3.0
#: Bytes of parts that are not put together to be written.
_LARGE = 4096


class TurnOutput:
    """The output of one connection.

    Attributes:
        octets: bytes that were written.
        last_write: when that was, by the loop's clock.
        collecting: what is written waits for a call of `flush`.
    """

    def __init__(self, on_room: Callable[[], None]) -> None:
        """Begin without a transport.

        Args:
            on_room: called when so much was written that queues had to wait, and there is room again.
        """
        self.octets = 0
        self.last_write = 0.0
        self.collecting = False
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []
        self._size = 0
        self._scheduled: asyncio.Handle | None = None
        self._linger: asyncio.TimerHandle | None = None

    @property
    def has_room(self) -> bool:
        """More may be written without piling up in memory."""
        return self._size < _MAX_BACKLOG

    def connect(self, transport: asyncio.Transport) -> None:
        """The connection is made."""
        self._transport = transport

    def write(self, data: bytes) -> None:
        """Write bytes in this turn of the loop."""
        if not data or self._transport is None:
            return
        self._waiting.append(data)
        self._size += len(data)
        if self._scheduled is None and not self.collecting:
            self._scheduled = self._loop.call_soon(self._flush_scheduled)

    def flush(self) -> None:
        """Write what waits now."""
        if not self._waiting:
            return
        parts, self._waiting = self._waiting, []
        full, size, self._size = not self.has_room, self._size, 0
        self.octets += size
        self.last_write = self._loop.time()
        if self._transport is not None and not self._transport.is_closing():
            if len(parts) > 1 and size > _LARGE * len(parts):
                self._transport.writelines(parts)  # not copied, where the loop can do that
            else:
                self._transport.write(b"".join(parts))
            if full:
                self._on_room()

    def close(self) -> bool:
        """Close the transport when what waits is written, or after a moment; False if it is closed, or being closed."""
        if self._transport is None or self._transport.is_closing():
            return False
        self.flush()
        self._transport.close()
        self._linger = self._loop.call_later(_LINGER, self.abort)
        return True

    def abort(self) -> None:
        """Close the transport at once."""
        if self._transport is not None:
            self._transport.abort()

    def disconnect(self) -> None:
        """The connection is gone."""
        self._transport = None
        for handle in (self._scheduled, self._linger):
            if handle is not None:
                handle.cancel()
        self._scheduled = self._linger = None

    def _flush_scheduled(self) -> None:
        self._scheduled = None
        self.flush()
