"""The asynchronous console: find agents, read and follow their objects, call their methods, receive their events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Self, Unpack, overload

import attrs

from qmf._arguments import arguments_of
from qmf._closable import AsyncClosable
from qmf.bus import AmqpBus
from qmf.console.aio.agent_search import StillFindingAgents
from qmf.console.aio.agents import Agent
from qmf.console.aio.answers import Answers
from qmf.console.aio.core import ClientArguments, ClientCore
from qmf.console.aio.following.agent_follower import FollowSpec
from qmf.console.aio.following.follow import Follow
from qmf.console.aio.lost_objects import LostObject
from qmf.console.aio.notifications import (
    AgentAdded,
    AgentRemoved,
    AgentRestarted,
    AgentUpdated,
    Listener,
    Notification,
    NotificationStream,
    Overflow,
)
from qmf.console.aio.objects.object_query import (
    FilterArguments,
    ListFilterArguments,
    ListQueryArguments,
    P,
    QueryArguments,
    Where,
    make_query,
)
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.console.aio.rpc.requests import RequestCounts
from qmf.console.aio.schemas import AnySchema
from qmf.errors import CallerError, NotFoundError
from qmf.protocol import ObjectId, OrderKey
from qmf.schema import ClassKey


class Client(AsyncClosable):
    """A console on one bus.

    Use it as ``async with Client("localhost") as client``. All methods belong to the event loop that opened it.

    Requests to agents raise, besides what each method lists:

    - `RequestTimeout`: no answer in time;
    - `NetworkError`: not connected, the connection was lost, or the broker refused the request;
    - `AgentLost`: the agent went away or restarted before it answered;
    - `RemoteError`: the agent refused the request.

    Cancelling a request forgets it; the agent may still carry it out. Other requests are not affected.
    """

    @arguments_of(ClientArguments)
    def __init__(self, arguments: ClientArguments) -> None:
        """Make a client; nothing is connected yet.

        The keyword arguments are described in `ClientOptions`.

        Args:
            target: URL of the broker (``host``, ``host:port``, ``amqp://user:password@host``), or a bus. A bus that is
                open already stays open when the client closes.
        """
        target = arguments.target
        core = ClientCore(AmqpBus(target) if isinstance(target, str) else target, arguments)
        self._core = core
        self._options = arguments
        self._bus = core.bus
        self._agents = core.agents
        self._schemas = core.schemas
        self._requests = core.requests
        self._rpc = core.rpc
        self._receiver = core.receiver
        self._publisher = core.publisher
        self._opened = False
        self._closing: asyncio.Task[None] | None = None

    # -- life

    async def open(self, timeout: float | None = None) -> None:
        """Connect, bind, and wait until the agents have announced themselves.

        Args:
            timeout: seconds for connecting; None for the client's. With the option `wait`, for each attempt.

        Raises:
            CallerError: the client was opened before.
            ConnectError: no connection; names the URL and the reason.
            AuthenticationError: the broker refused the user or the password.
            LinkError: the broker refused a binding.
        """
        if self._opened:
            raise CallerError("a client is opened once; make another one")
        self._opened = True
        await self._core.open(self._options.timeout if timeout is None else timeout)

    async def close(self) -> None:
        """Disconnect; pending requests fail. A second call only waits for the first."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._core.close())
        # Shielded: cancelling one call of `close` does not cancel the closing.
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    # -- what is known

    @property
    def url(self) -> str:
        """Where the bus is, without password."""
        return self._bus.url

    @property
    def connected(self) -> bool:
        """True while requests can be sent."""
        return self._closing is None and self._bus.connected

    @property
    def timeout(self) -> float:
        """Seconds to wait for an answer when a call does not specify it."""
        return self._options.timeout

    @property
    def agents(self) -> list[Agent]:
        """The agents present, in the order in which they were found."""
        return list(self._agents)

    @property
    def broker(self) -> Agent | None:
        """The agent of the connected broker; None when it has none."""
        return self._agents.broker

    @property
    def known_packages(self) -> list[str]:
        """Packages seen so far, sorted; see `packages`."""
        return self._schemas.packages

    def known_classes(self, package: str | None = None, *, agent: str | None = None) -> list[ClassKey]:
        """Classes and events seen so far, of one package or of all, sorted; see `classes`.

        Args:
            package: only those of this package; None for all.
            agent: only those that the agent of this name uses; None for all.
        """
        if agent is None:
            return self._schemas.classes(package)
        return sorted(key for key in self._schemas.keys_used_by(agent) if package in (None, key.package))

    def known_schema(self, class_key: ClassKey) -> AnySchema | None:
        """A schema, if it was fetched already; see `schema`."""
        return self._schemas.cached_schema(class_key)

    @property
    def counts(self) -> RequestCounts:
        """How the requests ended so far."""
        return self._rpc.counts

    @property
    def reply_key(self) -> str:
        """The routing key under which this client receives answers."""
        return self._rpc.reply_key

    @property
    def bindings(self) -> list[str]:
        """The binding keys under which this client receives what agents publish."""
        return self._receiver.bound

    @property
    def broken(self) -> int:
        """Messages skipped because they were not valid."""
        return self._receiver.invalid_count

    @property
    def finding_agents(self) -> StillFindingAgents | None:
        """Tells how far the search for agents is, while agents are still answering; None when all are known.

        While it lasts, `failures` of requests to all agents have it under the name ``*``. Its end is notified by
        `AgentsFound`. As nothing marks the end of the answers, the search is over when none has come for a time that
        grows with the number of agents, and sooner when the connected broker's number of agents is reached.
        """
        return self._core.tracker.unfinished

    async def agents_found(self) -> bool:
        """Wait while agents are being found, at most as long as the client's timeout; False if some still are."""
        return await self._core.tracker.wait_for_search()

    def agent(self, name: str) -> Agent:
        """The agent with this name; ``broker`` is the connected broker's.

        Raises:
            NotFoundError: not present; names agents with similar names.
        """
        return self._agents.find(name)

    # -- requests

    async def locate(self, settle: float | None = None) -> list[Agent]:
        """Ask all agents to announce themselves, and wait until they have.

        It makes a qpidd publish all its objects at its next interval (QMF2.md 4.1).

        Args:
            settle: seconds to wait for the first answer at most, see `ClientOptions`; None for the client's.

        Returns:
            the agents present.
        """
        await self._core.locate(settle)
        return self.agents

    async def packages(self, timeout: float | None = None) -> Answers[str]:
        """The packages of all agents, sorted.

        Of agents that can't list their classes, the packages seen so far.

        Args:
            timeout: seconds to wait for each agent; None for the client's.
        """
        failures = await self._requests.list_all_classes(timeout)
        return Answers(tuple(self._schemas.packages), failures)

    async def classes(
        self, package: str | None = None, timeout: float | None = None, *, agent: str | Agent | None = None
    ) -> Answers[ClassKey]:
        """Keys of the classes and events of agents, sorted.

        Args:
            package: only classes of this package; None for all.
            timeout: seconds to wait for each agent; None for the client's.
            agent: only classes of this agent, given by itself or its name; None for all. If it can't list its classes,
                those seen so far.

        Raises:
            NotFoundError: no such agent.
            QmfError: the request to the one agent failed.
        """
        if agent is not None:
            asked = await self._requests.find_agent(agent.name if isinstance(agent, Agent) else agent)
            keys = await self._requests.classes_of(asked, timeout)
            return Answers(tuple(sorted(key for key in keys if package in (None, key.package))), {})
        failures = await self._requests.list_all_classes(timeout)
        return Answers(tuple(self._schemas.classes(package)), failures)

    async def schema(self, class_key: ClassKey) -> AnySchema:
        """The schema of a class or event; cached, and requested once for any number of concurrent calls.

        Args:
            class_key: from `classes`, an object or an event; without hash, the version seen last.

        Raises:
            NotFoundError: no agent present has it.
        """
        try:
            return await self._schemas.get(class_key)
        except NotFoundError:
            if self.finding_agents is None:
                raise
        await self.agents_found()
        return await self._schemas.get(class_key)

    @overload
    async def objects(
        self, name: type[P], *, timeout: float | None = None, **filters: Unpack[ListFilterArguments]
    ) -> Answers[P]: ...

    @overload
    async def objects(
        self, name: str | None = None, *, timeout: float | None = None, **selection: Unpack[ListQueryArguments]
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
        limit: int | None = None,
        order: Sequence[OrderKey] = (),
        select: Sequence[str] = (),
        text: str = "",
        in_turn: bool = False,
    ) -> Answers[Any]:
        """Ask for objects by class, or for one by its id.

        Args:
            name: class name, in any case; or a generated class: the result then holds its instances.
            package: package of the class; None for every class of that name.
            class_key: class key, instead of a name; with a hash, only objects of that version.
            object_id: id of one object, instead of a class. If it does not exist, the result is empty.
            agent: the agent to ask, or its name; None for all, or for the one that `object_id` names.
            where: only objects whose values equal these by name, or that match a predicate (QMF2.md 4.4.2).
            timeout: seconds to wait for each agent; None for the client's.
            limit: how many objects are enough; None for all. Agents of this project send no more; of others, the rest
                is dropped.
            order: with a limit, which objects come first, and their order; without one, any are as good. What is equal
                is in no particular order.
            select: names of the values that are enough, as on the wire; empty for all. Those in `where` and `order`
                come as well; other agents may send more. Not for generated classes, whose instances need all values.
            text: only objects whose names or values contain it, in any case of letters; values within lists and maps
                as well, numbers and references by their texts. Agents of this project search; others send everything.
            in_turn: with a limit, ask agents in the order of their names until there are enough objects, which are
                ordered by agent first; without an order, that is always so. Else all agents are asked.

        Returns:
            the objects of all agents that answered; `failures` holds the errors of the others, and `total` says how
            many there are without the limit.

        Raises:
            CallerError: not exactly one of `name`, `class_key` and `object_id`; a limit below 1, an order without
                a limit, a text together with `select`.
            NotFoundError: no such agent, or a value in `where` that the class doesn't have, in either form.
            ConstraintError: `where` is not a valid predicate.
            QmfError: the requests to all agents failed.
        """
        query, make = make_query(name, package, class_key, object_id, agent, where)
        if limit is not None or order or select or text:
            query = attrs.evolve(
                query, limit=limit, order=tuple(order), select=tuple(select), text=text, in_turn=in_turn or not order
            )
        found = await self._requests.objects(query, timeout)
        return found if make is None else Answers(tuple(map(make, found)), found.failures, found.total)

    def lost_objects(
        self, name: str | None = None, *, package: str | None = None, agent: str | Agent | None = None
    ) -> list[LostObject]:
        """Objects that agents published before they were gone: killed, silent, ended, or restarted without them.

        An object is kept until it is received again, or until its agent is found again without having been restarted;
        at most 10,000 are kept. With the option `data` only, since other clients receive no objects unasked.

        Args:
            name: class name, in any case; None for all.
            package: package of the class; None for all.
            agent: the agent, or its name; None for all.
        """
        return self._core.store.lost.select(name, package, None if agent is None else str(agent))

    @overload
    def each(
        self, name: type[P], *, timeout: float | None = None, **filters: Unpack[FilterArguments]
    ) -> AsyncIterator[P]: ...

    @overload
    def each(
        self, name: str | None = None, *, timeout: float | None = None, **selection: Unpack[QueryArguments]
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
        """The objects that `objects` returns, those of each agent as soon as it has answered.

        Arguments and errors are those of `objects`. When only some agents fail, that is logged; when all do, the last
        step of the iteration raises.
        """
        query, make = make_query(name, package, class_key, object_id, agent, where)
        async with contextlib.aclosing(self._requests.each(query, timeout)) as found:
            async for obj in found:
                yield obj if make is None else make(obj)

    # -- following

    @overload
    def follow(
        self,
        name: type[P],
        *,
        interval: float = 5.0,
        recheck: float = 60.0,
        size: int = 1000,
        **filters: Unpack[FilterArguments],
    ) -> Follow[P]: ...

    @overload
    def follow(
        self,
        name: str | None = None,
        *,
        interval: float = 5.0,
        recheck: float = 60.0,
        size: int = 1000,
        **selection: Unpack[QueryArguments],
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
        """Follow objects: all that exist, and every change of them, as one consistent set.

        Each agent is followed in the best way that it offers, see `Follow.sources`: agents of this project by
        subscription, others by what they publish and by queries, or by queries alone. Agents that are added, removed or
        restarted are taken into account. Nothing is sent before the first use of the result.

        Args:
            name, package, class_key, object_id, agent, where: as for `objects`.
            interval: seconds between publications of subscriptions, and between queries to agents that don't publish.
            recheck: seconds between queries to agents that publish to all. qpidd doesn't publish a change that an
                earlier query of any console returned (QMF2.md 7.1); these queries find it.
            size: how many changes of objects that are gone may wait for the reader. The number of other changes is
                limited by the number of objects, because waiting changes of one object are merged.

        Returns:
            an iterator of `ObjectChange`, which holds the objects, too.

        Raises:
            CallerError: not exactly one of `name`, `class_key` and `object_id`; or a number that is not above 0.
            NotFoundError, ConstraintError: `where` is wrong, as for `objects`.
        """
        if not (interval > 0 and recheck > 0 and size > 0):
            raise CallerError(f"follow: interval {interval}, recheck {recheck} and size {size} must be above 0")
        query, make = make_query(name, package, class_key, object_id, agent, where)
        spec = FollowSpec(query, *self._requests.compile(query), interval, recheck)
        return Follow(self._core.follower(spec, size), make or (lambda remote: remote))

    def follow_agents(self, size: int = 1000) -> NotificationStream:
        """A stream of the agents and their changes: first an `AgentAdded` for each agent present, then the changes.

        Args:
            size: how many may wait; of more, the oldest are dropped, and a `Dropped` holds their number.
        """
        stream = self.notifications(
            AgentAdded, AgentUpdated, AgentRestarted, AgentRemoved, size=max(size, len(self._agents))
        )
        for agent in self._agents:
            stream.put(AgentAdded(agent))
        return stream

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each notification, on the loop; it must not block.

        Returns:
            a function that removes the listener.
        """
        return self._publisher.listen(listener)

    def notifications(
        self, *kinds: type[Notification], size: int = 1000, overflow: Overflow = Overflow.DROP_OLDEST
    ) -> NotificationStream:
        """A bounded queue of notifications, for ``async for``.

        Args:
            kinds: only these classes; all when none is given.
            size: how many may wait.
            overflow: which are dropped when it is full; a `Dropped` holds their number.
        """
        return self._publisher.stream(kinds or (object,), size, overflow)  # type: ignore[arg-type]

    async def bind(self, *keys: str) -> None:
        """Receive more of what agents publish, by binding keys as `class_keys` and `heartbeat_keys` make them.

        A key that is bound already is left alone; a message that two keys match is still received once.
        """
        for key in keys:
            await self._receiver.bind(key)

    async def unbind(self, *keys: str) -> None:
        """Remove binding keys that `bind` or the options of the client bound."""
        for key in keys:
            await self._receiver.unbind(key)
