"""What senders and receivers have in common: an address, a link, and its life over reconnects."""

from __future__ import annotations

import abc
from typing import Protocol

from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.messaging.addresses import Address
from qmf.messaging.aio.driver import Driver, LinkOwner
from qmf.messaging.aio.failures import attach_error, detach_error
from qmf.messaging.aio.link_states import LinkState, LinkTrigger, next_state
from qmf.messaging.aio.waiting import Condition
from qmf.messaging.exceptions import LinkClosed, MessagingError
from qmf.messaging.resolution import check_assertion, check_subject, resolve


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


class Endpoint(LinkOwner, abc.ABC):
    """A sender or receiver.

    Attributes:
        address: as the program gave it.
        node: the same; of a temporary node the address that the broker gave it.
        error: why it failed, or None.
    """

    _sending: bool

    def __init__(self, session: EndpointSession, address: str) -> None:
        self.address = self.node = Address(address)
        self.error: MessagingError | None = None
        self._session = session
        self._state = LinkState.DETACHED
        self._driver: Driver | None = None
        self._link: Link | None = None
        self._name: str | None = None
        self._settled = False
        self._asserted = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address!s} {self._state.value}>"

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._state is LinkState.CLOSED

    @property
    def attaching(self) -> bool:
        """True while the broker's answer is awaited, or there is no connection."""
        return self._state in (LinkState.DETACHED, LinkState.ATTACHING)

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

    # For the session

    def attach(self, driver: Driver, session: EngineSession) -> None:
        """Ask the broker for the link."""
        if self._state is not LinkState.DETACHED:
            return
        self._state = next_state(self._state, LinkTrigger.ATTACH)
        try:
            request = resolve(self.address, sending=self._sending, product=driver.product)
        except MessagingError as error:
            self.fail(error)
            return
        self._name = self._name or request.name
        self._settled = request.settled
        self._driver = driver
        self._link = driver.engine.attach(
            self._name,
            is_sender=self._sending,
            terminus=request.terminus,
            presettled=request.settled,
            session=session,
        )
        driver.own(self._link, self)
        driver.transport.flush_soon()

    def lose(self) -> None:
        """The connection is gone."""
        self._state = next_state(self._state, LinkTrigger.LOST)
        self._driver = self._link = None

    def fail(self, error: MessagingError) -> None:
        """The endpoint cannot be used any more."""
        if self._state in (LinkState.FAILED, LinkState.CLOSED):
            return
        waited_for = self._state is LinkState.ATTACHING
        self._state = next_state(self._state, LinkTrigger.FAIL)
        self.error = error
        self._driver = self._link = None
        if not waited_for:
            self._session.report(self, error)
        self._session.condition.notify()

    def detach(self) -> None:
        """Close the link without waiting for the broker."""
        if self._link is not None and self._driver is not None:
            self._driver.disown(self._link)
            self._driver.engine.detach(self._link)
            self._driver.transport.flush_soon()
        self._state = next_state(self._state, LinkTrigger.CLOSE)
        self._driver = self._link = None
        self._session.forget(self)
        self._session.condition.notify()

    # LinkOwner

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        assert self._link is not None
        try:
            check_assertion(self.address, self._link)
            check_subject(self.address, self._link)
        except MessagingError as error:
            assert self._driver is not None
            self._driver.disown(self._link)
            self._driver.engine.detach(self._link)
            self.fail(error)
            return
        self._state = next_state(self._state, LinkTrigger.GRANTED)
        terminus = self._link.target if self._sending else self._link.source
        if self.address.temporary and terminus is not None and terminus.address:
            self.node = Address.of(terminus.address)
        self.granted(self._link)
        self._session.condition.notify()

    def on_detached(self, condition: str, description: str) -> None:
        """See `LinkOwner`."""
        make = attach_error if self._state is LinkState.ATTACHING else detach_error
        self.fail(make(self.address.name, condition, description))

    @abc.abstractmethod
    def granted(self, link: Link) -> None:
        """The link can be used."""
