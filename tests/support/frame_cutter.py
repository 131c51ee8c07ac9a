"""A proxy between AMQP 1.0 clients and a broker that cuts a connection at a chosen frame."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Iterator

import attrs
from support.proxy import Proxy

#: Seconds after which late frames arrive. The client has another connection by then.
_LATE = 0.05
#: Bytes of the header that a connection, or its SASL layer, begins with.
_HEADER = 8


class Performative(enum.IntEnum):
    """Kind of a frame (AMQP 1.0, part 2.7)."""

    OPEN = 0x10
    BEGIN = 0x11
    ATTACH = 0x12
    FLOW = 0x13
    TRANSFER = 0x14
    DISPOSITION = 0x15
    DETACH = 0x16
    END = 0x17
    CLOSE = 0x18


@attrs.define
class Cut:
    """Where a connection is cut.

    Attributes:
        performative: kind of frame that is counted; None for all.
        to_broker: count those that the client sends; False for those that the broker sends.
        count: at which one to cut.
        passed: True if this frame still arrives.
        late: True if what the client sent with this frame arrives, but only when the client has noticed the loss.
        refuse: True to refuse connections from then on, until `Proxy.refuse` allows them.
    """

    performative: Performative | None
    to_broker: bool
    count: int = 1
    passed: bool = True
    late: bool = False
    refuse: bool = False


class FrameCutter(Proxy):
    """A `Proxy` that passes whole frames, and cuts at frames that were announced with `cut_at`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._cuts: list[Cut] = []
        #: Ends of connections that were cut.
        self._dead: set[asyncio.StreamWriter] = set()

    def cut_at(self, cut: Cut) -> None:
        """Cut a connection once, at the frame described, which is counted from now on."""
        self._cuts.append(cut)

    @property
    def pending(self) -> int:
        """Number of cuts that have not happened yet."""
        return len(self._cuts)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        opposite: asyncio.StreamWriter,
        *,
        to_broker: bool,
    ) -> None:
        frames = _FrameReader()
        with contextlib.suppress(OSError):
            while writer not in self._dead and (data := await reader.read(65536)):
                for performative, frame in frames.feed(data):
                    if writer in self._dead:
                        break
                    cut = self._due(performative, to_broker)
                    if cut is not None and cut.late:
                        self._cut(cut, opposite)
                        await asyncio.sleep(_LATE)
                    if cut is None or cut.passed:
                        writer.write(frame)
                    if cut is not None and not cut.late:
                        self._cut(cut, opposite, writer)
                await writer.drain()
        writer.close()  # what was passed arrives, and then the end of the connection

    def _cut(self, cut: Cut, opposite: asyncio.StreamWriter, *dead: asyncio.StreamWriter) -> None:
        """End a connection towards the peer whose frame was counted; nothing more is passed to `dead`."""
        self.cuts += 1
        if cut.refuse:
            self.refuse(True)
        self._dead |= {opposite, *dead}
        opposite.transport.abort()

    def _due(self, performative: int | None, to_broker: bool) -> Cut | None:
        due = None
        for cut in list(self._cuts):
            if cut.to_broker == to_broker and cut.performative in (None, performative):
                cut.count -= 1
                if cut.count == 0 and due is None:
                    self._cuts.remove(cut)
                    due = cut
        return due


class _FrameReader:
    """Splits a stream into protocol headers and frames."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> Iterator[tuple[int | None, bytes]]:
        """The performative, or None, and the bytes of each complete frame."""
        self._data += data
        while len(self._data) >= _HEADER:
            header = self._data.startswith(b"AMQP")
            size = _HEADER if header else int.from_bytes(self._data[:4])
            if len(self._data) < size:
                return
            frame, self._data = self._data[:size], self._data[size:]
            body = 4 * frame[4]
            is_amqp = not header and frame[5] == 0 and frame[body : body + 2] == b"\x00\x53"
            yield (frame[body + 2] if is_amqp else None), frame
