"""What the tests of bus and broker share: waiting for conditions, collecting messages, making them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from qmf.bus import Bus, BusEvent, Received
from qmf.codec import Message, Section, decode_message, encode_message

#: Seconds that anything may take. Far above what is needed, for slow machines.
PATIENCE = 10.0


async def until(condition: Callable[[], object], what: str = "condition") -> None:
    """Wait until `condition()` is true."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    while not condition():
        assert loop.time() < deadline, f"not within {PATIENCE:g} s: {what}"
        await asyncio.sleep(0.005)


def message(
    to: str | None, subject: str | None, body: str = "", *, ttl: float | None = None, **headers: object
) -> bytes:
    """An encoded message."""
    return encode_message(
        Message(
            to=to, subject=subject, ttl=ttl, application_properties=headers, section=Section.DATA, body=body.encode()
        )
    )


def text(data: bytes) -> str:
    """The body of a message made by `message`."""
    body = decode_message(data).body
    assert isinstance(body, bytes)
    return body.decode()


class Inbox:
    """Collects messages."""

    def __init__(self, *, hold: bool = False) -> None:
        self.hold = hold
        self.held: list[Received] = []
        self.texts: list[str] = []

    def __call__(self, received: Received) -> None:
        self.texts.append(text(received.data))
        if self.hold:
            self.held.append(received)
        else:
            received.done()

    async def wait(self, count: int) -> list[str]:
        """The texts, once there are `count`."""
        await until(lambda: len(self.texts) >= count, f"{count} messages, has {len(self.texts)}")
        return self.texts


class Events:
    """Collects what a bus tells its watchers."""

    def __init__(self, bus: Bus) -> None:
        self.seen: list[BusEvent] = []
        self.stop = bus.watch(self.seen.append)

    async def wait(self, kind: type[BusEvent], count: int = 1) -> BusEvent:
        """The `count`-th event of a kind."""
        await until(lambda: len(self.of(kind)) >= count, f"{count} {kind.__name__}, saw {self.seen}")
        return self.of(kind)[count - 1]

    def of(self, kind: type[BusEvent]) -> list[BusEvent]:
        """All events of a kind."""
        return [event for event in self.seen if isinstance(event, kind)]
