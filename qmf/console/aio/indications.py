"""Indications: objects and events that agents publish, passed to listeners once their schemas are known.

An indication of a class that is not known yet waits for its schema, and so do later ones of the same class, so that
order is kept per class. A waiting message is not settled: the broker then stops sending at the prefetch limit, and
nothing has to be dropped. If a schema can't be fetched, the values are published untyped.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from qmf._background_tasks import BackgroundTasks
from qmf._compile import fast_constructor, filler
from qmf.bus.base import ReceivedMessage
from qmf.console.aio.agents import Agent, AgentRegistry
from qmf.console.aio.lost_objects import LostObjects
from qmf.console.aio.notifications import EventRaised, Missed, Notification, ObjectUpdated, Removal
from qmf.console.aio.objects.class_fields import is_another, value_groups
from qmf.console.aio.objects.remote_event import EventArguments, RemoteEvent, argument_types
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.objects.values import with_agent
from qmf.console.aio.receiver import key_matches
from qmf.console.aio.schemas import SchemaCache
from qmf.protocol import Envelope, EventData, EventsIndication, ObjectData, ObjectId, ObjectsIndication
from qmf.protocol.objects import class_runs
from qmf.schema import ClassKey, EventSchema, QmfType

log = logging.getLogger("qmf.console")

T = TypeVar("T")

#: Routing keys remembered per agent, so that an agent that uses ever new ones does not fill the memory.
MAX_SUBJECTS = 1000


class SequenceGaps:
    """The last sequence numbers received, by agent and routing key: finds the messages that did not arrive.

    An agent of this project counts 1, 2, 3 and so on in each of its runs and for each routing key. The first number
    received shows nothing: others may have been sent before the key was bound.
    """

    def __init__(self) -> None:
        self._last: dict[str, dict[str, int]] = {}

    def count_missed(self, agent: str, subject: str, number: int, first: int | None = None) -> int:
        """Note the number of a message, or the numbers of what it holds, up to `number`.

        Returns:
            how many are missing before it, or before the `first` in it. A number that is not higher than the last
            belongs to another run of the agent, which will be reported soon, or was received before: none are missing.
        """
        known = self._last.setdefault(agent, {})
        last = known.pop(subject, None)
        if len(known) >= MAX_SUBJECTS:
            del known[next(iter(known))]
        known[subject] = number
        return 0 if last is None or number <= last else max(0, (number if first is None else first) - last - 1)

    def forget_agent(self, agent: str) -> None:
        """The agent is gone or has restarted: its numbers begin again."""
        self._last.pop(agent, None)

    def forget_subjects(self, unbound: Callable[[str], bool]) -> None:
        """Forget the routing keys that are no longer received: their numbers go on without us."""
        for known in self._last.values():
            for subject in [subject for subject in known if unbound(subject)]:
                del known[subject]


class ObjectStore:
    """The latest state of each published object, by agent, object name and epoch.

    Attributes:
        lost: objects whose agent is gone.
    """

    def __init__(self) -> None:
        self.lost = LostObjects()
        self._objects: dict[str, dict[ObjectId, RemoteObject]] = {}
        self._publishers: set[str] = set()

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """The object with this id, agent name included."""
        return self._objects.get(object_id.agent_name or "", {}).get(object_id)

    def has_publisher(self, agent: str) -> bool:
        """True when the agent publishes objects; most agents of libqmf2 don't."""
        return agent in self._publishers

    def add_publisher(self, agent: str) -> None:
        """Note that an agent publishes objects."""
        self._publishers.add(agent)

    def update(self, newer: RemoteObject) -> RemoteObject:
        """Merge an update over what is known of the object; a deleted object leaves the store.

        Returns:
            the object with everything known of it.
        """
        self.lost.on_received(newer)
        data, object_id = newer.data, newer.object_id
        objects = self._objects.setdefault(object_id.agent_name or "", {})
        known = objects.get(object_id)
        if known is not None and 0 < data.update_ts < known.data.update_ts and not data.delete_ts:
            return newer  # the answer to a query; an indication arrived while its schema was fetched
        # An id may be used again after a deletion that was not received; then the creation times differ.
        same = known is not None and not is_another(known.data, data)
        newer = known.with_update(data) if known is not None and same else newer.without_message()
        if newer.data.delete_ts:
            objects.pop(object_id, None)
        else:
            objects[object_id] = newer
        return newer

    def update_from_query(self, agent: str, found: Iterable[RemoteObject]) -> None:
        """Keep the objects that a query returned, if their agent publishes objects.

        qpidd may not publish an object that was just queried (QMF2.md 7.1): later updates are merged over this state.
        """
        if agent in self._publishers:
            for obj in found:
                self.update(obj)

    def agent_added(self, agent: str, epoch: int) -> None:
        """An agent is present, perhaps again."""
        self.lost.agent_found(agent, epoch)

    def agent_removed(self, agent: str, reason: Removal) -> None:
        """Forget an agent; all its objects are lost."""
        self.lost.add(self._objects.pop(agent, {}).values(), reason)
        self._publishers.discard(agent)

    def agent_restarted(self, agent: str) -> None:
        """The objects of an agent that don't outlive its restart are lost, until they are received again."""
        objects = self._objects.pop(agent, {})
        self.lost.add((obj for oid, obj in objects.items() if oid.agent_epoch), None)
        self._objects[agent] = {oid: obj for oid, obj in objects.items() if not oid.agent_epoch}


