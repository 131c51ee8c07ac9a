"""The relays of a broker: created, deleted and restored; and the messages to domains that have none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.broker.federation.definitions import Domain, split_link_fields
from qmf.broker.federation.federation import BrokerFederation
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration, NodeDeclarationError, read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.registry import NameInUse, NoSuchExchange
from qmf.broker.nodes.relay_addresses import DEAD_LETTERS, RelayRoute, RelayTable
from qmf.broker.operations.forwarders import ForwardingError, Relays
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.relay.dead_letters import DeadLetters, address_of
from qmf.broker.relay.deadlines import Deadlines
from qmf.broker.relay.definitions import RelayDefinition, read_relay
from qmf.broker.relay.options import RelayOptions, UnknownDomains
from qmf.broker.relay.relay import Relay
from qmf.broker.relay.srv import SrvLookup, may_look_up
from qmf.broker.transactions.transaction import TakenEntry, Transaction, TransactionFull

#: Queue of the messages to domains without a relay.
PARKED = "relay.parked"

#: Messages that are moved in one unit of the store.
_TOGETHER = 500


class BrokerRelays(Relays[Relay]):
    """The relays of a broker."""

    def __init__(self, operations: Operations, federation: BrokerFederation, options: RelayOptions) -> None:
        """Make the relays of a broker, which has none yet; its addresses have domains from now on.

        Args:
            federation: of the broker, with its domains.
        """
        super().__init__(operations.registry, "relay")
        self._operations = operations
        self._federation = federation
        self._options = options
        self._lookup = SrvLookup(options.resolver)
        self._table = self._registry.relay = RelayTable(options.local_domains, self._registry.clock)
        self._parked: RelayRoute | None = None
        self._parked_deadlines: Deadlines | None = None
        self._parked_letters = DeadLetters(operations, BROKER, DEAD_LETTERS, partial(self._on_dead_letter, ""))
        self._closing = BackgroundTasks()
        self._started = False
        federation.domains.watchers.append(self._user_of)

    def find(self, name: str) -> Relay:
        """See `Forwarders`; domains are written in many ways."""
        normal = name.lower().rstrip(".")
        return super().find(normal if self.has(normal) else name)

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        definition = read_relay(name, properties, principal, strict=strict)
        if self.has(definition.name):
            raise ForwardingError(f"object already exists: {definition.name}")
        if self._table.is_local(definition.name):
            raise ForwardingError(f"invalid-argument: domain {definition.name!r} is this broker's own")
        if definition.domain:
            domain = self._federation.domains.find(definition.domain)
            if definition.durable and not domain.durable:
                raise ForwardingError(f"invalid-argument: durable: domain {domain.name} is not durable")
        self._keep(self._make(definition))

    def remove(self, name: str) -> None:
        relay = self._take(name)
        del self._table.routes[relay.name]
        relay.queue.reserved = ""
        self._end_links(relay.route)
        self._closing.spawn(relay.remove())

    def pause(self, name: str) -> None:
        self._closing.spawn(self.find(name).pause())

    def resume(self, name: str) -> None:
        self.find(name).resume()

    def retry(self, name: str, count: int) -> int:
        relay = self.find(name)
        source = self._registry.queue(relay.dead_letters)
        if source is None:
            raise ForwardingError(f"not-found: queue {relay.dead_letters!r} for dead letters")
        return self._move(source, relay, count)

    def restore(self, name: str, fields: Mapping[str, object]) -> None:
        definition = read_relay(name, *split_link_fields(fields))
        try:
            relay = self._make(definition)
        except (ForwardingError, OperationRefused) as error:
            relay = self._make(definition, check=False)
            relay.fail(str(error))
        self._keep(relay)

    def start(self) -> None:
        """Forward messages from now on."""
        self._started = True
        if self._options.unknown_domains is UnknownDomains.PARK:
            queue = self._queue(BROKER, PARKED, {})
            queue.reserved = "relaying"
            self._queue(BROKER, DEAD_LETTERS, {})
            self._parked = self._table.parked = RelayRoute("", queue, self._options.timeout)
            self._parked_deadlines = Deadlines(queue, self._on_late)
            self._parked_deadlines.start()
        for relay in self:
            self._start(relay)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        for relay in self:
            relay.on_node_deleted(node)

    def on_policy_changed(self) -> None:
        for relay in self:
            relay.on_policy_changed()

    async def close(self) -> None:
        """End all relays."""
        if self._parked_deadlines is not None:
            self._parked_deadlines.stop()
        await asyncio.gather(*(relay.close() for relay in self), self._closing.wait())

    # Details

    def _make(self, definition: RelayDefinition, *, check: bool = True) -> Relay:
        if check and definition.srv and not may_look_up(definition.name, self._options.srv_domains):
            raise ForwardingError(
                f"not-allowed: srv: domain {definition.name!r} is not among those that may be looked up"
            )
        owner = definition.principal if check else BROKER
        queue = self._queue(owner, definition.transmission_queue, definition.queue)
        self._queue(owner, definition.dead_letters, {})
        relay = Relay(
            definition,
            queue,
            self._federation,
            self._lookup,
            timeout=definition.timeout or self._options.timeout,
            on_dead_letter=partial(self._on_dead_letter, definition.name),
        )
        if check:
            relay.check()
        return relay

    def _queue(self, principal: Principal, name: str, arguments: Mapping[str, object]) -> Queue:
        """A queue that is durable if the broker has a store, created where it is missing."""
        if (found := self._registry.queue(name)) is not None:
            return found
        try:
            wanted = {**arguments, "durable": self._registry.recorder is not None}
            declaration = read_node_declaration(("queue",), wanted, strict=True, limits=self._registry.limits)
            created = self._operations.create(principal, name, NodeDeclaration(queue=declaration.queue))
        except (NodeDeclarationError, NameInUse, NoSuchExchange) as error:
            raise ForwardingError(f"queue {name!r} cannot be created: {error}") from error
        assert isinstance(created, Queue)
        return created

    def _keep(self, item: Relay) -> None:
        item.queue.reserved = f"the relay to {item.name}"
        self._table.routes[item.name] = item.route
        super()._keep(item)
        if self._started:
            self._start(item)

    def _report_declared(self, item: Relay) -> None:
        self._registry.observer.on_relay_declared(item)

    def _report_deleted(self, item: Relay) -> None:
        self._registry.observer.on_relay_deleted(item)

    def _start(self, relay: Relay) -> None:
        relay.start()
        if (parked := self._parked) is not None:
            self._end_links(parked, relay.name)
            self._move(parked.queue, relay, 0)

    def _move(self, source: Queue, relay: Relay, count: int) -> int:
        """Let messages wait for a relay that wait elsewhere. Returns their number."""

        def is_for(message: Message) -> bool:
            parts = self._table.split(address_of(message))
            return parts is not None and parts[1] == relay.name

        entries = source.contents.take(count, is_for)
        moved = 0
        for start in range(0, len(entries), _TOGETHER):
            moved += self._move_some(source, entries[start : start + _TOGETHER])
        return moved

    def _move_some(self, source: Queue, entries: Sequence[Entry]) -> int:
        transaction = Transaction(b"")
        publisher = self._operations.publisher(BROKER)
        try:
            for entry in entries:
                node = self._table.find(address_of(entry.message))
                message = attrs.evolve(entry.message, origin=None)  # its user is known already
                transaction.sent.append(publisher.admit(node, message))
                transaction.acquisitions.append(TakenEntry(source, entry))
            transaction.commit(self._registry, _ignore)
        except (TransactionFull, OperationRefused):
            source.delivery.put_back(entries)
            return 0
        return len(entries)

    def _on_late(self, entries: Sequence[Entry]) -> None:
        assert self._parked is not None
        queue = self._parked.queue
        for entry in entries:
            queue.contents.acquire(entry, None)
        letters = []
        for entry in entries:
            address = address_of(entry.message)
            letters.append((entry, f"its time was over, and there is no relay to the domain of {address!r}"))
        self._parked_letters.give_up(queue, letters, lambda kept, _: queue.delivery.put_back(kept))

    def _end_links(self, route: RelayRoute, domain: str = "") -> None:
        """Links end whose messages went to a route that is none any more, or none for their domain."""
        for address in self._table.addresses_of(route):
            parts = self._table.split(address.address)
            if not domain or (parts is not None and parts[1] == domain):
                self._registry.on_deleted(address)

    def _user_of(self, domain: Domain) -> str:
        """See `BrokerDomains.watchers`."""
        return next((f"the relay {each.name}" for each in self if each.domain_name == domain.name), "")

    def _on_dead_letter(self, domain: str, address: str, reason: str) -> None:
        self._registry.observer.on_dead_letter(domain, address, reason)


def _ignore(_: NotStored | None) -> None:
    """What could not be stored is where it was."""
