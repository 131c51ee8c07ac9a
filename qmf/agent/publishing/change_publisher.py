"""Publishing by change: what became different since the last interval, once per interval (QMF2.md 7.1).

One publication sends, in this order: what was removed, with its final values; what changed, many objects of one class
to a message and only the changed group of values; a heartbeat. The heartbeat is confirmed by the broker. As everything
goes over one link in order, that vouches for all before it; until then nothing counts as published.

Without connection no publication begins: marks and deletions stay, and intervals of high, low and averages go on. When
the connection breaks in the middle, what was taken is given back and sent again, so a console may hear it twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import islice

import attrs

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.clock import Clock
from qmf.agent.layout import object_state
from qmf.agent.metrics import AgentMetrics
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import PendingUpdate, take_update
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.sending.message_batcher import MessageBatcher, report_unencodable
from qmf.agent.sending.message_sender import MessageSender
from qmf.agent.sending.sequence_numbers import SequenceNumbers
from qmf.errors import NetworkError, QmfError
from qmf.protocol import Content, Heartbeat, ObjectData, ObjectsIndication, data_key, heartbeat_key, topic_exchange
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Objects looked at between two turns of the loop, if they have not changed: about 2 ms.
_SCAN = 20_000

#: Attribute of an agent's last heartbeat: consoles of ours need not wait for the next ones to be missing.
GOODBYE = "_goodbye"


class ChangePublisher:
    """Publishes for one agent; belongs to the event loop's thread, and never holds up a setter."""

    def __init__(
        self,
        store: ManagedObjectStore,
        writer: ObjectWriter,
        sender: MessageSender,
        identity: AgentIdentity,
        domain: str,
        clock: Clock,
        metrics: AgentMetrics,
        *,
        data: bool,
        numbers: SequenceNumbers | None,
    ) -> None:
        """Set up.

        Args:
            store, writer, sender, identity, domain, clock, metrics: of the agent.
            data: tell changes; without, intervals pass all the same, and nobody hears of them.
            numbers: what numbers messages, or None.
        """
        self._data = data
        self._numbers = numbers
        self._store = store
        self._writer = writer
        self._sender = sender
        self._identity = identity
        self._topic = topic_exchange(domain)
        self._clock = clock
        self._metrics = metrics
        self._turn = asyncio.Lock()
        self._packers: dict[ClassKey, MessageBatcher] = {}
        self._heartbeat_key = heartbeat_key(identity.info(0, 0))

    async def run(self) -> None:
        """Publish each interval until cancelled. Being late delays the next; missed intervals are not made up for."""
        due = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            due = max(due + self._identity.interval, now)
            await self._clock.sleep(due - now)
            try:
                await self.publish()
            except Exception:  # noqa: BLE001  # a bug shall not end publishing for good
                _log.exception("publishing failed; the next interval tries again")

    async def announce(self) -> None:
        """Send a heartbeat and publish, after a reconnect: consoles may have given the agent up meanwhile."""
        try:
            async with self._turn:
                await self.heartbeat()
            await self.publish()
        except NetworkError as error:
            _log.info("cannot publish: %s", error)

    async def heartbeat(self, *, confirm: bool = False, goodbye: bool = False) -> None:
        """Send a heartbeat, worth delivering for two intervals.

        Args:
            confirm: wait until the broker has it.
            goodbye: say that it is the last.

        Raises:
            NetworkError: it could not be sent.
        """
        info = self._identity.info(self._clock.time_ns(), self._store.schema_updated)
        if goodbye:
            info = attrs.evolve(info, attributes={**info.attributes, GOODBYE: True})
        await self._send(Heartbeat(info), self._heartbeat_key, confirm=confirm, ttl=2 * self._identity.interval)

    async def publish(self, *, heartbeat: bool = True) -> bool:
        """Publish once, now.

        Args:
            heartbeat: end with one. Without, nobody confirms: for the last publication, before the bus is closed.

        Returns:
            False if there is no connection, or it was lost on the way: nothing is lost, the next call sends it.
        """
        async with self._turn:
            if not self._sender.connected:
                return False
            numbers = None if self._numbers is None else self._numbers.save()
            deleted = self._store.take_deleted()
            taken: list[PendingUpdate] = []
            done = False
            try:
                await self._send_deleted(deleted)
                await self._send_changed(taken)
                if heartbeat:
                    await self.heartbeat(confirm=True)
                done = True
            except NetworkError as error:
                _log.info("publishing stopped, and will go on after a reconnect: %s", error)
            finally:
                if done:
                    self._metrics.add("objects_published", (len(deleted) + len(taken)) if self._data else 0)
                else:
                    if self._numbers is not None and numbers is not None:
                        self._numbers.restore(numbers)
                    self._store.restore_deleted(deleted)
                    for item in taken:
                        item.restore()
            return done

    async def _send_deleted(self, deleted: Sequence[ObjectData]) -> None:
        groups: dict[ClassKey, list[ObjectData]] = {}
        for item in deleted:
            if item.class_key is not None:
                groups.setdefault(item.class_key, []).append(item)
        for key, objects in groups.items():
            rest = iter(objects)
            while part := list(islice(rest, self._packer(key).room)):
                items = []
                for data in part:
                    try:
                        items.append(self._writer.data(data))
                    except (ValueError, QmfError) as error:
                        report_unencodable(self._metrics, data.object_id, error)
                await self._send_objects(key, items)

    async def _send_changed(self, taken: list[PendingUpdate]) -> None:
        groups: dict[ClassKey, list[ManagedObject]] = {}
        for obj in await self._changed():
            groups.setdefault(object_state.layout(obj).key, []).append(obj)
        for key, objects in groups.items():
            rest = iter(objects)
            while part := list(islice(rest, self._packer(key).room)):
                await self._send_objects(key, self._take(part, taken))

    async def _changed(self) -> list[ManagedObject]:
        """The objects that a publication would find something of."""
        found: list[ManagedObject] = []
        objects = self._store.all()
        for start in range(0, len(objects), _SCAN):
            found += object_state.with_changes(objects[start : start + _SCAN])
            await asyncio.sleep(0)
        return found

    def _take(self, objects: Iterable[ManagedObject], taken: list[PendingUpdate]) -> list[Item]:
        """What changed of some objects, encoded; what was taken for it is added to `taken`."""
        now = self._clock.time_ns()
        items: list[Item] = []
        for obj in objects:
            # What was removed meanwhile is told by its deletion, in the next interval.
            found = take_update(obj, self._store.tick()) if object_state.owner(obj) is self._store else None
            if found is None:
                continue
            object_state.set_update_time(obj, now)
            taken.append(found)
            if self._data:
                try:
                    items.append(self._writer.part(obj, found.groups, found.raw))
                except (ValueError, QmfError) as error:
                    report_unencodable(self._metrics, object_state.object_id(obj), error)
        return items

    async def _send_objects(self, key: ClassKey, items: Sequence[Item]) -> None:
        if not items or not self._data:
            return
        subject = data_key(key, self._identity.info(0, 0))

        def build(part: Sequence[Item], _: bool) -> bytes:
            content, body = self._writer.content(ObjectsIndication, part)
            return self._encode(content, subject, body=body)

        for data, _ in self._packer(key).pack(items, build, more=True):
            await self._sender.send(data)
            if self._numbers is not None:
                self._numbers.use(subject)
            # Ten thousand objects shall not keep requests waiting.
            await asyncio.sleep(0)

    async def _send(self, content: Content, subject: str, *, confirm: bool, ttl: float) -> None:
        data = self._encode(content, subject, ttl=ttl)
        await self._sender.send(data, confirm=confirm)
        if self._numbers is not None:
            self._numbers.use(subject)

    def _encode(self, content: Content, subject: str, *, ttl: float | None = None, body: bytes | None = None) -> bytes:
        number = None if self._numbers is None else self._numbers.next(subject)
        return self._sender.encode(content, self._topic, subject, ttl=ttl, sequence=number, body=body)

    def _packer(self, key: ClassKey) -> MessageBatcher:
        return self._packers.setdefault(key, MessageBatcher(self._metrics))
