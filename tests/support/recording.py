"""Messages of tests, and recorders: they keep what a bus, a client or a session reports, and wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from support.waiting import WAIT_LIMIT, until

from qmf.bus import Bus, BusEvent, ReceivedMessage
from qmf.codec import Message, Section, decode_message, encode_message
from qmf.console import Console
from qmf.console.aio import Notification

N = TypeVar("N")


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
        self.held: list[ReceivedMessage] = []
        self.texts: list[str] = []

    def __call__(self, received: ReceivedMessage) -> None:
        self.texts.append(text(received.data))
        if self.hold:
            self.held.append(received)
        else:
            received.settle()

    async def wait(self, count: int) -> list[str]:
        """The texts, once there are `count`."""
        await until(lambda: len(self.texts) >= count, lambda: f"{count} messages; there are {len(self.texts)}")
        return self.texts


class BusEvents:
    """Collects the events that a bus reports to its watchers."""

    def __init__(self, bus: Bus) -> None:
        self.seen: list[BusEvent] = []
        self.stop = bus.watch(self.seen.append)

    async def wait(self, kind: type[BusEvent], count: int = 1) -> BusEvent:
        """The `count`-th event of a kind."""
        await until(lambda: len(self.of(kind)) >= count, lambda: f"{count} {kind.__name__}; there are {self.seen}")
        return self.of(kind)[count - 1]

    def of(self, kind: type[BusEvent]) -> list[BusEvent]:
        """All events of a kind."""
        return [event for event in self.seen if isinstance(event, kind)]


class Notifications(list[Notification]):
    """The notifications of a client, in order: ``client.listen(notifications.append)``."""

    def of(self, kind: type[N]) -> list[N]:
        """Those of a kind."""
        return [item for item in self if isinstance(item, kind)]


class RecordingConsole(Console):
    """Keeps every callback of a session: its name and its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._called = threading.Condition()

    def record(self, name: str, *args: Any) -> None:
        with self._called:
            self.calls.append((name, args))
            self._called.notify_all()

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each callback of a name."""
        return [args for called, args in self.calls if called == name]

    def wait(self, name: str, count: int = 1) -> list[tuple[Any, ...]]:
        """As `of`, once there are `count`."""
        with self._called:
            assert self._called.wait_for(lambda: len(self.of(name)) >= count, WAIT_LIMIT), f"{name}: {self.calls}"
        return self.of(name)


#: The callbacks of a console.
CALLBACKS = [name for name in vars(Console) if not name.startswith("_")]


def _recorder_of(name: str) -> Callable[..., None]:
    def callback(self: RecordingConsole, *args: Any) -> None:
        self.record(name, *args)

    return callback


for _name in CALLBACKS:
    setattr(RecordingConsole, _name, _recorder_of(_name))
