"""What the links of senders and receivers have in common: an address, and what it asks of the broker."""

from __future__ import annotations

import abc
import asyncio
import itertools
import uuid
from collections.abc import Callable, Mapping
from typing import Protocol

from qmf.bus.client.link_state import LinkState
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.client.persistent_link import PersistentLink
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Outcome
from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import NodeType, Reliability
from qmf.messaging.bindings import bindings_of
from qmf.messaging.core import management
from qmf.messaging.core.failures import attach_error, detach_error
from qmf.messaging.core.reporting import ErrorHandler, Reporter
from qmf.messaging.core.waiting import Condition
from qmf.messaging.exceptions import LinkClosed, LinkError, MessagingError, Timeout
from qmf.messaging.resolution import (
    binds_by_management,
    check_assertion,
    check_subject,
    deletes_by_management,
    has_queue_of_its_name,
    is_exchange,
    resolve,
)

#: Errors of brokers for a subscription that another link has: the embedded broker and Artemis; qpidd.
_HELD = ("amqp:resource-locked", "amqp:internal-error")
#: Seconds between attempts to get it back, and how many there are.
_RETRY_INTERVAL, _MAX_RETRIES = 0.5, 240


class LinkSession(Protocol):
    """What the link of a sender or receiver needs of its session."""

    condition: Condition
    closed: bool

    @property
    def failed(self) -> bool:
        """True if session or connection cannot be used."""

    def check(self) -> None:
        """Raise the error of session or connection, if there is one."""

    def report(self, source: Reporter, error: MessagingError) -> None:
        """Pass an error to the program's handler."""

    def forget(self, link: AddressedLink) -> None:
        """The link is closed."""


