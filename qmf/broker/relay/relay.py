"""One relay: the transmission queue of a domain, its transfer agent, and what could not be forwarded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from qmf.broker.federation.definitions import Domain, read_domain
from qmf.broker.federation.federation import BrokerFederation
from qmf.broker.federation.link_status import LinkStatus, PeerLinkTrigger
from qmf.broker.nodes.entries import AVAILABLE, Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.relay_addresses import RelayRoute
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.forwarding import RELAY
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.relay.dead_letters import DeadLetters
from qmf.broker.relay.deadlines import Deadlines
from qmf.broker.relay.definitions import RelayDefinition
from qmf.broker.relay.srv import LookupFailed, SrvLookup
from qmf.broker.relay.transfer_link import TransferEnd, TransferLink

#: States of a relay that is none of a link, for people.
PAUSED, PULLED = "Paused", "Waiting"


class Relay:
    """A relay from its creation to its deletion; a `MessageRelay` for observers.

    Attributes:
        definition: what was asked for.
        route: where messages to the domain wait.
        paused: nothing is forwarded, until it is resumed or the broker starts again.
        forwarded: messages that the other broker has accepted.
    """

    kind = RELAY  #: see `MessageRelay`

    def __init__(
        self,
        definition: RelayDefinition,
        queue: Queue,
        federation: BrokerFederation,
        lookup: SrvLookup,
        *,
        timeout: float,
        on_dead_letter: Callable[[str, str], None],
    ) -> None:
        """Make a relay, which forwards after `start`.

        Args:
            federation: of the broker, with its domains.
            lookup: finds brokers in the DNS.
            timeout: seconds that a message may wait.
            on_dead_letter: called with the address of each message that was given up, and the reason.
        """
        services = federation.services
        self.definition = definition
        self.name, self.durable, self.fields = definition.name, definition.durable, definition.fields
        self.domain_name, self.dead_letters = definition.domain, definition.dead_letters
        self.queue = queue
        self.route = RelayRoute(definition.name, queue, timeout)
        self.counters = self.route.counters
        self.paused = False
        self.forwarded = 0
        self.letters = DeadLetters(services.operations, definition.principal, definition.dead_letters, on_dead_letter)
        self._federation = federation
        self._services = services
        self._lookup = lookup
        self._waits = services.backoff
        self._deadlines = Deadlines(queue, self._on_late, self._is_doubtful)
        self._status = LinkStatus(services.clock)
        self._link: TransferLink | None = None
        #: While it is paused: what the last link has sent, and the other broker may have.
        self._suspended: TransferEnd | None = None
        self._search: asyncio.Task[None] | None = None
        self._retried = 0

    # MessageRelay

    @property
    def dead_lettered(self) -> int:
        return self.letters.count

    @property
    def retried(self) -> int:
        return self._retried + (0 if self._link is None else self._link.retried)

    @property
    def state_name(self) -> str:
        if self.paused:
            return PAUSED
        return PULLED if self.definition.waits else self._current.state.value

    @property
    def reason(self) -> str:
        if self.paused:
            return ""
        return "the other broker takes the messages" if self.definition.waits else self._current.reason

    @property
    def since(self) -> float:
        return self._current.since

    @property
    def _current(self) -> LinkStatus:
        return self._status if self._link is None else self._link.status

    # Beginning and end

    def check(self) -> None:
        """See whether its creator may do what it does.

        Raises:
            ForwardingError: its domain is missing.
            OperationRefused: the policy refuses it.
        """
        operations, definition = self._services.operations, self.definition
        operations.consume(definition.principal, self.queue)
        if (letters := operations.registry.queue(definition.dead_letters)) is not None:
            operations.publisher(definition.principal).grant(letters)
        if definition.domain:
            self._federation.domains.find(definition.domain)

    def start(self) -> None:
        """Forward messages from now on, and give up those that have waited too long."""
        self._deadlines.start()
        self.resume()

    def resume(self) -> None:
        """Forward messages from now on."""
        self.paused = False
        definition = self.definition
        if definition.waits or self._link is not None or self._search is not None or self._status.ended:
            return
        if definition.srv:
            self._search = asyncio.get_running_loop().create_task(self._follow_dns())
            return
        try:
            self._connect(self._federation.domains.find(definition.domain))
        except ForwardingError as error:
            self.fail(str(error))

    def pause(self) -> Coroutine[Any, Any, None]:
        """Forward nothing from now on: messages wait. Returns what closes the connection."""
        self.paused = True
        if self._link is not None:
            self._suspended = self._link.suspend()
        return self._disconnect()

    def fail(self, reason: str) -> None:
        """It cannot go on."""
        if self._link is not None:
            self._link.fail(reason)
        elif not self._status.ended:
            self._status.change(PeerLinkTrigger.FAIL, reason)

    def remove(self) -> Coroutine[Any, Any, None]:
        """It is deleted: messages stay in the transmission queue. Returns what closes the connection."""
        if self._link is not None:
            self._link.remove()
        elif self._suspended is not None and self._suspended.unsettled:
            self._suspended.give_up(self._services.operations.registry, self.definition.who, TransferLink.DELETED)
        return self.close()

    async def close(self) -> None:
        """End it, because it is deleted or the broker ends; messages stay in the transmission queue."""
        self._deadlines.stop()
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            suspended.on_detached()
        await self._disconnect()

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted."""
        if node is self.queue:
            self.fail(f"queue {node.name!r} was deleted")

    def on_policy_changed(self) -> None:
        """Other rules apply."""
        try:
            self.check()
        except (ForwardingError, OperationRefused) as error:
            self.fail(str(error))

    # Details

    def _connect(self, domain: Domain) -> None:
        self._link = TransferLink(
            self.definition, domain, self._services, on_unsent=self._give_up, on_forwarded=self._on_forwarded
        )
        suspended, self._suspended = self._suspended, None
        self._link.continue_with(suspended)
        self._link.start()

    def _disconnect(self) -> Coroutine[Any, Any, None]:
        search, self._search = self._search, None
        link, self._link = self._link, None
        if link is not None:
            self._retried += link.retried
        return _close(search, link)

    async def _follow_dns(self) -> None:
        """Look the broker up, again and again, and connect to where it is."""
        waits = self._waits.delays()
        while True:
            try:
                found = await self._lookup.find(self.name)
            except LookupFailed as error:
                if self._link is None:
                    self._status.change(PeerLinkTrigger.LOSE, str(error))
                await asyncio.sleep(next(waits))
                continue
            properties = {**self.definition.login, "url": [str(url) for url in found.urls]}
            domain = read_domain(self.name, properties)
            if self._link is None:
                self._connect(domain)
            else:
                self._link.use(domain)
            waits = self._waits.delays()
            await asyncio.sleep(found.lifetime)

    def _on_forwarded(self, count: int) -> None:
        self.forwarded += count

    def _give_up(self, letters: Sequence[tuple[Entry, str]]) -> None:
        self.letters.give_up(self.queue, letters, self._keep)

    def _keep(self, entries: Sequence[Entry], reason: str) -> None:
        """Messages cannot be given up: the link waits, and they with it."""
        if self._link is not None:
            self._link.drop(reason)
        else:
            self._status.change(PeerLinkTrigger.LOSE, reason)
        self.queue.delivery.put_back(entries)

    @property
    def _kept(self) -> TransferEnd | None:
        """What a lost connection has left."""
        return self._suspended if self._link is None else self._link.suspended

    def _is_doubtful(self, entry: Entry) -> bool:
        return (kept := self._kept) is not None and kept.is_doubtful(entry)

    def _on_late(self, entries: Sequence[Entry]) -> None:
        last = f": {self.reason}" if self.reason else ""
        letters: list[tuple[Entry, str]] = []
        for entry in entries:
            reason = f"its time was over before it could be forwarded{last}"
            if entry.state is AVAILABLE:
                self.queue.contents.acquire(entry, None)
            elif (kept := self._kept) is not None:
                kept.forget(entry)
                reason = f"its time was over, and the other broker may have it, which did not answer{last}"
            letters.append((entry, reason))
        self._give_up(letters)


async def _close(search: asyncio.Task[None] | None, link: TransferLink | None) -> None:
    if search is not None:
        search.cancel()
        await asyncio.gather(search, return_exceptions=True)
    if link is not None:
        await link.close()
