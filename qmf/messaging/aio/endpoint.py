"""What senders and receivers have in common: an address, a link, and its life over reconnects."""

from __future__ import annotations

import abc
import asyncio
import itertools
import uuid
from collections.abc import Callable, Mapping
from typing import Protocol

from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Outcome
from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import Reliability
from qmf.messaging.aio import management
from qmf.messaging.aio.driver import Driver, LinkOwner
from qmf.messaging.aio.failures import attach_error, detach_error
from qmf.messaging.aio.link_states import TRANSITIONS, LinkState, LinkTrigger
from qmf.messaging.aio.waiting import Condition
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.bindings import bindings_of
from qmf.messaging.exceptions import LinkClosed, LinkError, MessagingError, Timeout
from qmf.messaging.resolution import (
    binds_by_management,
    check_assertion,
    check_subject,
    deletes_by_management,
    resolve,
)

#: Errors of brokers for a subscription that another link has: the embedded broker and Artemis; qpidd.
_HELD = ("amqp:resource-locked", "amqp:internal-error")
#: Seconds between attempts to get it back, and how many there are.
_RETRY_INTERVAL, _MAX_RETRIES = 0.5, 240


class EndpointSession(Protocol):
    """What an endpoint needs of its session."""

    condition: Condition

    @property
    def failed(self) -> bool:
        """True if session or connection cannot be used."""

    def check(self) -> None:
        """Raise the error of session or connection, if there is one."""

    def report(self, endpoint: object, error: MessagingError) -> None:
        """Pass an error that no call waits for to the program's handler."""

    def forget(self, endpoint: object) -> None:
        """The endpoint is closed."""


