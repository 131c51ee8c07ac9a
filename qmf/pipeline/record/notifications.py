"""A console's notifications as rows of the lake.

An agent sends only what changed. So a row of an object holds the last known properties where its message had none, and
no statistics where its message had none: a sample counts once. The answer to a request has both, but its statistics are
no sample: they belong to an interval that will be published whole. What came without the schema of its class is held
until the schema comes, see `held_messages`.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    BusConnected,
    BusDisconnected,
    ClassFields,
    ClassUsed,
    Client,
    EventRaised,
    HeartbeatSeen,
    Missed,
    Notification,
    ObjectUpdated,
    RemoteObject,
)
from qmf.console.aio.objects.remote_event import EventArguments, argument_types
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, LakeColumn, align_columns
from qmf.pipeline.lake.waiting import Share
from qmf.pipeline.record.buffers import Cells, RowBuffers, RowConverter, to_json
from qmf.pipeline.record.heartbeats import HeartbeatIntervals
from qmf.pipeline.record.held_messages import WAIT_LIMIT, HeldMessage, HeldMessages
from qmf.pipeline.record.properties import REFRESH, KnownProperties, Properties
from qmf.protocol import EventData, ObjectData, ObjectId
from qmf.schema import ClassKey, ClassSchema, EventSchema, Schema, to_xml

#: Why messages that wait when a recorder ends stay untyped.
_ENDED = "the recorder ended before its schema came"


@attrs.frozen
class _Sender:
    """Whose message a row is made of, and when it arrived."""

    agent: str | None = None
    epoch: int | None = None
    received_ns: int | None = None


class NotificationRows:
    """Adds a row to the buffers for each notification. Belongs to the event loop.

    `lost` is the number of messages that agents numbered and that never arrived, `versions` are of classes that are in
    the lake, or will be.
    """

    def __init__(
        self,
        client: Client,
        buffers: RowBuffers,
        run_id: str,
        clock: Callable[[], int],
        *,
        timeout: float = WAIT_LIMIT,
        refresh: float = REFRESH,
        share: Share | None = None,
    ) -> None:
        self._client = client
        self._share = share
        #: The agents present, by name: a list of many would be searched for each message.
        self._agents: dict[str, Agent] = {}
        self._buffers = buffers
        self._run_id = run_id
        self._clock = clock
        self._seq = 0
        self._converters: dict[ClassKey, RowConverter] = {}
        self.properties = KnownProperties(client, self._add_learned, clock, refresh=refresh)
        #: The statistics of the last row of an object that was held: what is merged over them may repeat them.
        self._held_statistics: dict[tuple[str | None, str], object] = {}
        self.held = HeldMessages(client, self._add_held, timeout=timeout)
        self.heartbeats = HeartbeatIntervals(
            lambda time_ns, agent, epoch, cells: self._add(RowKind.HEARTBEATS, time_ns, _Sender(agent, epoch), cells),
            clock,
        )
        self.lost = 0
        self.versions: list[ClassVersion] = []

    @property
    def invalid_values(self) -> int:
        """Number of values so far that didn't fit their column."""
        return sum(item.invalid_values for item in self._converters.values())

    def close(self) -> None:
        """Messages that wait for a schema stay untyped; heartbeats that wait become rows."""
        self.held.close(_ENDED)
        self.heartbeats.close()

    def on_notification(self, notification: Notification) -> None:
        """Add the row of a notification, unless it is of an agent of another share."""
        if self._share is not None and not self._share.has(_agent_of(notification)):
            return
        match notification:
            case ObjectUpdated(obj, properties=properties, statistics=statistics):
                self._add_object(obj, properties=obj.properties if properties else None, statistics=statistics)
            case EventRaised():
                self._add_event(notification)
            case HeartbeatSeen(agent, timestamp):
                self.heartbeats.on_heartbeat(agent.name, agent.epoch, float(agent.info.heartbeat_interval), timestamp)
            case AgentAdded(agent):
                self._agents[agent.name] = agent
                self._add_agent(agent, "added", None)
            case AgentRestarted(agent):
                self._agents[agent.name] = agent
                self.properties.agent_restarted(agent)
                self._add_agent(agent, "restarted", None)
            case AgentRemoved(agent, reason):
                self._agents.pop(agent.name, None)
                self.heartbeats.end(agent.name)
                self.properties.forget(agent.name)
                self._add_agent(agent, "removed", reason.value)
            case ClassUsed(class_key, agent):
                self.properties.request(class_key, agent)
            case Missed(agent, subject, count):
                self.lost += count
                self.add_gap("missed", subject, count, agent)
            case BusDisconnected():
                self.add_gap("disconnected", notification.reason, 0)
            case BusConnected(again=True):
                self.add_gap("connected again", "", 0)
            case _:
                return

    def add_gap(
        self, reason: str, subject: str, count: int, agent: Agent | None = None, *, since_ns: int | None = None
    ) -> None:
        """Add a row that says what is missing, until now."""
        self._add(RowKind.GAPS, self._clock(), _sender(agent), (reason, subject, count, since_ns))

    def _add_learned(self, obj: RemoteObject, properties: Properties, measured: bool) -> None:
        sender = self._sender_of(obj.agent)
        if obj.schema is None or obj.class_key is None:
            self._add_untyped(obj.data, sender, "no agent sent its schema")
            return
        self.held.schema_known(obj.class_key, obj.schema)
        self._add_typed_object(obj, obj.schema, sender, properties=properties, statistics=False, answered=measured)

    def _add_object(self, obj: RemoteObject, *, properties: Properties | None, statistics: bool) -> None:
        sender = self._sender_of(obj.agent)
        if self._is_typed(obj.class_key, obj.schema, obj.data, sender) and obj.schema is not None:
            self._add_typed_object(obj, obj.schema, sender, properties=properties, statistics=statistics)

    def _add_typed_object(
        self,
        obj: RemoteObject,
        schema: ClassSchema,
        sender: _Sender,
        *,
        properties: Properties | None,
        statistics: bool,
        answered: bool = False,
    ) -> None:
        """Add the row of an object; `answered` if it has the statistics of an answer, which are those of now."""
        key = obj.class_key or schema.key
        converter = self._converter(key, schema)
        name = obj.object_id.object_name
        if properties is not None:
            # A deletion may come without values.
            before = self.properties.of(obj.agent, name) if obj.is_deleted else {}
            self.properties.update(obj.agent, name, {**before, **properties})
        values = dict(self.properties.of(obj.agent, name))
        if statistics or answered:
            values |= obj.statistics
        self.properties.on_row_recorded(obj.agent, name, key, measured=statistics or answered)
        stamps = obj.timestamps
        if obj.is_deleted:
            self.properties.delete(obj.agent, name)
        own = (name, obj.object_id.agent_epoch, stamps.create, stamps.delete, properties is not None, statistics)
        row = (*own, *converter.cells(values, statistics=statistics or answered))
        time_ns = 0 if answered else stamps.update
        self._add(RowKind.OBJECTS, time_ns or self._clock(), sender, row, converter.version)

    def _add_event(self, notification: EventRaised) -> None:
        event = notification.event
        data = EventData(
            values=event.arguments,
            class_key=event.class_key,
            timestamp=event.timestamp,
            severity=event.severity,
            object_id=event.object_id,
        )
        sender = _sender(event.agent)
        if self._is_typed(event.class_key, event.schema, data, sender) and event.schema is not None:
            self._add_typed_event(data, event.schema, sender)

    def _add_typed_event(self, data: EventData, schema: EventSchema, sender: _Sender) -> None:
        converter = self._converter(data.class_key or schema.key, schema)
        name = data.object_id.object_name if data.object_id else None
        row = (data.severity, name, *converter.cells(dict(data.values), statistics=True))
        self._add(RowKind.EVENTS, data.timestamp or self._clock(), sender, row, converter.version)

    # -- without a schema

    def _is_typed(
        self,
        key: ClassKey | None,
        schema: ClassSchema | EventSchema | None,
        data: ObjectData | EventData,
        sender: _Sender,
    ) -> bool:
        """True if a message can become a typed row now; otherwise it is held, or becomes an untyped row."""
        if key is not None and schema is not None:
            self.held.schema_known(key, schema)
            return True
        reason = self.held.why_not(key)
        if reason is None and key is not None:
            plain = attrs.evolve(data, values=dict(data.values))
            reason = self.held.hold(key, plain, agent=sender.agent or "", epoch=sender.epoch, now=self._clock())
        if reason:
            self._add_untyped(data, sender, reason)
        return False

    def _add_held(self, message: HeldMessage, schema: ClassSchema | EventSchema | None, reason: str) -> None:
        sender = _Sender(message.agent, message.epoch, message.received_ns)
        match message.data, schema:
            case ObjectData() as data, ClassSchema():
                obj = RemoteObject(data, _object_id(data, message.agent), message.agent, ClassFields(schema), None)
                statistics = bool(obj.statistics) and self._are_new(obj)
                properties = obj.properties or None
                self._add_typed_object(obj, schema, sender, properties=properties, statistics=statistics)
            case EventData() as data, EventSchema():
                arguments = EventArguments(data.values, argument_types(schema), message.agent)
                self._add_typed_event(attrs.evolve(data, values=arguments), schema, sender)
            case data, _:
                self._add_untyped(data, sender, reason)
        if not len(self.held):
            self._held_statistics.clear()

    def _are_new(self, obj: RemoteObject) -> bool:
        """False if an object has the statistics of its message before, over which the console merged this one."""
        key = obj.agent, obj.object_id.object_name
        found = dict(obj.statistics)
        if self._held_statistics.get(key) == found:
            return False
        self._held_statistics[key] = found
        return True

    def _add_untyped(self, data: ObjectData | EventData, sender: _Sender, reason: str) -> None:
        key, event = data.class_key, isinstance(data, EventData)
        package, class_name = (key.package, key.name) if key else ("", "")
        name = data.object_id.object_name if data.object_id else None
        severity = data.severity if isinstance(data, EventData) else None
        time_ns = data.timestamp if isinstance(data, EventData) else data.update_ts
        cells: Cells = (event, package, class_name, name, severity, to_json(data.values), reason)
        self._add(RowKind.UNTYPED, time_ns or self._clock(), sender, cells)

    def _add_agent(self, agent: Agent, change: str, reason: str | None) -> None:
        cells = (change, reason, float(agent.info.heartbeat_interval))
        self._add(RowKind.AGENTS, self._clock(), _sender(agent), cells)

    def _converter(self, key: ClassKey, schema: ClassSchema | EventSchema) -> RowConverter:
        """The converter of a class; the first time, adds the row of its schema."""
        known = self._converters.get(key)
        if known is None:
            # With the names of the wire, which readers ask for.
            hash = str(key.hash) if key.hash else ""
            own = attrs.evolve(ClassVersion.from_schema(schema), package=key.package, name=key.name, hash=hash)
            version = self._as_known(own)
            known = self._converters[key] = RowConverter(version)
            classes = (schema,) if isinstance(schema, ClassSchema) else ()
            events = (schema,) if isinstance(schema, EventSchema) else ()
            xml = to_xml(Schema(package=key.package, classes=classes, events=events))
            names = (version.package, version.name, version.hash)
            row = (*names, version.event, version.to_json(), xml, None)  # the table is known at the commit
            self._add(RowKind.SCHEMAS, self._clock(), _Sender(), row)
        return known

    def _as_known(self, version: ClassVersion) -> ClassVersion:
        """The version as the lake has it, or with the names of columns of other versions of its class."""
        key = (version.package, version.name, version.hash, version.event)
        for item in self.versions:
            if (item.package, item.name, item.hash, item.event) == key:
                return item if _same_but_names(item, version) else align_columns(version, self.versions)
        found = align_columns(version, self.versions)
        self.versions.append(found)
        return found

    def _add(
        self, kind: RowKind, time_ns: int, sender: _Sender, cells: Cells, version: ClassVersion | None = None
    ) -> None:
        self._seq += 1
        received = self._clock() if sender.received_ns is None else sender.received_ns
        row = (self._run_id, self._seq, time_ns // 1000, time_ns, received, sender.agent, sender.epoch, *cells)
        self._buffers.add(kind, version, time_ns, row)

    def _sender_of(self, name: str) -> _Sender:
        agent = self._agents.get(name)
        return _Sender(name, agent.epoch if agent else None)


def _agent_of(notification: Notification) -> str | None:
    match notification:
        case ObjectUpdated(obj):
            return obj.agent
        case EventRaised():
            return notification.event.agent.name if notification.event.agent else None
        case HeartbeatSeen(agent) | AgentAdded(agent) | AgentRestarted(agent) | AgentRemoved(agent):
            return agent.name
        case ClassUsed(_, agent) | Missed(agent):
            return agent.name if agent else None
        case _:
            return None


def _sender(agent: Agent | None) -> _Sender:
    return _Sender() if agent is None else _Sender(agent.name, agent.epoch)


def _object_id(data: ObjectData, agent: str) -> ObjectId:
    known = data.object_id or ObjectId("")
    return known if known.agent_name else attrs.evolve(known, agent_name=agent)


def _same_but_names(one: ClassVersion, other: ClassVersion) -> bool:
    """True if two versions have the same columns, whatever they are called."""

    def columns(version: ClassVersion) -> list[LakeColumn]:
        return [attrs.evolve(column, name="") for column in version.columns]

    return columns(one) == columns(other)
