"""Publishing by change: once per interval, the changes since the last interval (QMF2.md 7.1).

One publication sends, in this order: removed objects, with their last values; changed objects, many of one class in a
message and only the changed group of values; a heartbeat. The broker confirms the heartbeat. All messages are sent in
order on one link, so that confirms all of them; until then nothing counts as published.

Without connection no publication begins: change marks and deletions stay, and intervals of high, low and averages go
on. If the connection is lost in between, all updates are restored and sent again, so a console may receive them twice.
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
from qmf.agent.objects.change_log import Changed
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.sending.message_batcher import MessageBatcher, report_unencodable
from qmf.agent.sending.message_sender import MessageSender, SequenceNumbers
from qmf.errors import NetworkError, QmfError
from qmf.protocol import Content, Heartbeat, ObjectData, ObjectsIndication, data_key, heartbeat_key, topic_exchange
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Attribute of an agent's last heartbeat: consoles of this project need not wait until further heartbeats are missing.
GOODBYE = "_goodbye"


class ChangePublisher:
    """Publishes the changes of one agent; belongs to the event loop's thread, and never blocks a setter."""

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
            data: publish changes; without, only intervals end.
            numbers: gives messages their sequence numbers, or None.
        """
        self._data = data
        self._numbers = numbers
        self._store = store
        self._watch = store.changes.watch()
        #: What changed since the last publication that succeeded.
        self._changed: Changed = {}
        self._writer = writer
        self._sender = sender
        self._identity = identity
        self._topic = topic_exchange(domain)
        self._clock = clock
        self._metrics = metrics
        self._one_at_a_time = asyncio.Lock()
        self._batchers: dict[ClassKey, MessageBatcher] = {}
        self._heartbeat_key = heartbeat_key(identity.info(0, 0))

    async def run(self) -> None:
        """Publish each interval until cancelled. If one is late, so is the next; missed intervals are skipped."""
        due = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            due = max(due + self._identity.interval, now)
            await self._clock.sleep(due - now)
            try:
                await self.publish()
            except Exception:  # noqa: BLE001  # a bug must not end publishing for good
                _log.exception("publishing failed; the next interval tries again")

    async def announce(self) -> None:
        """Send a heartbeat and publish, after a reconnect: consoles may have removed the agent meanwhile."""
        try:
            async with self._one_at_a_time:
                self._collect()
                if self._changed or self._store.has_deletions:  # else the heartbeat of the publication is the first
                    await self.heartbeat()
            await self.publish()
        except NetworkError as error:
            _log.info("cannot publish: %s", error)

    async def heartbeat(self, *, confirm: bool = False, goodbye: bool = False) -> None:
        """Send a heartbeat, which expires after two intervals.

        Args:
            confirm: wait until the broker has accepted it.
            goodbye: mark it as the last one.

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
            heartbeat: end with a heartbeat. Without, nothing is confirmed: for the last publication, before the close.

        Returns:
            False if there is no connection, or it was lost meanwhile: the next call sends the same changes.
        """
        async with self._one_at_a_time:
            if not self._sender.connected:
                self._collect()
                return False
            numbers = None if self._numbers is None else self._numbers.save()
            deleted = self._store.take_deleted()
            updates: list[PendingUpdate] = []
            done = False
            try:
                await self._send_deleted(deleted)
                await self._send_changed(updates)
                if heartbeat:
                    await self.heartbeat(confirm=True)
                self._changed.clear()
                done = True
            except NetworkError as error:
                _log.info("publishing stopped, and will go on after a reconnect: %s", error)
            finally:
                if done:
                    self._metrics.add("objects_published", (len(deleted) + len(updates)) if self._data else 0)
                else:
                    if self._numbers is not None and numbers is not None:
                        self._numbers.restore(numbers)
                    self._store.restore_deleted(deleted)
                    for update in updates:
                        update.restore()
            return done

    async def _send_deleted(self, deleted: Sequence[ObjectData]) -> None:
        groups: dict[ClassKey, list[ObjectData]] = {}
        for item in deleted:
            if item.class_key is not None:
                groups.setdefault(item.class_key, []).append(item)
        for key, objects in groups.items():
            rest = iter(objects)
            while batch := list(islice(rest, self._batcher(key).batch_size)):
                items = []
                for data in batch:
                    try:
                        items.append(self._writer.data(data))
                    except (ValueError, QmfError) as error:
                        report_unencodable(self._metrics, data.object_id, error)
                await self._send_objects(key, items)

    async def _send_changed(self, updates: list[PendingUpdate]) -> None:
        groups: dict[ClassKey, list[ManagedObject]] = {}
        self._collect()
        for obj in self._changed.values():
            groups.setdefault(object_state.layout(obj).key, []).append(obj)
        for key, objects in groups.items():
            rest = iter(objects)
            while batch := list(islice(rest, self._batcher(key).batch_size)):
                await self._send_objects(key, self._take_updates(batch, updates))

    def _collect(self) -> None:
        """Take the list of objects that changed; without those that were removed, whose deletions are kept apart."""
        taken, _ = self._watch.take()
        self._changed |= taken
        self._changed = {key: obj for key, obj in self._changed.items() if object_state.owner(obj) is self._store}

    def _take_updates(self, objects: Iterable[ManagedObject], updates: list[PendingUpdate]) -> list[Item]:
        """The changed values of some objects, encoded; the updates are added to `updates`."""
        now = self._clock.time_ns()
        items: list[Item] = []
        for obj in objects:
            # An object that was removed meanwhile is published as deleted in the next interval.
            stored = object_state.owner(obj) is self._store
            update = take_update(obj, self._store.changes.tick()) if stored else None
            if update is None:
                continue
            object_state.set_update_time(obj, now)
            updates.append(update)
            if self._data:
                try:
                    items.append(self._writer.part(obj, update.groups, update.raw))
                except (ValueError, QmfError) as error:
                    report_unencodable(self._metrics, object_state.object_id(obj), error)
        return items

    async def _send_objects(self, key: ClassKey, items: Sequence[Item]) -> None:
        if not items or not self._data:
            return
        subject = data_key(key, self._identity.info(0, 0))

        def encode(batch: Sequence[Item], _: bool) -> bytes:
            content, body = self._writer.content(ObjectsIndication, batch)
            return self._encode(content, subject, body=body)

        for data, _ in self._batcher(key).encode(items, encode, more=True):
            await self._sender.send(data)
            if self._numbers is not None:
                self._numbers.use(subject)
            # Ten thousand objects must not keep requests waiting.
            await asyncio.sleep(0)

    async def _send(self, content: Content, subject: str, *, confirm: bool, ttl: float) -> None:
        data = self._encode(content, subject, ttl=ttl)
        await self._sender.send(data, confirm=confirm)
        if self._numbers is not None:
            self._numbers.use(subject)

    def _encode(self, content: Content, subject: str, *, ttl: float | None = None, body: bytes | None = None) -> bytes:
        number = None if self._numbers is None else self._numbers.next(subject)
        return self._sender.encode(content, self._topic, subject, ttl=ttl, sequence=number, body=body)

    def _batcher(self, key: ClassKey) -> MessageBatcher:
        return self._batchers.setdefault(key, MessageBatcher(self._metrics))
