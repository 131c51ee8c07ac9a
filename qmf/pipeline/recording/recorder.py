"""The recorder: a console that writes down what it hears, and says what it wrote and what it had to leave out.

Notifications become rows on the event loop; commits run in a thread, so that a slow disk doesn't hold up the bus. A
commit is due when the oldest row has waited for the interval, when a file is large enough, or when enough cells wait.
Killed at any moment, it loses the rows that waited, and no more. A file system that refuses ends it with `LakeError`:
it is for the operator to make room, and a restart goes on.

An agent sends only what changed, so a row of an object holds the properties known before where its message had none,
and no statistics where its message had none: a sample counts once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import IO

import attrs

from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    BusConnected,
    BusDisconnected,
    ClassSeen,
    Client,
    EventRaised,
    HeartbeatSeen,
    Missed,
    Notification,
    ObjectUpdated,
    RemoteObject,
)
from qmf.errors import QmfError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import table_of
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.recording.buffers import Buffers, Converters, Row, Written, commit, total
from qmf.pipeline.recording.conversion import to_json
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind, Schema, to_xml

log = logging.getLogger("qmf.pipeline")

#: Seconds that a row waits at most; what a kill can cost.
DEFAULT_INTERVAL = 10.0

#: Cells that wait at most: some 100 MB of Python objects.
DEFAULT_CELLS = 1_000_000

#: Bytes that a file has at most, about.
DEFAULT_BYTES = 64 * 1024 * 1024

#: Seconds between looks at the clock.
_TICK = 0.1


@attrs.frozen
class RecorderCounts:
    """What a recorder did so far.

    Attributes:
        written: rows, files and bytes committed.
        lost: messages that agents numbered and that never came.
        misfits: values that didn't fit their type, stored as null.
        removed, entered: temporary files removed, and whole files entered, after a killed run.
    """

    written: Written = attrs.field(factory=Written)
    lost: int = 0
    misfits: int = 0
    removed: int = 0
    entered: int = 0


class Recorder:
    """Records one bus into one lake, from `run` until it is cancelled or `stop` is called."""

    def __init__(
        self,
        client: Client,
        lake: Lake,
        *,
        name: str = "recorder",
        interval: float = DEFAULT_INTERVAL,
        max_cells: int = DEFAULT_CELLS,
        max_bytes: int = DEFAULT_BYTES,
        clock: Callable[[], int] = time.time_ns,
        on_commit: Callable[[Written], None] | None = None,
    ) -> None:
        """Make a recorder; nothing is touched yet.

        Args:
            client: what to listen to; not opened yet.
            lake: where to write.
            name: tells several recorders of one lake apart.
            interval: seconds that a row waits at most.
            max_cells: cells that wait at most before a commit is due.
            max_bytes: a commit is due, too, when the largest file would have so many, as foretold by the last one.
            clock: nanoseconds since 1970.
            on_commit: called on the loop after each commit.
        """
        self._client = client
        self._lake = lake
        self._name = name
        self._interval = interval
        self._max_cells = max_cells
        self._max_bytes = max_bytes
        self._clock = clock
        self._on_commit = on_commit
        self.run_id = f"{clock():020d}_{os.getpid()}"
        self._buffers = Buffers()
        self._converters: dict[ClassKey, Converters] = {}
        self._known: dict[tuple[str, str], dict[str, object]] = {}
        self._counts = RecorderCounts()
        self._seq = 0
        self._files = 0
        self._told_misfits = 0
        self._stop = asyncio.Event()
        self._snapshots: set[asyncio.Task[None]] = set()

    @property
    def counts(self) -> RecorderCounts:
        """What it did so far."""
        misfits = sum(item.misfits for item in self._converters.values())
        return attrs.evolve(self._counts, misfits=misfits)

    def stop(self) -> None:
        """End `run` after a last commit."""
        self._stop.set()

    async def run(self) -> None:
        """Record until `stop`.

        Raises:
            LakeError: the file system refused, or another process records under this name.
            ConnectError: no connection to the bus at the start. Later losses are waited for, and recorded as gaps.
        """
        self._lake.create()
        lock = self._lake.lock(self._name)
        try:
            await self._record(lock)
        finally:
            lock.close()

    async def _record(self, _lock: IO[str]) -> None:
        removed, entered = await asyncio.to_thread(self._lake.recover, self._name)
        self._counts = attrs.evolve(self._counts, removed=removed, entered=entered)
        unlisten = self._client.listen(self._hear)
        try:
            async with self._client:
                await self._watch()
        finally:
            unlisten()
            for task in self._snapshots:
                task.cancel()
        await self._flush()

    async def _watch(self) -> None:
        while not self._stop.is_set():
            if self._is_due():
                await self._flush()
            try:
                async with asyncio.timeout(min(_TICK, self._interval)):
                    await self._stop.wait()
            except TimeoutError:
                continue

    def _is_due(self) -> bool:
        waiting = self._buffers
        return (
            waiting.cells >= self._max_cells or waiting.age() >= self._interval or waiting.largest() >= self._max_bytes
        )

    async def _flush(self) -> None:
        misfits = self.counts.misfits
        if misfits > self._told_misfits:
            self._gap("misfit", "", misfits - self._told_misfits)
            self._told_misfits = misfits
        batch = self._buffers.take(self._max_bytes)
        if not batch.parts:
            return
        number, self._files = self._files + 1, self._files + len(batch.parts)
        files = await asyncio.to_thread(commit, self._lake, self._name, self.run_id, number, batch)
        self._buffers.learn(files)
        written = total(files)
        self._counts = attrs.evolve(self._counts, written=self._counts.written + written)
        if self._on_commit is not None:
            self._on_commit(written)

    # -- from the bus

    def _hear(self, news: Notification) -> None:
        match news:
            case ObjectUpdated():
                self._object(news.object, properties=news.properties, statistics=news.statistics)
            case EventRaised():
                self._event(news)
            case HeartbeatSeen(agent, timestamp):
                self._add(RowKind.HEARTBEATS, timestamp, agent, (float(agent.info.heartbeat_interval),))
            case AgentAdded(agent):
                self._agent(agent, "added", None)
            case AgentRestarted(agent):
                self._agent(agent, "restarted", None)
            case AgentRemoved(agent, reason):
                self._forget(agent.name)
                self._agent(agent, "removed", reason.value)
            case ClassSeen(class_key, agent):
                self._snapshot(class_key)
            case Missed(agent, subject, count):
                self._counts = attrs.evolve(self._counts, lost=self._counts.lost + count)
                self._gap("missed", subject, count, agent)
            case BusDisconnected():
                self._gap("disconnected", news.reason, 0)
            case BusConnected(again=True):
                self._gap("connected again", "", 0)
            case _:
                return

    def _object(self, obj: RemoteObject, *, properties: bool, statistics: bool) -> None:
        converters = self._of(obj.class_key, obj.schema)
        agent = self._present(obj.agent)
        name = obj.object_id.object_name
        time_ns = obj.timestamps.update or self._clock()
        if converters is None:
            key = obj.class_key
            package, class_name = (key.package, key.name) if key else ("", "")
            cells: Row = (False, package, class_name, name, None, to_json(obj.data.values))
            self._add(RowKind.UNTYPED, time_ns, agent, cells, obj.agent)
            return
        where = (obj.agent, name)
        values = self._known.setdefault(where, {})
        if properties:
            values = self._known[where] = dict(obj.properties)
        if statistics:
            values = {**values, **obj.statistics}
        stamps = obj.timestamps
        if obj.is_deleted:
            self._known.pop(where, None)
        own = (name, obj.object_id.agent_epoch, stamps.create, stamps.delete, properties, statistics)
        row = (*own, *converters.cells(values, statistics=statistics))
        self._add(RowKind.OBJECTS, time_ns, agent, row, obj.agent, converters)

    def _event(self, news: EventRaised) -> None:
        event = news.event
        converters = self._of(event.class_key, event.schema)
        name = event.object_id.object_name if event.object_id else None
        time_ns = event.timestamp or self._clock()
        if converters is None:
            key = event.class_key
            package, class_name = (key.package, key.name) if key else ("", "")
            row: Row = (True, package, class_name, name, event.severity, to_json(event.arguments))
            self._add(RowKind.UNTYPED, time_ns, event.agent, row)
            return
        row = (event.severity, name, *converters.cells(dict(event.arguments), statistics=True))
        self._add(RowKind.EVENTS, time_ns, event.agent, row, None, converters)

    def _agent(self, agent: Agent, change: str, reason: str | None) -> None:
        cells = (change, reason, float(agent.info.heartbeat_interval))
        self._add(RowKind.AGENTS, self._clock(), agent, cells)

    def _gap(self, reason: str, subject: str, count: int, agent: Agent | None = None) -> None:
        self._add(RowKind.GAPS, self._clock(), agent, (reason, subject, count))

    def _of(self, key: ClassKey | None, schema: ClassSchema | EventSchema | None) -> Converters | None:
        """How to store a class; tells of its schema the first time."""
        if key is None or schema is None:
            return None
        known = self._converters.get(key)
        if known is None:
            # Named as the wire names it: that is what readers ask for.
            table = attrs.evolve(
                table_of(schema), package=key.package, name=key.name, hash=str(key.hash) if key.hash else ""
            )
            known = self._converters[key] = Converters(table)
            classes = (schema,) if isinstance(schema, ClassSchema) else ()
            events = (schema,) if isinstance(schema, EventSchema) else ()
            xml = to_xml(Schema(package=key.package, classes=classes, events=events))
            row = (table.package, table.name, table.hash, table.event, table.to_json(), xml)
            self._add(RowKind.SCHEMAS, self._clock(), None, row)
        return known

    def _add(
        self,
        kind: RowKind,
        time_ns: int,
        agent: Agent | None,
        cells: Row,
        agent_name: str | None = None,
        converters: Converters | None = None,
    ) -> None:
        self._seq += 1
        now = self._clock()
        name = agent.name if agent else agent_name
        epoch = agent.epoch if agent else None
        row = (self.run_id, self._seq, time_ns // 1000, time_ns, now, name, epoch, *cells)
        self._buffers.add(kind, converters.table if converters else None, time_ns, row)

    def _present(self, name: str) -> Agent | None:
        return next((agent for agent in self._client.agents if agent.name == name), None)

    def _forget(self, agent: str) -> None:
        for key in [key for key in self._known if key[0] == agent]:
            del self._known[key]

    def _snapshot(self, key: ClassKey) -> None:
        """Ask for the properties of a class's objects: agents won't tell again what they told before we came."""
        if key.kind is not Kind.DATA:
            return
        task = asyncio.get_running_loop().create_task(self._ask(key))
        self._snapshots.add(task)
        task.add_done_callback(self._snapshots.discard)

    async def _ask(self, key: ClassKey) -> None:
        try:
            answers = await self._client.objects(class_key=key)
        except QmfError as error:
            log.warning("the objects of %s are not known until they change: %s", key, error)
            return
        for obj in answers:
            if (obj.agent, obj.object_id.object_name) not in self._known:
                # Without its statistics: they belong to an interval that will be published whole.
                self._object(obj, properties=True, statistics=False)
