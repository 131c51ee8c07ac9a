"""What a protocol without an engine reads: whether it does, and for how long the client has said nothing."""

from __future__ import annotations

import asyncio
import enum


class InputHold(enum.Enum):
    """Why a client is not read from."""

    LOGIN = enum.auto()  #: who it is has yet to be found out
    WRITING = enum.auto()  #: it does not read
    STORING = enum.auto()  #: what it has sent has yet to be stored


class HeldInput:
    """The input of one connection.

    Attributes:
        octets: bytes that were read.
    """

    def __init__(self) -> None:
        self.octets = 0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._last_read = 0.0
        self._holds: set[InputHold] = set()

    def connect(self, transport: asyncio.Transport) -> None:
        """The connection is made."""
        self._transport = transport

    def disconnect(self) -> None:
        """The connection is gone."""
        self._transport = None

    def count(self, size: int) -> None:
        """Bytes were read."""
        self.octets += size
        self._last_read = self._loop.time()

    def begin_silence(self) -> None:
        """From now on it counts that the client says nothing."""
        self._last_read = self._loop.time()

    def silence(self) -> float:
        """Seconds for which the client has said nothing; none while the broker does not read from it."""
        if self._holds & {InputHold.LOGIN, InputHold.STORING}:
            return 0.0
        return self._loop.time() - self._last_read

    def is_held(self, reason: InputHold) -> bool:
        """Whether this is a reason not to read."""
        return reason in self._holds

    def hold(self, reason: InputHold) -> None:
        """Read nothing, for now."""
        if not self._holds and self._transport is not None:
            self._transport.pause_reading()
        self._holds.add(reason)

    def release(self, reason: InputHold) -> None:
        """Read again, unless there is another reason not to."""
        if reason not in self._holds:
            return
        self._holds.discard(reason)
        if reason is not InputHold.WRITING:
            self.begin_silence()
        if not self._holds and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