class IndicationHandler:
    """Turns indications into notifications."""

    def __init__(
        self,
        agents: AgentRegistry,
        schemas: SchemaCache,
        store: ObjectStore,
        make: Callable[[Sequence[ObjectData], Agent], list[RemoteObject]],
        publish: Callable[[Notification], None],
        publish_all: Callable[[Sequence[Notification]], None],
    ) -> None:
        """Make a handler.

        Args:
            agents: the agents present; objects of others are dropped.
            schemas: where classes are noted and schemas fetched.
            store: where objects are merged.
            make: makes remote objects of what an agent sent.
            publish: called with each notification that comes alone.
            publish_all: called with notifications that came together.
        """
        self._gaps = SequenceGaps()
        self._event_gaps = SequenceGaps()
        self._agents = agents
        self._schemas = schemas
        self._store = store
        self._make = make
        self._publish = publish
        self._publish_all = publish_all
        self._waiting: dict[ClassKey, list[Callable[[], None]]] = {}
        self._tasks = BackgroundTasks()
        self._types: dict[ClassKey, Mapping[str, QmfType]] = {}

    def on_indication(self, envelope: Envelope, agent: Agent, message: ReceivedMessage) -> None:
        """Handle an indication of an agent; `message` is settled in the end."""
        self.count(envelope, agent)
        content = envelope.content
        if isinstance(content, ObjectsIndication):
            self._store.add_publisher(agent.name)
            self._handle(class_runs(content.objects), self._update, agent, message)
        elif isinstance(content, EventsIndication):
            runs = class_runs(content.events)
            if len(runs) == 1 and self._is_known(runs[0][0], agent):
                try:
                    self._raise(runs[0][1], agent)
                finally:
                    message.settle()
                return
            self._handle(runs, self._raise, agent, message)

    def _is_known(self, key: ClassKey | None, agent: Agent) -> bool:
        """Whether indications of a class need not wait for its schema: of most it came long ago."""
        if key is None or key in self._waiting:
            return False
        self._schemas.saw(key, agent)
        return not self._schemas.worth_asking(key)

    def count(self, envelope: Envelope, agent: Agent) -> None:
        """Check the sequence number of a published message, and report those that did not arrive."""
        if envelope.sequence is None or envelope.subject is None:
            return
        missed, events = self._gaps.count_missed(agent.name, envelope.subject, envelope.sequence), None
        if envelope.events is not None and isinstance(envelope.content, EventsIndication):
            before = envelope.events - len(envelope.content.events)
            events = self._event_gaps.count_missed(agent.name, envelope.subject, envelope.events, first=before + 1)
        if missed or events:
            report = Missed(agent, envelope.subject, missed, events)
            log.info("%s", report)
            self._report(report, envelope)

    def _report(self, report: Missed, envelope: Envelope) -> None:
        """Publish what is missing before a message: behind earlier events, which may wait for their schema."""
        if isinstance(envelope.content, EventsIndication):
            for event in envelope.content.events:
                queue = None if event.class_key is None else self._waiting.get(event.class_key)
                if queue is not None:
                    queue.append(functools.partial(self._publish, report))
                    return
        self._publish(report)

    def agent_lost(self, agent: str) -> None:
        """An agent is gone or has restarted: its sequence numbers begin again."""
        self._gaps.forget_agent(agent)
        self._event_gaps.forget_agent(agent)

    def on_unbound(self, key: str, kept: Collection[str]) -> None:
        """A binding key was removed: the routing keys that only this key matches are no longer counted."""

        def is_unbound(subject: str) -> bool:
            return key_matches(key, subject) and not any(key_matches(other, subject) for other in kept)

        self._gaps.forget_subjects(is_unbound)
        self._event_gaps.forget_subjects(is_unbound)

    async def close(self) -> None:
        """Drop all indications that wait."""
        await self._tasks.cancel()
        self._waiting.clear()

    def _handle(
        self,
        runs: Sequence[tuple[ClassKey | None, Sequence[T]]],
        handle: Callable[[Sequence[T], Agent], None],
        agent: Agent,
        message: ReceivedMessage,
    ) -> None:
        """Handle what a message holds: mostly one class; each further one waits for its own schema."""
        self._schemas.saw_all((key for key, _ in runs), agent)
        done = _countdown(len(runs), message)
        for key, run in runs:
            self._when_known(key, functools.partial(handle, run, agent), done)

    def _when_known(self, key: ClassKey | None, handle: Callable[[], None], done: Callable[[], None]) -> None:
        def step() -> None:
            try:
                handle()
            finally:
                done()

        if key is None or (key not in self._waiting and not self._schemas.worth_asking(key)):
            step()
            return
        queue = self._waiting.get(key)
        if queue is not None:
            queue.append(step)
            return
        self._waiting[key] = [step]
        self._tasks.spawn(self._learn(key))

    async def _learn(self, key: ClassKey) -> None:
        await self._schemas.learn(key)
        for step in self._waiting.pop(key, []):
            try:
                step()
            except Exception:
                log.exception("bug: handling an indication of %s failed", key)

    def _update(self, objects: Sequence[ObjectData], agent: Agent) -> None:
        if self._agents.get(agent.name) is None:
            return  # removed while the schema was fetched, and its objects with it
        fields = self._schemas.fields(objects[0].class_key)
        for update in self._make(objects, agent):
            data = update.data
            if data.object_id is None:
                log.debug("skipped an object without id from %s", agent)
                continue
            properties, statistics = value_groups(fields, data.values) if fields else (True, False)
            obj = self._store.update(update)
            # A deletion may come without values; it is reported all the same.
            self._publish(ObjectUpdated(obj, properties=properties or not statistics, statistics=statistics))

    def _raise(self, events: Sequence[EventData], agent: Agent) -> None:
        key = events[0].class_key
        schema = self._schemas.cached_schema(key) if key else None
        known = schema if isinstance(schema, EventSchema) else None
        types = self._argument_types(key, known)
        name = agent.name
        self._publish_all(
            [
                _make_raised(
                    _make_event(
                        agent,
                        key,
                        known,
                        data.timestamp,
                        data.severity,
                        _make_arguments(data.values, types, name),
                        None if data.object_id is None else with_agent(data.object_id, name),
                    )
                )
                for data in events
            ]
        )

    def _argument_types(self, key: ClassKey | None, schema: EventSchema | None) -> Mapping[str, QmfType]:
        if key is None or schema is None:
            return {}
        types = self._types.get(key)
        if types is None:
            types = self._types[key] = argument_types(schema)
        return types


#: In the order of their fields. Nothing that events refer to knows of them: neither agents, nor schemas, nor values.
_make_event, _make_raised = fast_constructor(RemoteEvent, acyclic=True), fast_constructor(EventRaised, acyclic=True)
_make_arguments = filler(EventArguments, ("_values", "_types", "_agent"), acyclic=True) or EventArguments


def _countdown(count: int, message: ReceivedMessage) -> Callable[[], None]:
    """A function that settles a message when it is called for the last of its parts."""
    left = count
    if left == 0:
        message.settle()

    def on_done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            message.settle()

    return on_done
