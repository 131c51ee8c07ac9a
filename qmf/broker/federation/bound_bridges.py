"""Routes whose queue at the other broker this broker makes and binds, by the methods of the other broker's agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from qmf.broker.federation.bridges import PullBridge, RouteLink
from qmf.broker.federation.dynamic_bindings import PeerBinding, needed_bindings
from qmf.broker.federation.local_nodes import NodeUnusable
from qmf.broker.federation.peer_agent import PeerAgent, PeerRefusal
from qmf.broker.federation.peer_connector import LinkServices
from qmf.broker.federation.route_definitions import BridgeDefinition
from qmf.broker.federation.tracing import broker_id
from qmf.broker.nodes.bindings import BIND, UNBIND, peer_path
from qmf.broker.nodes.exchanges import Exchange
from qmf.bus.client.failures import FailureKind, NetworkFailure
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.values import Terminus

log = logging.getLogger("qmf.broker.federation")

#: Keys of which the reason of a route names no more.
_NAMED = 3


class BoundBridge(PullBridge):
    """A dynamic route, or one to an existing queue that it binds.

    What is bound at this broker's exchange (and passed on to it by further brokers) is bound at the other broker's.
    """

    def __init__(self, bridge: BridgeDefinition, link: RouteLink, services: LinkServices) -> None:
        super().__init__(bridge, link, services)
        self._id = broker_id(services.container)
        #: What the other broker was asked to bind, by key and origin, and what it has refused.
        self._bound: dict[tuple[str, str], PeerBinding] = {}
        self._refused: dict[tuple[str, str], str] = {}
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def queue_name(self) -> str:
        """Name of the queue at the other broker."""
        return self.bridge.queue or f"qpid.bridge_queue_{self.name}_{self._id}".replace("/", "|")

    @property
    def reason(self) -> str:
        if not self._refused or self.status.reason:
            return self.status.reason
        named = "; ".join(f"{key!r}: {text}" for (key, _), text in list(self._refused.items())[:_NAMED])
        return f"the other broker refuses {len(self._refused)} bindings: {named}"

    def exchange(self) -> Exchange:
        """The exchange of this broker whose bindings are followed.

        Raises:
            NodeUnusable: there is none.
        """
        found = self._operations.registry.exchange(self.bridge.src)
        if not isinstance(found, Exchange):
            raise NodeUnusable(f"Exchange not found, name={self.bridge.src!r}")
        return found

    def check(self) -> None:
        super().check()
        if self.bridge.dynamic:
            exchange = self.exchange()
            if exchange not in self.nodes:
                self.nodes = (*self.nodes, exchange)

    def on_bindings_changed(self) -> None:
        self._changed.set()

    def source_terminus(self, product: str) -> Terminus:  # noqa: ARG002  # its agent has made the queue
        return Terminus(self.queue_name)

    async def attach_links(self, network: NetworkConnection) -> None:
        self._url, self._network = network.url, network
        agent = self._agent = PeerAgent(network)
        await agent.open()
        await self._make_queue(agent)
        self._bound = await self._find_bound(agent)
        self._refused = {}
        self._changed.clear()
        await self._bind(agent, again=True)
        await super().attach_links(network)
        self._following = self._loop.create_task(self._follow(agent))

    def lose(self, failure: NetworkFailure) -> None:
        self._stop_following()
        super().lose(failure)

    def remove(self) -> None:
        self._stop_following()
        super().remove()

    async def close(self) -> None:
        self._stop_following()
        await super().close()

    def source_queues(self) -> Sequence[str]:
        """See `IncomingBrokerLink`: this broker has made it."""
        return (self.queue_name,)

    async def _clean_up(self, network: NetworkConnection) -> None:  # noqa: ARG002  # the agent is on it
        if self._agent is None or self.bridge.queue:
            return
        try:
            await self._agent.call_delete("queue", self.queue_name)
        except (PeerRefusal, NetworkFailure) as error:
            # One that deletes itself is gone already.
            level = logging.WARNING if self.bridge.durable else logging.DEBUG
            log.log(level, "%s: its queue at the other broker is not deleted: %s", self._who, error)

    def _stop_following(self) -> None:
        if self._following is not None:
            self._following.cancel()
            self._following = None

    async def _make_queue(self, agent: PeerAgent) -> None:
        if self.bridge.queue:
            return
        durable = self.bridge.durable
        properties = {
            "durable": durable,
            "auto-delete": not durable,
            "qpid.trace.exclude": self.bridge.excludes or self._id,
        }
        try:
            await agent.call_create("queue", self.queue_name, properties)
        except PeerRefusal as error:
            if "already exists" not in str(error):
                raise self._refusal(f"a queue for the route: {error}") from error

    async def _find_bound(self, agent: PeerAgent) -> dict[tuple[str, str], PeerBinding]:
        """What the queue of an earlier connection, which stays for a durable route, is bound to."""
        found: dict[tuple[str, str], PeerBinding] = {}
        if not (self.bridge.durable and self.bridge.dynamic):
            return found
        try:
            bindings = await agent.bindings_of(self.bridge.src, self.queue_name)
        except PeerRefusal as error:
            raise self._refusal(f"to say what is bound: {error}") from error
        for spec in bindings:
            origin, path = peer_path(spec)
            found[spec.key, origin] = PeerBinding(spec.key, origin, path)
        return {**self._bound, **found}

    async def _follow(self, agent: PeerAgent) -> None:
        """Bind at the other broker what is bound here, until the connection is gone."""
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self._bind(agent)
        except NetworkFailure as failure:
            self.drop(failure.reason)
        except Exception as error:
            log.exception("%s: bindings are not followed any more", self._who)
            self.fail(str(error))

    async def _bind(self, agent: PeerAgent, *, again: bool = False) -> None:
        """Ask for what is needed and was not asked for, then end what is not needed any more: nothing is missed."""
        needed = self._find_needed()
        known = {} if again else self._bound
        await self._ask(agent, BIND, (item for key, item in needed.items() if known.get(key) != item))
        await self._ask(agent, UNBIND, [item for key, item in self._bound.items() if key not in needed])

    def _find_needed(self) -> Mapping[tuple[str, str], PeerBinding]:
        network = self._network
        if not self.bridge.dynamic or network is None:
            return {(self.bridge.key, self._id): PeerBinding(self.bridge.key, self._id, (self._id,))}
        try:
            exchange = self.exchange()
        except NodeUnusable:
            return {}  # the route is about to end
        return needed_bindings(exchange, self._id, broker_id(network.peer.container))

    async def _ask(self, agent: PeerAgent, operation: str, bindings: Iterable[PeerBinding]) -> None:
        await asyncio.gather(*(self._ask_one(agent, operation, item) for item in bindings))

    async def _ask_one(self, agent: PeerAgent, operation: str, binding: PeerBinding) -> None:
        key = (binding.key, binding.origin)
        name = f"{self.bridge.src}/{self.queue_name}/{binding.key}"
        self._refused.pop(key, None)
        properties = binding.properties(operation) if self.bridge.dynamic else {}
        try:
            await agent.call_create("binding", name, properties)
        except PeerRefusal as error:
            if not ("No such" in str(error) and operation == UNBIND):
                self._refused[key] = str(error)
                log.warning("%s: the other broker refuses the key %r: %s", self._who, binding.key, error)
        if operation == BIND:
            self._bound[key] = binding
        else:
            self._bound.pop(key, None)
            self._refused.pop(key, None)

    def _refusal(self, what: str) -> NetworkFailure:
        return NetworkFailure(self._url, f"the other broker refuses {what}", FailureKind.CLOSED)
