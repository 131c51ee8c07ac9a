"""What agents publish unasked: objects and events, told to listeners once their schema is here.

An indication of a class that is not known yet waits for its schema, and so do later ones of the same class, so that
order is kept per class. A waiting message is not reported done to the bus: the broker then stops sending at the
prefetch limit, and nothing has to be dropped. Where a schema can't be had, the values are told untyped.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence

from qmf.bus.base import Received
from qmf.console.aio.agents import Agent
from qmf.console.aio.events import RemoteEvent
from qmf.console.aio.notifications import EventRaised, Notification, ObjectUpdated
from qmf.console.aio.objects import RemoteObject
from qmf.console.aio.schemas import SchemaCache
from qmf.console.aio.store import ObjectStore
from qmf.console.aio.views import typed, with_agent
from qmf.errors import DisconnectedError, QmfError
from qmf.protocol import EventData, ObjectData, ObjectId
from qmf.schema import ClassKey, EventSchema

log = logging.getLogger("qmf.console")

MakeObject = Callable[[ObjectData, Agent], RemoteObject]


class Indications:
    """Turns data indications into notifications."""

    def __init__(
        self,
        schemas: SchemaCache,
        store: ObjectStore,
        make: MakeObject,
        publish: Callable[[Notification], None],
        present: Callable[[str], bool],
    ) -> None:
        self._schemas = schemas
        self._store = store
        self._make = make
        self._publish = publish
        self._present = present
        self._waiting: dict[ClassKey, list[Callable[[], None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def objects(self, objects: Sequence[ObjectData], agent: Agent, received: Received) -> None:
        """Take the objects of one indication."""
        # One message holds objects of one class; a peer that mixes them gets each run of a class its own turn.
        runs = [(key, list(run)) for key, run in itertools.groupby(objects, key=lambda item: item.class_key)]
        done = _countdown(len(runs), received)
        for key, run in runs:
            self._when_known(key, lambda run=run: self._update(run, agent), done)  # type: ignore[misc]

    def events(self, events: Sequence[EventData], agent: Agent, received: Received) -> None:
        """Take the events of one indication."""
        done = _countdown(len(events), received)
        for event in events:
            self._when_known(event.class_key, lambda event=event: self._raise(event, agent), done)  # type: ignore[misc]

    async def close(self) -> None:
        """Give up what still waits."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._waiting.clear()

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
        task = asyncio.get_running_loop().create_task(self._learn(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _learn(self, key: ClassKey) -> None:
        try:
            await self._schemas.get(key)
        except DisconnectedError as error:
            log.info("no schema for %s: %s", key, error)
        except QmfError as error:
            log.warning("no schema for %s, its values stay untyped: %s", key, error)
        for step in self._waiting.pop(key, []):
            try:
                step()
            except Exception:
                log.exception("bug: handling an indication of %s failed", key)

    def _update(self, objects: list[ObjectData], agent: Agent) -> None:
        if not self._present(agent.name):
            return  # it left while the schema was fetched: its objects went with it
        for data in objects:
            if data.object_id is None:
                log.debug("skipped an object without id from %s", agent)
                continue
            obj = self._store.update(self._make(data, agent))
            view = self._schemas.view(data.class_key)
            properties = view.has_properties(data.values) if view else True
            statistics = view.has_statistics(data.values) if view else False
            # A deletion may come without values; it is news all the same.
            self._publish(ObjectUpdated(obj, properties=properties or not statistics, statistics=statistics))

    def _raise(self, data: EventData, agent: Agent) -> None:
        schema = self._schemas.known(data.class_key) if data.class_key else None
        known = schema if isinstance(schema, EventSchema) else None
        self._publish(
            EventRaised(
                RemoteEvent(
                    agent=agent,
                    class_key=data.class_key,
                    schema=known,
                    timestamp=data.timestamp,
                    severity=data.severity,
                    arguments=_arguments(data, known, agent.name),
                    object_id=_object_id(data.object_id, agent.name),
                )
            )
        )


def _arguments(data: EventData, schema: EventSchema | None, agent: str) -> dict[str, object]:
    values = dict(data.values)
    ordered = {}
    for item in schema.arguments if schema else ():
        if item.name in values:
            ordered[item.name] = typed(item.type, values.pop(item.name), agent)
    return {**ordered, **values}


def _object_id(object_id: ObjectId | None, agent: str) -> ObjectId | None:
    return with_agent(object_id, agent) if object_id else None


def _countdown(count: int, received: Received) -> Callable[[], None]:
    """A function that reports a message done when called for the last of its parts."""
    left = count
    if left == 0:
        received.done()

    def done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            received.done()

    return done
