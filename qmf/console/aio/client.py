"""The asynchronous console: find agents, read and follow their objects, call their methods, receive their events."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Self, overload

from qmf.bus import AmqpBus, Bus
from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.core import ClientCore
from qmf.console.aio.following.agent_follower import FollowSpec
from qmf.console.aio.following.follow import Follow, Follower
from qmf.console.aio.notifications import AgentAdded, AgentRemoved, AgentRestarted, AgentUpdated, Notification
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.queries.answers import Answers
from qmf.console.aio.queries.filters import Where
from qmf.console.aio.queries.generated import P, class_of, wrap
from qmf.console.aio.queries.object_queries import ObjectQueries, ObjectQuery
from qmf.console.aio.rpc.requests import RequestCounts
from qmf.console.aio.schemas.cache import AnySchema
from qmf.console.aio.streams import Listener, NotificationStream, Overflow
from qmf.errors import CallerError
from qmf.protocol import DATA_BINDING, EVENT_BINDING, HEARTBEAT_BINDING, ObjectId
from qmf.schema import ClassKey


class Client:
    """A console on one bus.

    Use it as ``async with Client("localhost") as client``. All methods belong to the event loop that opened it.

    RpcChannel to agents raise, besides what each method names:

    - `RequestTimeout`: no answer in time;
    - `NetworkError`: not connected, the connection was lost, or the broker refused the request;
    - `AgentLost`: the agent went away or restarted before it answered;
    - `RemoteError`: the agent said no.

    Cancelling a question forgets it; what the agent does because of it, it does. Other questions are not touched.
    """

    def __init__(
        self,
        target: str | Bus,
        *,
        domain: str = "default",
        timeout: float = 10.0,
        events: bool = True,
        heartbeats: bool = True,
        data: bool = True,
        bindings: Iterable[str] = (),
        discover: bool = False,
        settle: float = 0.5,
    ) -> None:
        """Make a client; nothing is connected yet.

        Args:
            target: URL of the broker (``host``, ``host:port``, ``amqp://user:password@host``), or a bus. A bus that is
                open already stays open when the client closes.
            domain: QMF domain; agents of other domains are not seen.
            timeout: seconds that questions wait for an answer where they don't say otherwise.
            events: receive all events.
            heartbeats: receive all heartbeats. Without them, agents are found when the client connects and never
                counted as gone.
            data: receive all objects that agents publish.
            bindings: more binding keys on the topic exchange, see `class_keys` and `heartbeat_keys`.
            discover: list the classes of each agent as it appears, to tell `PackageSeen` and `ClassSeen`.
            settle: seconds that `open` waits for agents to announce themselves, at most; 0 for not at all.
        """
        self._core = ClientCore(
            AmqpBus(target) if isinstance(target, str) else target,
            domain,
            timeout,
            lambda data, agent: self._queries.make(data, agent),
            ageing=heartbeats,
            discover=discover,
        )
        self._queries = ObjectQueries(self._core)
        wanted = {HEARTBEAT_BINDING: heartbeats, EVENT_BINDING: events, DATA_BINDING: data}
        self._keys = [key for key, on in wanted.items() if on] + list(bindings)
        self._settle = settle
        self._opened = False
        self._closing: asyncio.Task[None] | None = None

    # -- life

    async def open(self, timeout: float | None = None) -> None:
        """Connect, subscribe, and wait until the agents have announced themselves.

        Args:
            timeout: seconds for connecting; None for the client's.

        Raises:
            CallerError: opened before.
            ConnectError: no connection; names the URL and the reason.
            LinkError: the broker refused a subscription.
        """
        if self._opened:
            raise CallerError("a client is opened once; make another one")
        self._opened = True
        await self._core.open(self._core.timeout if timeout is None else timeout, self._keys, self._settle)

    async def close(self) -> None:
        """Disconnect; outstanding questions fail. A second call only waits for the first."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._core.close())
        # Who does not wait any more does not keep it from ending.
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- what is known without asking

    @property
    def url(self) -> str:
        """Where the bus is, without password."""
        return self._core.wire.bus.url

    @property
    def connected(self) -> bool:
        """True while questions can be asked."""
        return self._closing is None and self._core.wire.bus.connected

    @property
    def timeout(self) -> float:
        """Seconds that questions wait where they don't say otherwise."""
        return self._core.timeout

    @property
    def agents(self) -> list[Agent]:
        """The agents present, the first seen first."""
        return list(self._core.agents)

    @property
    def broker(self) -> Agent | None:
        """The agent of the broker we are connected to; None when it has none."""
        return self._core.agents.broker

    @property
    def known_packages(self) -> list[str]:
        """Packages seen so far, sorted; see `packages`."""
        return self._core.schemas.packages

    def known_classes(self, package: str | None = None) -> list[ClassKey]:
        """Classes and events seen so far, of one package or of all, sorted; see `classes`."""
        return self._core.schemas.classes(package)

    def known_schema(self, class_key: ClassKey) -> AnySchema | None:
        """A schema, if it was learned already; see `schema`."""
        return self._core.schemas.known(class_key)

    @property
    def counts(self) -> RequestCounts:
        """What became of the questions so far."""
        return self._core.requests.counts

    @property
    def reply_key(self) -> str:
        """The routing key under which this client gets its answers."""
        return self._core.wire.key

    @property
    def bindings(self) -> list[str]:
        """The binding keys under which this client receives what agents publish."""
        return self._core.wire.bound

    @property
    def broken(self) -> int:
        """Messages skipped because they were not valid."""
        return self._core.wire.broken

    def agent(self, name: str) -> Agent:
        """The agent called `name`; ``broker`` is the connected broker's.

        Raises:
            NotFoundError: not present; names agents with similar names.
        """
        return self._core.agents.find(name)

    # -- questions

    async def locate(self, settle: float | None = None) -> list[Agent]:
        """Ask all agents to announce themselves, and wait until they have.

        A qpidd publishes all its objects at its next interval because of it (QMF2.md 4.1).

        Args:
            settle: seconds to wait at most; None for the client's.

        Returns:
            the agents present.
        """
        if not self.connected:
            raise self._core.disconnected()
        await self._core.wire.locate()
        await self._core.tracker.settle(self._settle if settle is None else settle)
        return self.agents

    async def packages(self, timeout: float | None = None) -> Answers[str]:
        """The packages that agents know, sorted.

        Agents that can't list their classes count with the classes seen of them.

        Args:
            timeout: seconds to wait for each agent; None for the client's.
        """
        failures = await self._queries.lists(self._seconds(timeout))
        return Answers(tuple(self._core.schemas.packages), failures)

    async def classes(
        self, package: str | None = None, timeout: float | None = None, *, agent: str | Agent | None = None
    ) -> Answers[ClassKey]:
        """Keys of the classes and events that agents know, sorted.

        Args:
            package: only of this one; None for all.
            timeout: seconds to wait for each agent; None for the client's.
            agent: only those that this agent knows, or its name. Of one that can't list its classes, those seen so far.

        Raises:
            NotFoundError: no such agent.
            QmfError: the one agent that was asked failed.
        """
        if agent is not None:
            asked = self.agent(agent.name if isinstance(agent, Agent) else agent)
            keys = await self._queries.classes_of(asked, self._seconds(timeout))
            return Answers(tuple(sorted(key for key in keys if package in (None, key.package))), {})
        failures = await self._queries.lists(self._seconds(timeout))
        return Answers(tuple(self._core.schemas.classes(package)), failures)

    async def schema(self, class_key: ClassKey) -> AnySchema:
        """A class or event in full; cached, and asked for once however many want it.

        Args:
            class_key: from `classes`, an object or an event; without hash it means the version seen last.

        Raises:
            NotFoundError: no agent present knows it.
        """
        return await self._core.schemas.get(class_key)

    @overload
    async def objects(
        self,
        name: type[P],
        *,
        agent: str | Agent | None = None,
        where: Where | None = None,
        timeout: float | None = None,
    ) -> Answers[P]: ...

    @overload
    async def objects(
        self,
        name: str | None = None,
        *,
        package: str | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        agent: str | Agent | None = None,
        where: Where | None = None,
        timeout: float | None = None,
    ) -> Answers[RemoteObject]: ...

    async def objects(
        self,
        name: str | type[Any] | None = None,
        *,
        package: str | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        agent: str | Agent | None = None,
        where: Where | None = None,
        timeout: float | None = None,
    ) -> Answers[Any]:
        """Ask for objects by class, or for one by its id.

        Args:
            name: class to ask for, in any case; or a generated class, whose instances are then what comes.
            package: its package; None for every class of that name.
            class_key: class to ask for, instead of its name; with a hash, only objects of that version.
            object_id: object to ask for, instead of a class. Not finding it is no error: the answer is empty.
            agent: whom to ask, or its name; None for all, or for the one that `object_id` names.
            where: only objects whose values equal these by name, or that match a predicate (QMF2.md 4.4.2).
            timeout: seconds to wait for each agent; None for the client's.

        Returns:
            the objects of all agents that answered; `failures` tells who didn't.

        Raises:
            CallerError: not exactly one of `name`, `class_key` and `object_id`.
            NotFoundError: no such agent, or a value in `where` that the class doesn't have.
            ConstraintError: `where` is not a valid predicate.
            QmfError: every agent asked failed.
        """
        wanted, make = _wanted(name, package, class_key, object_id, agent, where)
        found = await self._queries.objects(wanted, self._seconds(timeout))
        return found if make is _as_it_is else Answers(tuple(map(make, found)), found.failures)

    @overload
    def each(
        self,
        name: type[P],
        *,
        agent: str | Agent | None = None,
        where: Where | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[P]: ...

    @overload
    def each(
        self,
        name: str | None = None,
        *,
        package: str | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        agent: str | Agent | None = None,
        where: Where | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[RemoteObject]: ...

    async def each(
        self,
        name: str | type[Any] | None = None,
        *,
        package: str | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        agent: str | Agent | None = None,
        where: Where | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[Any]:
        """Ask as `objects` does, and get the objects of each agent as soon as it has answered.

        Arguments and errors are those of `objects`. When only some agents fail, that is logged; when all do, the last
        step of the iteration raises.
        """
        wanted, make = _wanted(name, package, class_key, object_id, agent, where)
        async with contextlib.aclosing(self._queries.each(wanted, self._seconds(timeout))) as found:
            async for obj in found:
                yield make(obj)

    # -- following

    @overload
    def follow(
        self,
        name: type[P],
        *,
        agent: str | Agent | None = None,
        where: Where | None = None,
        interval: float = 5.0,
        recheck: float = 60.0,
        size: int = 1000,
    ) -> Follow[P]: ...

    @overload
    def follow(
        self,
        name: str | None = None,
        *,
        package: str | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        agent: str | Agent | None = None,
        where: Where | None = None,
        interval: float = 5.0,
        recheck: float = 60.0,
        size: int = 1000,
    ) -> Follow[RemoteObject]: ...

    def follow(
        self,
        name: str | type[Any] | None = None,
        *,
        package: str | None = None,
        class_key: ClassKey | None = None,
        object_id: ObjectId | None = None,
        agent: str | Agent | None = None,
        where: Where | None = None,
        interval: float = 5.0,
        recheck: float = 60.0,
        size: int = 1000,
    ) -> Follow[Any]:
        """Follow objects: those there are, and everything that happens to them, as one consistent picture.

        Each agent is followed in the best way that it offers, see `Follow.sources`: agents of this project by
        subscription, others by what they publish and by queries, or by queries alone. Agents that come, go or restart
        are followed as they do. Nothing is sent before the first use of what is returned.

        Args:
            name, package, class_key, object_id, agent, where: as for `objects`.
            interval: seconds between publications of subscriptions, and between queries to agents that don't publish.
            recheck: seconds between queries to agents that publish to all. qpidd doesn't publish a change that
                somebody's query told before (QMF2.md 7.1); this finds it.
            size: how many news of objects that are gone may wait for the reader. News of objects that are there can't
                be more than these are: changes of an object that waits are merged.

        Returns:
            an iterator of `ObjectChange`, with the picture.

        Raises:
            CallerError: not exactly one of `name`, `class_key` and `object_id`; or a number that can't be.
            NotFoundError, ConstraintError: `where` is wrong, as for `objects`.
        """
        if not (interval > 0 and recheck > 0 and size > 0):
            raise CallerError(f"follow: interval {interval}, recheck {recheck} and size {size} must be above 0")
        wanted, make = _wanted(name, package, class_key, object_id, agent, where)
        orders = FollowSpec(wanted, *self._queries.prepare(wanted), interval, recheck)
        return Follow(Follower(self._core, self._queries, orders, size), make)

    def follow_agents(self, size: int = 1000) -> NotificationStream:
        """The agents and what happens to them, for ``async for``: first an `AgentAdded` for each present, then news.

        Args:
            size: how many news may wait; of more, the oldest are dropped and a `Dropped` tells how many.
        """
        feed = self.notifications(
            AgentAdded, AgentUpdated, AgentRestarted, AgentRemoved, size=max(size, len(self._core.agents))
        )
        for agent in self._core.agents:
            feed.put(AgentAdded(agent))
        return feed

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notification, on the loop; it must not block.

        Returns:
            a function that stops it.
        """
        return self._core.publisher.listen(listener)

    def notifications(
        self, *kinds: type[Notification], size: int = 1000, overflow: Overflow = Overflow.DROP_OLDEST
    ) -> NotificationStream:
        """A bounded queue of notifications, for ``async for``.

        Args:
            kinds: only these classes; all when none is given.
            size: how many may wait.
            overflow: what happens to one more; a `Dropped` tells the reader how many are missing.
        """
        return self._core.publisher.feed(kinds or (object,), size, overflow)  # type: ignore[arg-type]

    async def bind(self, *keys: str) -> None:
        """Receive more of what agents publish: binding keys as `class_keys` and `heartbeat_keys` make them.

        A key that is bound already is left alone; what two keys match still comes once.
        """
        for key in keys:
            await self._core.wire.bind(key)

    async def unbind(self, *keys: str) -> None:
        """Undo `bind`, or what the options of the client bound."""
        for key in keys:
            await self._core.wire.unbind(key)

    def _seconds(self, timeout: float | None) -> float:
        return self._core.timeout if timeout is None else timeout


def _wanted(
    name: str | type[Any] | None,
    package: str | None,
    class_key: ClassKey | None,
    object_id: ObjectId | None,
    agent: str | Agent | None,
    where: Where | None,
) -> tuple[ObjectQuery, Callable[[RemoteObject], Any]]:
    """What is asked for, and how to make what the caller gets."""
    who = agent.name if isinstance(agent, Agent) else agent
    if isinstance(name, type):
        if package or class_key or object_id:
            raise CallerError(f"objects: {name.__name__} says already which class; give nothing else")
        return ObjectQuery(class_key=class_of(name), agent=who, where=where), functools.partial(wrap, name)
    return ObjectQuery(name, package, class_key, object_id, who, where), _as_it_is


def _as_it_is(remote: RemoteObject) -> RemoteObject:
    return remote
