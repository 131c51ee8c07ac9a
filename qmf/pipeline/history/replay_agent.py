"""An agent that publishes what was recorded of another one, under its name, and answers queries from that.

Methods are refused: what they would do is past. Subscriptions are refused as well; consoles then follow what it
publishes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import attrs

from qmf.bus import Binding, Bus, ExchangeKind, ReceivedMessage, Subscription
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import DecodeError, NetworkError, ProtocolError
from qmf.pipeline.history.replay_rows import ReplayedEvent, ReplayedObject
from qmf.pipeline.history.schemas import AnySchema
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
)
from qmf.schema import ClassKey

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
        """Make an agent, which `open` announces.

        Args:
            bus: open already.
            domain: QMF domain.
            name, epoch, interval: of the agent that was recorded.
            schemas: its classes.
        """
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
        """Receive requests."""
        for binding in (
            Binding(self._topic, "console.#"),
            Binding(self._direct, self.info.name, ExchangeKind.DIRECT),
        ):
            self._subscriptions.append(await self._bus.subscribe(binding, self._on_message))

    async def close(self) -> None:
        """Receive nothing any more."""
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
        """Send a heartbeat of a time."""
        info = attrs.evolve(self.info, timestamp=time, attributes={_GOODBYE: True} if goodbye else {})
        await self._send(Heartbeat(info), heartbeat_key(self.info))

    async def publish(self, items: Sequence[ReplayedObject]) -> None:
        """Publish objects of one class."""
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
        """Raise an event."""
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
