"""A scripted agent that speaks bytes on a memory bus, and its classes. It stands for any foreign agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from uuid import UUID

import attrs

from qmf.bus import Backoff, Binding, Bus, ExchangeKind, MemoryBus, MemoryExchange, ReceivedMessage
from qmf.codec import Message, Section, encode_message
from qmf.errors import DisconnectedError
from qmf.protocol import (
    AgentInfo,
    BrokerRequest,
    BrokerResponse,
    ClassesRequest,
    ClassResponse,
    CommandComplete,
    Content,
    Envelope,
    EventData,
    EventsIndication,
    ExceptionResponse,
    Frame,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    MethodRequest,
    MethodResponse,
    ObjectData,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    PackageResponse,
    PackagesRequest,
    QueryRequest,
    SchemaIdsResponse,
    SchemaRequest,
    SchemaResponse,
    SchemasResponse,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
    V1Message,
    What,
    data_key,
    decode,
    encode,
    encode_frames,
    event_key,
    heartbeat_key,
    matches,
    parse_reply_to,
)
from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassKey,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Reference,
    Severity,
    Statistic,
)

PACKAGE = "org.example.widgets"
TOPIC = "qmf.default.topic"

WIDGET = ClassSchema(
    package=PACKAGE,
    name="widget",
    hash=UUID(int=0xA1),
    properties=(
        Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True),
        Property(name="label", type=TYPES["sstr"], access=Access.RW, optional=True, max_len=10),
        Property(name="level", type=TYPES["uint8"], access=Access.RW, minimum=1, maximum=9),
        Property(name="enabled", type=TYPES["bool"]),
        Property(name="parent", type=TYPES["objId"], references=Reference(None, "widget")),
    ),
    statistics=(
        Statistic(name="turns", type=TYPES["count64"]),
        Statistic(name="load", type=TYPES["hilo32"]),
        Statistic(name="delay", type=TYPES["mmaTime"], unit="nanoseconds", desc="Delay"),
    ),
    methods=(
        Method(
            name="echo",
            arguments=(
                Argument(name="sequence", type=TYPES["uint32"], direction=Direction.IN_OUT),
                Argument(name="body", type=TYPES["lstr"], direction=Direction.IN_OUT),
            ),
            desc="Says it again",
        ),
        Method(
            name="link",
            arguments=(
                Argument(name="target", type=TYPES["objId"]),
                Argument(name="force", type=TYPES["bool"], default=False),
                Argument(name="made", type=TYPES["objId"], direction=Direction.OUT),
            ),
        ),
        Method(name="stop"),
    ),
)

ALARM = EventSchema(
    package=PACKAGE,
    name="widgetAlarm",
    severity=Severity.WARN,
    hash=UUID(int=0xA2),
    arguments=(
        Argument(name="name", type=TYPES["sstr"]),
        Argument(name="level", type=TYPES["uint8"]),
        Argument(name="since", type=TYPES["absTime"]),
    ),
)


def widget(name: str, *, epoch: int = 0, update: int = 0, delete: int = 0, **values: object) -> ObjectData:
    """One widget, with all its values unless some are given."""
    statistics: dict[str, object] = {"turns": 7, "load": 3, "loadHigh": 5, "loadLow": 1}
    statistics |= {"delayCount": 2, "delayMin": 10, "delayMax": 30, "delayAvg": 20}
    everything = {"name": name, "level": 5, "enabled": True, **statistics, **values}
    return part(name, everything, epoch=epoch, update=update, delete=delete)


def part(
    name: str,
    values: dict[str, object],
    *,
    epoch: int = 0,
    update: int = 0,
    delete: int = 0,
    key: ClassKey = WIDGET.key,
) -> ObjectData:
    """A widget with just these values."""
    return ObjectData(
        values=values,
        object_id=ObjectId(name, None, epoch),
        class_key=key,
        update_ts=update,
        create_ts=1,
        delete_ts=delete,
    )


@attrs.define
class Subscriber:
    """A subscription at a scripted agent: the request, and the number of the last publication."""

    request: Envelope
    number: int = 0


class ScriptedAgent:
    """An agent that answers as told, and keeps what it was asked.

    Attributes:
        info: what it says of itself.
        qpidd: it behaves like the agent in qpidd: no v2 schema queries, no predicates, QMFv1 lists.
        objects, schemas: what it has.
        methods: answers of methods, by name.
        part: objects per part of an answer.
        script: answers instead of everything else, unless it returns None.
        mute: kinds of requests that it doesn't answer.
        lifetime: seconds that it grants to subscriptions.
        subscribers: its subscriptions by id; see `publish_to_subscribers`.
        asked: requests received, but for those of a search for agents that went to this one alone.
    """

    def __init__(
        self,
        exchange: MemoryExchange | Bus,
        name: str = "example.org:widgets:1",
        *,
        epoch: int = 1,
        capability: int = 1,
        interval: float = 10,
        qpidd: bool = False,
        subscriptions: bool = False,
    ) -> None:
        if qpidd:
            name = "apache.org:qpidd:b1"
        vendor, product, instance = name.split(":")
        self.info = AgentInfo(
            name=name,
            vendor=vendor,
            product=product,
            instance=instance,
            epoch=epoch,
            heartbeat_interval=interval,
            capability=0 if qpidd else capability,
            attributes={"_subscriptions": 1} if subscriptions else {},
        )
        self.qpidd = qpidd
        self.bus = (
            exchange if isinstance(exchange, Bus) else MemoryBus(exchange, backoff=Backoff(first=0.001, limit=0.01))
        )
        self.objects: list[ObjectData] = []
        self.schemas: list[ClassSchema | EventSchema] = [WIDGET, ALARM]
        self.methods: dict[str, Callable[[MethodRequest], Content]] = {
            "echo": _echo,
            "stop": lambda _: MethodResponse(),
        }
        self.part = 100
        self.mute: set[type] = set()
        self.script: Callable[[Content], Content | None] = lambda _: None
        self.lifetime = 60
        self.subscribers: dict[str, Subscriber] = {}
        self.asked: list[Envelope] = []
        self.asked_v1: list[Frame] = []

    async def start(self) -> ScriptedAgent:
        """Connect and listen."""
        await self.bus.open()
        direct = ExchangeKind.DIRECT
        await self.bus.subscribe(Binding(TOPIC, "console.#"), self._deliver)
        await self.bus.subscribe(Binding("qmf.default.direct", self.info.name, direct), self._deliver)
        if self.qpidd:
            await self.bus.subscribe(Binding("qmf.default.direct", "broker", direct), self._deliver)
            await self.bus.subscribe(Binding("qpid.management", "broker"), self._deliver)
        return self

    async def send(self, envelope: Envelope) -> None:
        """Send anything."""
        await self.bus.send(encode(envelope))

    async def heartbeat(self, *, sequence: int | None = None, **attributes: object) -> None:
        """Say that it lives."""
        info = attrs.evolve(self.info, attributes={**self.info.attributes, **attributes})
        envelope = self._indication(Heartbeat(info), heartbeat_key(self.info))
        await self.send(attrs.evolve(envelope, sequence=sequence))

    async def publish_to_subscribers(
        self, *objects: ObjectData, skip: int = 0, partial: bool = False, to: str | None = None
    ) -> None:
        """Publish to the subscribers, or to one; `skip` numbers are left out, as if messages had been lost."""
        for name, subscriber in list(self.subscribers.items()):
            if to in (None, name):
                subscriber.number += skip + 1
                exchange, key = parse_reply_to(subscriber.request.reply_to)
                await self.send(
                    Envelope(
                        content=ObjectsIndication(objects),
                        to=exchange,
                        subject=key,
                        agent=self.info.name,
                        partial=partial,
                        subscription=name,
                        sequence=subscriber.number,
                    )
                )

    async def share(self, name: str, key: str, *, last: int = 0, first: int = 0) -> None:
        """Ask a console to bind a key for a subscription, or say which publication there is the first that counts."""
        exchange, subject = parse_reply_to(self.subscribers[name].request.reply_to)
        content = SubscribeShare(subscription_id=name, shared_key=key, last_sequence=last, first_sequence=first)
        await self.send(Envelope(content=content, to=exchange, subject=subject, agent=self.info.name))

    async def publish_shared(self, key: str, number: int, *objects: ObjectData) -> None:
        """Publish under a shared key."""
        envelope = self._indication(ObjectsIndication(objects), key)
        await self.send(attrs.evolve(envelope, subscription=key, sequence=number))

    async def end(self, name: str, reason: str = "") -> None:
        """Cancel a subscription."""
        exchange, key = parse_reply_to(self.subscribers.pop(name).request.reply_to)
        content = SubscribeCancel(subscription_id=name, reason=reason)
        await self.send(Envelope(content=content, to=exchange, subject=key, agent=self.info.name))

    async def publish(self, *objects: ObjectData, sequence: int | None = None) -> None:
        """Publish objects."""
        key = objects[0].class_key
        assert key is not None
        envelope = self._indication(ObjectsIndication(objects), data_key(key, self.info))
        await self.send(attrs.evolve(envelope, sequence=sequence))

    async def raise_event(
        self, values: dict[str, object], key: ClassKey = ALARM.key, severity: int = 4, *, sequence: int | None = None
    ) -> None:
        """Raise an event."""
        event = EventData(values=values, class_key=key, timestamp=1_233_258_799_000_000_000, severity=severity)
        envelope = self._indication(EventsIndication([event]), event_key(key, severity, self.info))
        await self.send(attrs.evolve(envelope, sequence=sequence))

    def restart(self, **changes: object) -> None:
        """Become another run of the same agent."""
        self.info = attrs.evolve(self.info, epoch=self.info.epoch + 1, **changes)  # type: ignore[arg-type]

    def _indication(self, content: Content, key: str) -> Envelope:
        return Envelope(content=content, to=TOPIC, subject=key, agent=self.info.name)

    def _deliver(self, received: ReceivedMessage) -> None:
        message = decode(received.data)
        received.settle()
        if isinstance(message, V1Message):
            self.asked_v1 += message.frames
            if V1Message not in self.mute:
                _, key = parse_reply_to(message.reply_to)
                for frames in self._answer_v1(message.frames[0]):
                    self._later(self._send_v1(frames, key))
            return
        # A console that searches for agents asks some of them again, at a time of its own.
        asked_again = message.subject in (self.info.name, self.info.direct_subject)
        if not (asked_again and isinstance(message.content, LocateRequest)):
            self.asked.append(message)
        match message.content:
            case SubscribeRequest() if type(message.content) not in self.mute and self.script(message.content) is None:
                self._later(self.grant(message, message.content))
                return
            case SubscribeCancel(subscription_id=name):
                self.subscribers.pop(name, None)
                return
            case SubscribeRefresh(subscription_id=name):
                if name not in self.subscribers:
                    self.subscribers[name] = Subscriber(message)
                    self._later(self.end(name, "unknown"))
                return
        if type(message.content) not in self.mute:
            for content, partial in self.answer(message.content):
                self._later(self.reply(message, content, partial=partial))

    async def grant(self, message: Envelope, request: SubscribeRequest) -> None:
        """Accept a subscription, and publish all its objects."""
        name = f"sub-{len([item for item in self.asked if isinstance(item.content, SubscribeRequest)])}"
        self.subscribers[name] = Subscriber(message)
        granted = SubscribeResponse(subscription_id=name, interval=request.interval, lifetime=self.lifetime)
        await self.reply(message, granted)
        query = QueryRequest(
            what=What.OBJECT, class_key=request.class_key, object_id=request.object_id, where=request.where
        )
        parts = self._parts([item for item in self.objects if self._fits(item, query)])
        for content, partial in parts:
            assert isinstance(content, ObjectsResponse)
            await self.publish_to_subscribers(*content.objects, partial=partial, to=name)

    async def reply(self, request: Envelope, content: Content, *, partial: bool = False) -> None:
        """Answer a request."""
        to, subject = parse_reply_to(request.reply_to)
        alias = self.qpidd and request.subject == "broker" and not isinstance(content, LocateResponse)
        await self.send(
            Envelope(
                content=content,
                to=to,
                subject=subject,
                correlation_id=request.correlation_id,
                agent="broker" if alias else self.info.name,
                partial=partial,
            )
        )

    def answer(self, content: Content) -> list[tuple[Content, bool]]:
        """What it answers, part by part, each with whether more follow."""
        scripted = self.script(content)
        if scripted is not None:
            return [(scripted, False)]
        match content:
            case LocateRequest():
                return [(LocateResponse(self.info), False)]
            case QueryRequest(what=What.SCHEMA_ID) if not self.qpidd:
                return [(SchemaIdsResponse([item.key for item in self.schemas]), False)]
            case QueryRequest(what=What.SCHEMA) if not self.qpidd:
                return [(SchemasResponse([item for item in self.schemas if item.key == content.class_key]), False)]
            case QueryRequest(what=What.OBJECT):
                return self._parts([item for item in self.objects if self._fits(item, content)])
            case QueryRequest():
                return [(ExceptionResponse(text="not supported", code=1), False)]
            case MethodRequest():
                method = self.methods.get(content.method)
                unknown = ExceptionResponse(text="UnknownMethod", code=2)
                return [(method(content) if method else unknown, False)]
        return []

    def _fits(self, item: ObjectData, query: QueryRequest) -> bool:
        if query.object_id is not None:
            return item.object_id is not None and item.object_id.object_name == query.object_id.object_name
        assert query.class_key is not None
        assert item.class_key is not None
        if query.class_key.name != item.class_key.name:
            return False
        any_package = self.qpidd or "_subscriptions" in self.info.attributes
        if query.class_key.package not in (("", item.class_key.package) if any_package else (item.class_key.package,)):
            return False
        return self.qpidd or matches(query.where, item.values)

    def _parts(self, objects: Sequence[ObjectData]) -> list[tuple[Content, bool]]:
        parts = [objects[start : start + self.part] for start in range(0, len(objects), self.part)] or [[]]
        return [(ObjectsResponse(item), index < len(parts) - 1) for index, item in enumerate(parts)]

    def _answer_v1(self, frame: Frame) -> list[list[Frame]]:
        number = frame.sequence
        match frame:
            case BrokerRequest():
                return [[BrokerResponse(UUID(int=0xB), number)]]
            case PackagesRequest():
                packages: list[Frame] = [
                    PackageResponse(name, number) for name in {item.package for item in self.schemas}
                ]
                return [packages, [CommandComplete(0, "OK", number)]]
            case ClassesRequest(package=package):
                found = [item for item in self.schemas if item.package == package]
                classes: list[list[Frame]] = [[ClassResponse(item.key, number)] for item in found]
                return [*classes, [CommandComplete(0, "OK", number)]]
            case SchemaRequest(key=key):
                for item in self.schemas:
                    if (item.key.package, item.key.name, item.hash) == (key.package, key.name, key.hash):
                        return [[SchemaResponse(item, number)]]
                return [[CommandComplete(1, "Class key not found", number)]]
        return []

    async def _send_v1(self, frames: list[Frame], key: str | None) -> None:
        message = Message(to="amq.direct", subject=key, section=Section.DATA, body=encode_frames(frames))
        await self.bus.send(encode_message(message))

    def _later(self, work: Coroutine[None, None, None]) -> None:
        async def unless_cut() -> None:
            with contextlib.suppress(DisconnectedError):
                await work

        task = asyncio.get_running_loop().create_task(unless_cut())
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


_TASKS: set[asyncio.Task[None]] = set()


def _echo(request: MethodRequest) -> Content:
    return MethodResponse(arguments=dict(request.arguments))
