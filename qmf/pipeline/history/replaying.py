"""Replays a recording on a bus: its agents appear with their names, and publish what they did in that order and pace.

Times in messages are those of the recording, so that rules and roll-ups see the same. Heartbeats are sent by the clock
on the wall: consoles notice by theirs which agents are silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence

import attrs

from qmf.bus import Binding, Bus, ExchangeKind, ReceivedMessage, Subscription
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import DecodeError, NetworkError, ProtocolError
from qmf.pipeline.history.classes import AnySchema
from qmf.pipeline.history.reader import LakeReader
from qmf.pipeline.history.replay_rows import ReplayedAgent, ReplayedEvent, ReplayedObject, ReplayRow
from qmf.protocol import (
    AgentInfo,
    Content,
    Envelope,
    EventData,
    EventsIndication,
    ExceptionResponse,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    ObjectData,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    QueryRequest,
    SchemaIdsResponse,
    SchemasResponse,
    What,
    data_key,
    decode,
    encode,
    event_key,
    heartbeat_key,
    matches,
    parse_reply_to,
    topic_exchange,
)
from qmf.schema import ClassKey, Kind

#: Objects in one message.
MOST_OBJECTS = 100
#: The attribute with which agents of this project announce their end.
_GOODBYE = "_goodbye"
_REFUSED = "this agent replays a recording: it answers queries only"


class ReplayAgent:
    """One agent on a bus. Belongs to the event loop."""

    def __init__(
        self, bus: Bus, domain: str, name: str, epoch: int, interval: float, schemas: Sequence[AnySchema]
    ) -> None:
        """Make an agent like the recorded one, with its classes, on a bus that is open; `open` announces it."""
        vendor, product, instance = [*name.split(":", 2), "", ""][:3]
        self.info = AgentInfo(
            name=name,
            vendor=vendor,
            product=product,
            instance=instance,
            epoch=epoch,
            heartbeat_interval=interval,
            capability=1,
        )
        self._bus = bus
        self._topic = f"qmf.{domain}.topic"
        self._direct = f"qmf.{domain}.direct"
        self._schemas = {schema.key: schema for schema in schemas}
        self._keys: dict[ClassKey, ClassKey] = {}
        self._objects: dict[str, ObjectData] = {}
        self._subscriptions: list[Subscription] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        for binding in (Binding(self._topic, "console.#"), Binding(self._direct, self.info.name, ExchangeKind.DIRECT)):
            self._subscriptions.append(await self._bus.subscribe(binding, self._on_message))

    async def close(self) -> None:
        for subscription in self._subscriptions:
            await subscription.close()
        self._subscriptions.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- publishing

    def hold(self, item: RemoteObject) -> None:
        """Have an object from the beginning, without publishing it."""
        self._objects[item.object_id.object_name] = item.data

    def restart(self, epoch: int, interval: float) -> None:
        """Become the next start of the agent, without objects."""
        self.info = attrs.evolve(self.info, epoch=epoch, heartbeat_interval=interval)
        self._objects.clear()

    async def heartbeat(self, time: int, *, goodbye: bool = False) -> None:
        info = attrs.evolve(self.info, timestamp=time, attributes={_GOODBYE: True} if goodbye else {})
        await self._send(Heartbeat(info), heartbeat_key(self.info))

    async def publish(self, items: Sequence[ReplayedObject]) -> None:
        objects = [self._update(item) for item in items]
        for at in range(0, len(objects), MOST_OBJECTS):
            await self._send(ObjectsIndication(objects[at : at + MOST_OBJECTS]), data_key(items[0].key, self.info))

    def _update(self, item: ReplayedObject) -> ObjectData:
        data = ObjectData(
            values=item.values,
            object_id=ObjectId(item.name, self.info.name, item.epoch),
            class_key=item.key,
            update_ts=item.updated,
            create_ts=item.created,
            delete_ts=item.deleted,
        )
        before = self._objects.get(item.name)
        if item.deleted:
            self._objects.pop(item.name, None)
        elif before is None:
            self._objects[item.name] = data
        else:
            self._objects[item.name] = attrs.evolve(data, values={**before.values, **data.values})
        return data

    async def raise_event(self, item: ReplayedEvent) -> None:
        event = EventData(values=item.values, class_key=item.key, timestamp=item.time, severity=item.severity)
        await self._send(EventsIndication([event]), event_key(item.key, item.severity, self.info))

    async def _send(self, content: Content, key: str) -> None:
        await self._bus.send(encode(Envelope(content=content, to=self._topic, subject=key, agent=self.info.name)))

    # -- requests

    def _on_message(self, received: ReceivedMessage) -> None:
        received.settle()
        try:
            message = decode(received.data)
        except (DecodeError, ProtocolError):
            return  # what is not QMF is not for an agent
        if isinstance(message, Envelope) and message.reply_to:
            task = asyncio.get_running_loop().create_task(self._answer_all(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer_all(self, request: Envelope) -> None:
        to, subject = parse_reply_to(request.reply_to)
        with contextlib.suppress(NetworkError):
            for content, partial in self._answers(request.content):
                answer = Envelope(
                    content=content,
                    to=to,
                    subject=subject,
                    correlation_id=request.correlation_id,
                    agent=self.info.name,
                    partial=partial,
                )
                await self._bus.send(encode(answer))

    def _answers(self, content: Content) -> list[tuple[Content, bool]]:
        match content:
            case LocateRequest():
                return [(LocateResponse(self.info), False)]
            case QueryRequest(what=What.SCHEMA_ID):
                return [(SchemaIdsResponse(list(self._schemas)), False)]
            case QueryRequest(what=What.SCHEMA, class_key=key) if key is not None:
                return [(SchemasResponse([schema for own, schema in self._schemas.items() if _fits(own, key)]), False)]
            case QueryRequest(what=What.OBJECT):
                return self._object_answers(content)
            case _:
                return [(ExceptionResponse(text=_REFUSED, code=1), False)]

    def _object_answers(self, query: QueryRequest) -> list[tuple[Content, bool]]:
        found = [item for item in self._objects.values() if self._is_wanted(item, query)]
        parts = [found[at : at + MOST_OBJECTS] for at in range(0, len(found), MOST_OBJECTS)] or [[]]
        return [(ObjectsResponse(part), at < len(parts) - 1) for at, part in enumerate(parts)]

    def _is_wanted(self, item: ObjectData, query: QueryRequest) -> bool:
        if query.object_id is not None:
            return item.object_id is not None and item.object_id.object_name == query.object_id.object_name
        if query.class_key is not None and (item.class_key is None or not _fits(item.class_key, query.class_key)):
            return False
        return not query.where or matches(query.where, item.values)


def _fits(own: ClassKey, wanted: ClassKey) -> bool:
    return (
        own.name.lower() == wanted.name.lower()
        and wanted.package in ("", own.package)
        and (wanted.hash is None or wanted.hash == own.hash)
    )


#: Seconds between heartbeats of replayed agents.
_HEARTBEAT = 2.0
#: Rows that are read before the loop turns to other work.
_TURN = 200


@attrs.frozen
class ReplayProgress:
    """How far a replay is: the time in the recording, publications of objects and events so far, and agents present."""

    at: int
    objects: int
    events: int
    agents: int


class Replay:
    """One replay of one period on one bus."""

    def __init__(
        self,
        reader: LakeReader,
        bus: Bus,
        first: int,
        last: int,
        *,
        speed: float = 1.0,
        domain: str = "default",
    ) -> None:
        """Prepare the replay of a period, with so many seconds of the recording per second; nothing is read yet.

        The bus is open already, and nothing else on it has the names of these agents.
        """
        self._reader = reader
        self._bus = bus
        self._first = first
        self._last = last
        self._speed = speed
        self._domain = domain
        self.asked = asyncio.Event()
        """Set when a console has asked for agents."""
        self._asking: Subscription | None = None
        self._agents: dict[str, ReplayAgent] = {}
        self._objects = self._events = 0
        self._began = 0.0
        self._at = first

    @property
    def progress(self) -> ReplayProgress:
        return ReplayProgress(self._at, self._objects, self._events, len(self._agents))

    async def prepare(self) -> None:
        """Make the agents and objects that existed at the beginning; they answer queries from then on."""
        self._asking = await self._bus.subscribe(Binding(topic_exchange(self._domain), "console.#"), self._on_message)
        present = self._reader.presences(self._first)
        for agent in present.agents.values():
            await self._appear(agent.agent, agent.epoch, agent.interval)
        for key in self._reader.classes():
            if key.kind is Kind.DATA:
                for item in self._reader.state(key, self._first, present).objects:
                    self._agents[item.agent].hold(item)
        await self._beat()

    async def run(self) -> None:
        """Publish everything; cancelling it ends the replay. Errors are those of `prepare`."""
        self._began = time.monotonic()
        beating = asyncio.get_running_loop().create_task(self._beat_always())
        try:
            await self._publish(self._reader.replay(self._first, self._last))
            await self._wait_until(self._last)
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def close(self) -> None:
        """End all agents, which say goodbye. A second call does nothing."""
        if self._asking is not None:
            await self._asking.close()
            self._asking = None
        for agent in self._agents.values():
            with contextlib.suppress(NetworkError):
                await agent.heartbeat(self._at, goodbye=True)
            await agent.close()
        self._agents.clear()

    # -- inside

    def _on_message(self, received: ReceivedMessage) -> None:
        received.settle()
        self.asked.set()

    async def _publish(self, rows: Iterator[ReplayRow]) -> None:
        waiting: list[ReplayedObject] = []
        for number, row in enumerate(rows):
            time_ns = row.order[0]
            last = waiting[-1] if waiting else None
            together = isinstance(row, ReplayedObject) and last and (row.agent, row.key) == (last.agent, last.key)
            if last is not None and not (together and time_ns <= self._now()):
                await self._publish_objects(waiting)
                waiting = []
            await self._wait_until(time_ns)
            self._at = time_ns
            if isinstance(row, ReplayedObject):
                waiting.append(row)
            elif isinstance(row, ReplayedEvent):
                await self._raise(row)
            else:
                await self._change(row)
            if number % _TURN == 0:
                await asyncio.sleep(0)
        if waiting:
            await self._publish_objects(waiting)

    def _now(self) -> int:
        return self._first + round((time.monotonic() - self._began) * self._speed * 1e9)

    async def _wait_until(self, time_ns: int) -> None:
        while (left := (time_ns - self._now()) / 1e9 / self._speed) > 0:
            self._at = max(self._at, min(self._now(), time_ns))
            await asyncio.sleep(left)

    async def _publish_objects(self, items: Sequence[ReplayedObject]) -> None:
        agent = await self._agent(items[0].agent)
        await agent.publish(items)
        self._objects += len(items)

    async def _raise(self, item: ReplayedEvent) -> None:
        agent = await self._agent(item.agent)
        await agent.raise_event(item)
        self._events += 1

    async def _change(self, item: ReplayedAgent) -> None:
        agent = self._agents.get(item.agent)
        if not item.present:
            if agent is not None:
                del self._agents[item.agent]
                if item.goodbye:
                    await agent.heartbeat(item.order[0], goodbye=True)
                await agent.close()
            return
        if agent is None:
            agent = await self._appear(item.agent, item.epoch, item.interval)
        elif agent.info.epoch != item.epoch:
            agent.restart(item.epoch, item.interval)
        await agent.heartbeat(item.order[0])

    async def _agent(self, name: str) -> ReplayAgent:
        """The agent of a row; one that was not found yet appears now."""
        found = self._agents.get(name)
        if found is None:
            found = await self._appear(name, 0, 0.0)
            await found.heartbeat(self._at)
        return found

    async def _appear(self, name: str, epoch: int, interval: float) -> ReplayAgent:
        schemas = [self._reader.schema(key) for key in self._reader.classes()]
        agent = ReplayAgent(self._bus, self._domain, name, epoch, interval, schemas)
        await agent.open()
        self._agents[name] = agent
        return agent

    async def _beat_always(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT)
            await self._beat()

    async def _beat(self) -> None:
        for agent in list(self._agents.values()):
            await agent.heartbeat(self._at)
