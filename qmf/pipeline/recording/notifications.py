"""A console's notifications as rows of the lake.

An agent sends only what changed. So a row of an object holds the last known properties where its message had none, and
no statistics where its message had none: a sample counts once.
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
    ClassUsed,
    Client,
    EventRaised,
    HeartbeatSeen,
    Missed,
    Notification,
    ObjectUpdated,
    RemoteObject,
)
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, LakeColumn, aligned
from qmf.pipeline.recording.buffers import Cells, RowBuffers, RowConverter
from qmf.pipeline.recording.conversion import to_json
from qmf.pipeline.recording.properties import KnownProperties, Properties
from qmf.schema import ClassKey, ClassSchema, EventSchema, Schema, to_xml


class NotificationRows:
    """Adds a row to the buffers for each notification. Belongs to the event loop.

    Attributes:
        lost: messages that agents numbered and that never arrived.
        versions: of classes that are in the lake, or will be.
    """

    def __init__(self, client: Client, buffers: RowBuffers, run_id: str, clock: Callable[[], int]) -> None:
        self._client = client
        self._buffers = buffers
        self._run_id = run_id
        self._clock = clock
        self._seq = 0
        self._converters: dict[ClassKey, RowConverter] = {}
        self._properties = KnownProperties(client, self._add_learned)
        self.lost = 0
        self.versions: list[ClassVersion] = []

    @property
    def invalid_values(self) -> int:
        """Number of values so far that didn't fit their column."""
        return sum(item.invalid_values for item in self._converters.values())

    def close(self) -> None:
        """Cancel requests that are not answered yet."""
        self._properties.close()

    def on_notification(self, notification: Notification) -> None:
        """Add the row of a notification."""
        match notification:
            case ObjectUpdated(obj, properties=properties, statistics=statistics):
                self._add_object(obj, properties=obj.properties if properties else None, statistics=statistics)
            case EventRaised():
                self._add_event(notification)
            case HeartbeatSeen(agent, timestamp):
                self._add(RowKind.HEARTBEATS, timestamp, agent, (float(agent.info.heartbeat_interval),))
            case AgentAdded(agent):
                self._add_agent(agent, "added", None)
            case AgentRestarted(agent):
                self._properties.agent_restarted(agent)
                self._add_agent(agent, "restarted", None)
            case AgentRemoved(agent, reason):
                self._properties.forget(agent.name)
                self._add_agent(agent, "removed", reason.value)
            case ClassUsed(class_key, agent):
                self._properties.request(class_key, agent)
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
        self._add(RowKind.GAPS, self._clock(), agent, (reason, subject, count, since_ns))

    def _add_learned(self, obj: RemoteObject, properties: Properties) -> None:
        # Without its statistics: they belong to an interval that will be published whole.
        self._add_object(obj, properties=properties, statistics=False)

    def _add_object(self, obj: RemoteObject, *, properties: Properties | None, statistics: bool) -> None:
        converter = self._converter(obj.class_key, obj.schema)
        agent = self._agent(obj.agent)
        name = obj.object_id.object_name
        time_ns = obj.timestamps.update or self._clock()
        if converter is None:
            key = obj.class_key
            package, class_name = (key.package, key.name) if key else ("", "")
            cells: Cells = (False, package, class_name, name, None, to_json(obj.data.values))
            self._add(RowKind.UNTYPED, time_ns, agent, cells, obj.agent)
            return
        if properties is not None:
            # A deletion may come without values.
            before = self._properties.of(obj.agent, name) if obj.is_deleted else {}
            self._properties.update(obj.agent, name, {**before, **properties})
        values = dict(self._properties.of(obj.agent, name))
        if statistics:
            values |= obj.statistics
        stamps = obj.timestamps
        if obj.is_deleted:
            self._properties.delete(obj.agent, name)
        own = (name, obj.object_id.agent_epoch, stamps.create, stamps.delete, properties is not None, statistics)
        row = (*own, *converter.cells(values, statistics=statistics))
        self._add(RowKind.OBJECTS, time_ns, agent, row, obj.agent, converter.version)

    def _add_event(self, notification: EventRaised) -> None:
        event = notification.event
        converter = self._converter(event.class_key, event.schema)
        name = event.object_id.object_name if event.object_id else None
        time_ns = event.timestamp or self._clock()
        if converter is None:
            key = event.class_key
            package, class_name = (key.package, key.name) if key else ("", "")
            row: Cells = (True, package, class_name, name, event.severity, to_json(event.arguments))
            self._add(RowKind.UNTYPED, time_ns, event.agent, row)
            return
        row = (event.severity, name, *converter.cells(dict(event.arguments), statistics=True))
        self._add(RowKind.EVENTS, time_ns, event.agent, row, None, converter.version)

    def _add_agent(self, agent: Agent, change: str, reason: str | None) -> None:
        cells = (change, reason, float(agent.info.heartbeat_interval))
        self._add(RowKind.AGENTS, self._clock(), agent, cells)

    def _converter(self, key: ClassKey | None, schema: ClassSchema | EventSchema | None) -> RowConverter | None:
        """The converter of a class; the first time, adds the row of its schema. None for an unknown schema."""
        if key is None or schema is None:
            return None
        known = self._converters.get(key)
        if known is None:
            # With the names of the wire, which readers ask for.
            version = attrs.evolve(
                ClassVersion.from_schema(schema),
                package=key.package,
                name=key.name,
                hash=str(key.hash) if key.hash else "",
            )
            version = self._as_known(version)
            known = self._converters[key] = RowConverter(version)
            classes = (schema,) if isinstance(schema, ClassSchema) else ()
            events = (schema,) if isinstance(schema, EventSchema) else ()
            xml = to_xml(Schema(package=key.package, classes=classes, events=events))
            row = (
                version.package,
                version.name,
                version.hash,
                version.event,
                version.to_json(),
                xml,
                None,
            )  # the table is known at the commit
            self._add(RowKind.SCHEMAS, self._clock(), None, row)
        return known

    def _as_known(self, version: ClassVersion) -> ClassVersion:
        """The version as the lake has it, or with the names of columns of other versions of its class."""
        key = (version.package, version.name, version.hash, version.event)
        for item in self.versions:
            if (item.package, item.name, item.hash, item.event) == key:
                return item if _same_but_names(item, version) else aligned(version, self.versions)
        found = aligned(version, self.versions)
        self.versions.append(found)
        return found

    def _add(
        self,
        kind: RowKind,
        time_ns: int,
        agent: Agent | None,
        cells: Cells,
        agent_name: str | None = None,
        version: ClassVersion | None = None,
    ) -> None:
        self._seq += 1
        now = self._clock()
        name = agent.name if agent else agent_name
        epoch = agent.epoch if agent else None
        row = (self._run_id, self._seq, time_ns // 1000, time_ns, now, name, epoch, *cells)
        self._buffers.add(kind, version, time_ns, row)

    def _agent(self, name: str) -> Agent | None:
        return next((agent for agent in self._client.agents if agent.name == name), None)


def _same_but_names(one: ClassVersion, other: ClassVersion) -> bool:
    """True if two versions have the same columns, whatever they are called."""

    def columns(version: ClassVersion) -> list[LakeColumn]:
        return [attrs.evolve(column, name="") for column in version.columns]

    return columns(one) == columns(other)
