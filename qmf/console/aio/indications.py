"""What agents publish unasked: objects and events, told to listeners once their schema is here.

An indication of a class that is not known yet waits for its schema, and so do later ones of the same class, so that
order is kept per class. A waiting message is not reported done to the bus: the broker then stops sending at the
prefetch limit, and nothing has to be dropped. Where a schema can't be had, the values are told untyped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from qmf._compile import fast_constructor
from qmf.bus.base import ReceivedMessage
from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.notifications import EventRaised, Notification, ObjectUpdated
from qmf.console.aio.objects.class_view import with_agent
from qmf.console.aio.objects.remote_event import EventArguments, RemoteEvent, argument_types
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.objects.store import ObjectStore
from qmf.console.aio.schemas.cache import SchemaCache
from qmf.errors import DisconnectedError, QmfError
from qmf.protocol import EventData, ObjectData
from qmf.schema import ClassKey, EventSchema, QmfType

log = logging.getLogger("qmf.console")

MakeObject = Callable[[ObjectData, Agent], RemoteObject]

D = TypeVar("D", ObjectData, EventData)
#: What follows each other of one class, see `class_runs`.
Runs = Sequence[tuple[ClassKey | None, Sequence[D]]]


class IndicationHandler:
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
        self._types: dict[ClassKey, Mapping[str, QmfType]] = {}

    def objects(self, runs: Runs[ObjectData], agent: Agent, received: ReceivedMessage) -> None:
        """Take the objects of one indication, by class."""
        # One message holds objects of one class; a peer that mixes them gets each run of a class its own turn.
        done = _countdown(len(runs), received)
        for key, run in runs:
            self._when_known(key, lambda run=run: self._update(run, agent), done)  # type: ignore[misc]

    def events(self, runs: Runs[EventData], agent: Agent, received: ReceivedMessage) -> None:
        """Take the events of one indication, by class."""
        done = _countdown(len(runs), received)
        for key, run in runs:
            self._when_known(key, lambda run=run: self._raise(run, agent), done)  # type: ignore[misc]

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

    def _update(self, objects: Sequence[ObjectData], agent: Agent) -> None:
        if not self._present(agent.name):
            return  # it left while the schema was fetched: its objects went with it
        view = self._schemas.view(objects[0].class_key)
        for data in objects:
            if data.object_id is None:
                log.debug("skipped an object without id from %s", agent)
                continue
            obj = self._store.update(self._make(data, agent))
            properties, statistics = view.groups(data.values) if view else (True, False)
            # A deletion may come without values; it is news all the same.
            self._publish(ObjectUpdated(obj, properties=properties or not statistics, statistics=statistics))

    def _raise(self, events: Sequence[EventData], agent: Agent) -> None:
        key = events[0].class_key
        schema = self._schemas.known(key) if key else None
        known = schema if isinstance(schema, EventSchema) else None
        types = self._argument_types(key, known)
        name, publish = agent.name, self._publish
        for data in events:
            arguments = EventArguments(data.values, types, name)
            about = data.object_id
            object_id = None if about is None else with_agent(about, name)
            event = _make_event(agent, key, known, data.timestamp, data.severity, arguments, object_id)
            publish(_make_raised(event))

    def _argument_types(self, key: ClassKey | None, schema: EventSchema | None) -> Mapping[str, QmfType]:
        if key is None or schema is None:
            return {}
        types = self._types.get(key)
        if types is None:
            types = self._types[key] = argument_types(schema)
        return types


#: In the order of their fields.
_make_event, _make_raised = fast_constructor(RemoteEvent), fast_constructor(EventRaised)


def _countdown(count: int, received: ReceivedMessage) -> Callable[[], None]:
    """A function that reports a message done when called for the last of its parts."""
    left = count
    if left == 0:
        received.settle()

    def done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            received.settle()

    return done