class Endpoint(FixedAttributes, LinkOwner, abc.ABC):
    """A sender or receiver.

    Attributes:
        address: as the program gave it.
        node: the same; of a temporary node the address that the broker gave it.
        error: why it failed, or None.
        resumable: True with exactly-once: the link is resumed after the loss of a connection.
    """

    _sending: bool

    __slots__ = (
        "_attempts",
        "_binding",
        "_driver",
        "_engine_session",
        "_id",
        "_lasting",
        "_link",
        "_name",
        "_retries",
        "_retry",
        "_session",
        "_settled",
        "_state",
        "address",
        "error",
        "node",
        "resumable",
    )

    def __init__(self, session: EndpointSession, address: str) -> None:
        self.address = self.node = Address(address)
        self.error: MessagingError | None = None
        self._session = session
        self._state = LinkState.DETACHED
        self._driver: Driver | None = None
        self._link: Link | None = None
        self._name: str | None = None
        self._settled = False
        #: Whether the broker keeps a subscription for the link.
        self._lasting = False
        self._engine_session: EngineSession | None = None
        #: How often the link may be asked for again, and the next time: when the broker may have noticed the loss of
        #: the last connection.
        self._retries = 0
        self._retry: asyncio.TimerHandle | None = None
        self.resumable = self.address.options.link.reliability is Reliability.EXACTLY_ONCE
        #: Identifies the link over connections, if it can be resumed.
        self._id = uuid.uuid4().hex
        self._attempts = itertools.count()
        #: Makes the bindings of the address by the broker's management.
        self._binding: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address!s} {self._state.value}>"

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._state is LinkState.CLOSED

    @property
    def attaching(self) -> bool:
        """True while an answer of the broker is awaited, or there is no connection."""
        return self._state in (LinkState.DETACHED, LinkState.ATTACHING) or self._binding is not None

    def check(self) -> None:
        """Raise why the endpoint cannot be used.

        Raises:
            MessagingError: it failed, or its session or connection did.
            LinkClosed: it was closed.
        """
        if self.error is not None:
            raise self.error
        self._session.check()
        if self._state is LinkState.CLOSED:
            raise LinkClosed(text=f"{type(self).__name__.lower()} of {self.address.name!r} is closed")

    def perform(self, action: Callable[[], object]) -> None:
        """Call one of the endpoint's methods, and write at once what it sends, not at the end of this turn."""
        if self._driver is None:
            action()
        else:
            self._driver.transport.perform(action)

    # For the session

    def attach(self, driver: Driver, session: EngineSession) -> None:
        """Ask the broker for the link."""
        if self._state is not LinkState.DETACHED:
            return
        self._state = TRANSITIONS.next(self._state, LinkTrigger.ATTACH)
        try:
            request = resolve(
                self.address, sending=self._sending, product=driver.product, capabilities=driver.capabilities
            )
        except MessagingError as error:
            self.fail(error)
            return
        self._name = self._name or request.name
        self._settled, self._lasting = request.settled, request.lasting
        self._driver, self._engine_session = driver, session
        self._link = driver.engine.attach(
            self._name,
            is_sender=self._sending,
            terminus=request.terminus,
            presettled=request.settled,
            unsettled=request.unsettled,
            session=session,
            properties=request.properties,
            resumption=Resumption(self._id, self.listed(), next(self._attempts)) if self.resumable else None,
        )
        driver.own(self._link, self)
        driver.transport.flush_soon()

    def lose(self) -> None:
        """The connection is gone."""
        self._state = TRANSITIONS.next(self._state, LinkTrigger.LOST)
        self._driver = self._link = self._engine_session = None
        self._stop_binding()
        self._stop_retry()

    def _stop_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _stop_binding(self) -> None:
        binding, self._binding = self._binding, None
        if binding is not None:
            binding.cancel()

    def fail(self, error: MessagingError) -> None:
        """The endpoint cannot be used any more."""
        if self._state in (LinkState.FAILED, LinkState.CLOSED):
            return
        self._stop_retry()
        waited_for = self._state is LinkState.ATTACHING
        self._state = TRANSITIONS.next(self._state, LinkTrigger.FAIL)
        self.error = error
        self._driver = self._link = None
        if not waited_for:
            self._session.report(self, error)
        self._session.condition.notify()

    def detach(self, *, with_session: bool = False) -> None:
        """Close the link without waiting for the broker.

        Args:
            with_session: the session ends next. A durable subscription stays then, because its link is not closed.
                (qpidd would end the subscription even when the link is only detached.)
        """
        if not (with_session and self.address.options.link.durable):
            self._detach_link()
        self._stop_binding()
        self._stop_retry()
        self._state = TRANSITIONS.next(self._state, LinkTrigger.CLOSE)
        self._driver = self._link = None
        self._session.forget(self)
        self._session.condition.notify()

    @property
    def deletes_node(self) -> bool:
        """True if closing the link deletes the node by the broker's management."""
        driver = self._driver
        if driver is None or self._state is not LinkState.ATTACHED:
            return False
        return deletes_by_management(self.address, sending=self._sending, product=driver.product)

    async def close_link(self, deadline: float | None) -> None:
        """Close the link, and delete the node if the address asks for it.

        Raises:
            Timeout: the broker has not answered by the deadline.
            MessagingError: the broker has not deleted the node.
        """
        driver = self._driver if self.deletes_node else None
        self.detach()
        if driver is not None:
            try:
                async with asyncio.timeout_at(deadline):
                    await management.delete(driver, self.node.name)
            except TimeoutError:
                raise Timeout(f"no answer to the deletion of {self.node.name!r} in time") from None

    def _detach_link(self) -> None:
        if self._link is not None and self._driver is not None:
            self._driver.disown(self._link)
            self._driver.engine.detach(self._link)
            self._driver.transport.flush_soon()

    # LinkOwner

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        assert self._link is not None
        try:
            check_assertion(self.address, self._link)
            check_subject(self.address, self._link)
            if self.resumable:
                self._check_resumption(self._link)
        except MessagingError as error:
            assert self._driver is not None
            self._driver.disown(self._link)
            self._driver.engine.detach(self._link)
            self.fail(error)
            return
        self._state, self._retries = TRANSITIONS.next(self._state, LinkTrigger.GRANTED), _MAX_RETRIES
        terminus = self._link.target if self._sending else self._link.source
        if self.address.temporary and terminus is not None and terminus.address:
            self.node = Address.of(terminus.address)
        self.granted(self._link)
        driver = self._driver
        if driver is not None and binds_by_management(self.address, driver.product):
            self._binding = asyncio.get_running_loop().create_task(self._bind(driver))
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

    async def _bind(self, driver: Driver) -> None:
        try:
            for binding in bindings_of(self.address, self.node.name):
                await management.bind(driver, binding)
        except MessagingError as error:
            if driver is self._driver:
                self._detach_link()
                self.fail(error)
        finally:
            if self._binding is asyncio.current_task():
                self._binding = None
            self._session.condition.notify()

    def on_detached(self, condition: str, description: str) -> None:
        """See `LinkOwner`."""
        attaching = self._state is LinkState.ATTACHING
        if attaching and self._lasting and self._retries and condition in _HELD:
            self._attach_later()
            return
        make = attach_error if attaching else detach_error
        self.fail(make(self.address.name, condition, description))

    def _attach_later(self) -> None:
        """The last connection's link may still hold the subscription, until the broker notices that it is gone."""
        driver, session = self._driver, self._engine_session
        assert driver is not None
        assert session is not None
        self._retries -= 1
        self._state = TRANSITIONS.next(self._state, LinkTrigger.LOST)
        self._driver = self._link = None
        self._retry = asyncio.get_running_loop().call_later(_RETRY_INTERVAL, self.attach, driver, session)

    # With exactly-once

    @abc.abstractmethod
    def listed(self) -> Mapping[int, Outcome | None]:
        """The deliveries that are not settled, by delivery tag."""

    @abc.abstractmethod
    def discard_unknown(self) -> int:
        """The broker knows of no delivery. Forget those for which that is no loss; returns the number of the others."""

    @abc.abstractmethod
    async def finish(self, timeout: float | None = None) -> None:
        """Wait until everything is settled that has to be before the link is closed."""

    # For LinkOwner

    @abc.abstractmethod
    def granted(self, link: Link) -> None:
        """The link can be used."""
