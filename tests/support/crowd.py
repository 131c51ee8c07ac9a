"""Many agents in one process, on one connection: each answers locate requests, lists one class and has one object."""

from __future__ import annotations

import asyncio

import attrs
from support.scripted_agent import PACKAGE, WIDGET, widget

from qmf._background_tasks import BackgroundTasks
from qmf.bus import Binding, Bus, ExchangeKind, ReceivedMessage
from qmf.protocol import (
    AgentInfo,
    Content,
    Envelope,
    LocateRequest,
    LocateResponse,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    V1Message,
    What,
    decode,
    direct_exchange,
    encode,
    parse_reply_to,
    topic_exchange,
)


class Crowd:
    """Invented agents on one bus.

    Attributes:
        names: of the agents.
        paused: True while nothing is answered.
        asked_again: how many of the agents were asked for themselves during the pause.
    """

    def __init__(self, bus: Bus, size: int, *, first: int = 0) -> None:
        self.names = [f"example.org:crowd:{number}" for number in range(first, first + size)]
        self._bus = bus
        self._answered = 0
        self._held: int | None = None
        self._waiting: list[tuple[Envelope, str]] = []
        self._every: int | None = None
        self._queued: list[tuple[Envelope, str, Content]] = []
        self.paused = False
        self.asked_again = 0
        self._tasks = BackgroundTasks()

    async def start(self) -> None:
        """Connect, and listen as each of the agents."""
        await self._bus.open(60)
        for name in self.names:
            binding = Binding(direct_exchange("default"), name, ExchangeKind.DIRECT)
            await self._bus.subscribe(binding, lambda received, name=name: self._deliver(received, name))  # type: ignore[misc]
        await self._bus.subscribe(Binding(topic_exchange("default"), "console.#"), self._located)

    async def close(self) -> None:
        """Disconnect."""
        await self._tasks.cancel()
        await self._bus.close()

    def hold(self, *, after: int) -> None:
        """Answer the next locate request in the name of so many agents; the others wait for `release`."""
        self._held = after

    async def release(self) -> None:
        """Answer in the name of the others, too."""
        self._held = None
        waiting, self._waiting = self._waiting, []
        for request, name in waiting:
            await self._reply(request, name, _located(name))

    def pause(self, *, every: int) -> None:
        """Answer nothing at all after so many answers to the next locate request, until `go_on`; and so on."""
        self._every = every

    async def go_on(self) -> None:
        """Answer what was asked during the pause, then locate requests up to the next pause."""
        self.paused, self.asked_again = False, 0
        queued, self._queued = self._queued, []
        for request, name, content in queued:
            await self._reply(request, name, content)
        waiting, self._waiting = self._waiting[: self._every], self._waiting[self._every :]
        for request, name in waiting:
            await self._reply(request, name, _located(name))
        self.paused = bool(self._waiting)

    def release_soon(self) -> None:
        """`release` in the background."""
        self._tasks.spawn(self.release())

    def _located(self, received: ReceivedMessage) -> None:
        request = decode(received.data)
        received.settle()
        if isinstance(request, Envelope) and isinstance(request.content, LocateRequest):
            self._tasks.spawn(self._answer_locate(request))

    async def _answer_locate(self, request: Envelope) -> None:
        at_once = self.names[: self._held if self._every is None else self._every]
        self._waiting = [(request, name) for name in self.names[len(at_once) :]]
        self.paused = self._every is not None and bool(self._waiting)
        for name in at_once:
            await self._reply(request, name, _located(name))
            await asyncio.sleep(0)

    def _deliver(self, received: ReceivedMessage, name: str) -> None:
        request = decode(received.data)
        received.settle()
        assert not isinstance(request, V1Message)
        match request.content:
            case LocateRequest():
                content: Content = _located(name)
                self.asked_again += self.paused
            case QueryRequest(what=What.SCHEMA_ID):
                content = SchemaIdsResponse([WIDGET.key])
            case QueryRequest(what=What.SCHEMA):
                content = SchemasResponse([WIDGET])
            case QueryRequest(class_key=key) if key is not None and (key.package, key.name) == (PACKAGE, "widget"):
                content = ObjectsResponse([widget(name)])
            case _:
                content = ObjectsResponse([])
        if self.paused:
            self._queued.append((request, name, content))
        else:
            self._tasks.spawn(self._reply(request, name, content))

    async def _reply(self, request: Envelope, name: str, content: Content) -> None:
        to, subject = parse_reply_to(request.reply_to)
        answer = Envelope(content=content, to=to, subject=subject, agent=name, correlation_id=request.correlation_id)
        await self._bus.send(encode(answer))


def _located(name: str) -> LocateResponse:
    vendor, product, instance = name.split(":")
    info = AgentInfo(name=name, vendor=vendor, product=product, instance=instance, epoch=1, capability=1)
    return LocateResponse(attrs.evolve(info, heartbeat_interval=60))