class AddressedLink(PersistentLink):
    """The link of a sender or receiver. It is attached again on the next connection, but not if the broker ends it.

    Attributes:
        address: as the program gave it.
        node: the same; of a temporary node the address that the broker gave it.
        error: why it failed, or None.
        endpoint, on_error: see `Reporter`.
        resumable: True with exactly-once: the link is resumed after the loss of a connection.
    """

    _sending: bool
    #: What the program calls it.
    _kind: str

    __slots__ = (
        "_attempts",
        "_binding",
        "_id",
        "_lasting",
        "_name",
        "_retries",
        "_session",
        "_settled",
        "address",
        "endpoint",
        "error",
        "node",
        "on_error",
        "resumable",
    )

    def __init__(self, session: LinkSession, address: str) -> None:
        super().__init__()
        self.address = self.node = Address(address)
        self.error: MessagingError | None = None
        self.endpoint: object = self
        self.on_error: ErrorHandler | None = None
        self._session = session
        self._name: str | None = None
        self._settled = False
        #: Whether the broker keeps a subscription for the link.
        self._lasting = False
        #: How often the link may be asked for again, when the broker may have noticed the loss of the last connection.
        self._retries = 0
        self.resumable = self.address.options.link.reliability is Reliability.EXACTLY_ONCE
        #: Identifies the link over connections, if it can be resumed.
        self._id = uuid.uuid4().hex
        self._attempts = itertools.count()
        #: Makes the bindings of the address by the broker's management.
        self._binding: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<{self._kind} {self.address!s} {self._state.value}>"

    @property
    def condition(self) -> Condition:
        """What wakes up those that wait on the connection."""
        return self._session.condition

    @property
    def attaching(self) -> bool:
        """True while an answer of the broker is awaited, or there is no connection."""
        return self._binding is not None or self._state in (LinkState.DETACHED, LinkState.ATTACHING, LinkState.PAUSED)

    def check(self) -> None:
        """Raise why the link cannot be used.

        Raises:
            MessagingError: it failed, or its session or connection did.
            LinkClosed: it was closed, by itself or with its session.
        """
        if self.error is not None:
            raise self.error
        if self.closed:
            raise self.closed_error()
        self._session.check()

    def closed_error(self) -> MessagingError:
        """The error of a link that was closed."""
        return LinkClosed(text=f"{self._kind.lower()} of {self.address.name!r} is closed")

    def perform(self, action: Callable[[], object]) -> None:
        """Call one of the link's methods, and write at once what it sends, not at the end of this turn."""
        if self._network is None:
            action()
        else:
            self._network.transport.perform(action)

    # For the session

    def attach(self, network: NetworkConnection, session: EngineSession | None = None) -> None:
        """See `PersistentLink`."""
        try:
            super().attach(network, session)
        except MessagingError as error:
            self.fail(error)

    def _request(self, network: NetworkConnection, session: EngineSession | None) -> Link:
        peer = network.peer
        request = resolve(self.address, sending=self._sending, product=peer.product, capabilities=peer.capabilities)
        self._name = self._name or request.name
        self._settled, self._lasting = request.settled, request.lasting
        return network.engine.links.attach(
            self._name,
            is_sender=self._sending,
            terminus=request.terminus,
            presettled=request.settled,
            unsettled=request.unsettled,
            session=session,
            properties=request.properties,
            resumption=Resumption(self._id, self.unsettled_outcomes(), next(self._attempts))
            if self.resumable
            else None,
        )

    def lose(self) -> None:
        """See `PersistentLink`."""
        super().lose()
        self._stop_binding()

    def fail(self, error: MessagingError, *, with_session: bool = False) -> None:
        """The link cannot be used any more; `with_session`: as its session, whose handler learns of it."""
        if self._state in (LinkState.FAILED, LinkState.CLOSED):
            return
        self._fail()
        self.error = error
        if not with_session:
            self._session.report(self, error)
        self._session.condition.notify()

    def close(self) -> asyncio.Future[None] | None:
        """See `PersistentLink`."""
        confirmed = super().close()
        self._stop_binding()
        self._session.forget(self)
        self._session.condition.notify()
        return confirmed

    def close_with_session(self) -> None:
        """`close`; the session ends next. A durable subscription stays then, because its link is not closed.

        (qpidd would end the subscription even when the link is only detached.)
        """
        if self.address.options.link.durable and self._network is not None and self._link is not None:
            self._network.remove_owner(self._link)
            self._link = None
        self.close()

    def _stop_binding(self) -> None:
        binding, self._binding = self._binding, None
        if binding is not None:
            binding.cancel()

    @property
    def deletes_node(self) -> bool:
        """True if closing the link deletes the node by the broker's management."""
        if self._network is None or not self.attached:
            return False
        return deletes_by_management(self.address, sending=self._sending, product=self._network.peer.product)

    async def close_and_delete(self, deadline: float | None) -> None:
        """Close the link, and delete the node if the address asks for it.

        Raises:
            Timeout: the broker has not answered by the deadline.
            MessagingError: the broker has not deleted the node.
        """
        network = self._network if self.deletes_node else None
        self.close()
        if network is not None:
            try:
                async with asyncio.timeout_at(deadline):
                    await management.delete(network, self.node.name, self.address.options.node.type)
            except TimeoutError:
                raise Timeout(f"no answer to the deletion of {self.node.name!r} in time") from None

    # LinkOwner

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        link, network = self._link, self._network
        assert link is not None
        assert network is not None
        try:
            check_assertion(self.address, link)
            check_subject(self.address, link)
            if self.resumable:
                self._check_resumption(link)
        except MessagingError as error:
            self._detach_link()
            self.fail(error)
            return
        self._retries = _MAX_RETRIES
        terminus = link.target if self._sending else link.source
        if self.address.temporary and terminus is not None and terminus.address:
            self.node = Address.of(terminus.address)
        super().on_attached()
        if binds_by_management(self.address, network.peer.product):
            self._binding = asyncio.get_running_loop().create_task(self._bind(network))
        self._session.condition.notify()

    def _check_resumption(self, link: Link) -> None:
        """Raise if the broker does not know what became of messages."""
        if link.resumption is None:
            raise LinkError(text=f"the broker does not resume the link to {self.address.name!r}")
        if not link.resumption.resumed and (count := self.discard_unknown()):
            raise LinkError(
                text=f"the broker no longer has the state of the link to {self.address.name!r}: "
                f"what became of {count} messages is unknown"
            )

    async def _bind(self, network: NetworkConnection) -> None:
        try:
            for binding in bindings_of(self.address, self.node.name, self._subscription_queue(network)):
                await management.bind(network, binding)
        except MessagingError as error:
            if network is self._network:
                self._detach_link()
                self.fail(error)
        finally:
            if self._binding is asyncio.current_task():
                self._binding = None
            self._session.condition.notify()

    def _subscription_queue(self, network: NetworkConnection) -> str | None:
        """The name of the queue of a receiver from an exchange of qpidd."""
        options = self.address.options
        if self._sending or self._link is None or not options.link.bindings:
            return None
        if options.node.type is not NodeType.TOPIC and not is_exchange(self._link):
            return None
        if has_queue_of_its_name(self.address, network.peer.product):
            return self._name
        return f"{network.engine.settings.container}_{self._name}"

    def _on_ended(self, condition: str, description: str) -> float | None:
        if not self.attached and self._lasting and self._retries and condition in _HELD:
            # The last connection's link may still hold the subscription, until the broker notices that it is gone.
            self._retries -= 1
            return _RETRY_INTERVAL
        if self.attached:
            self.fail(detach_error(self.address.name, condition, description))
        else:
            self.fail(attach_error(self.address, condition, description))
        return None

    # With exactly-once

    @abc.abstractmethod
    def unsettled_outcomes(self) -> Mapping[int, Outcome | None]:
        """The deliveries that are not settled, by delivery tag."""

    @abc.abstractmethod
    def discard_unknown(self) -> int:
        """The broker knows of no delivery. Forget those for which that is no loss; returns the number of the others."""

    @abc.abstractmethod
    async def finish(self, timeout: float | None = None) -> None:
        """Wait until everything is settled that has to be before the link is closed."""
