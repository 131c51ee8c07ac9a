"""What both forms of connections, sessions, senders and receivers have in common: all that waits for nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from qmf.bus.client.network_connection import Dial
from qmf.messaging.addresses import Address
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.core.addressed_link import AddressedLink
from qmf.messaging.core.incoming_link import IncomingLink
from qmf.messaging.core.outgoing_link import OutgoingLink
from qmf.messaging.core.session_core import SessionCore
from qmf.messaging.endpoint import Endpoint, EndpointCore
from qmf.messaging.exceptions import ConnectionClosed
from qmf.messaging.option_attributes import OptionAttributes
from qmf.messaging.options import ConnectionOptions


class _PartCore(EndpointCore, Protocol):
    @property
    def closed(self) -> bool: ...

    def check(self) -> None: ...


PartT = TypeVar("PartT", bound=_PartCore)
LinkT = TypeVar("LinkT", bound=AddressedLink)


class _Part(Endpoint[PartT]):
    """A part of a connection."""

    __slots__ = ()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._core.closed

    def check_error(self) -> None:
        """Raise why this cannot be used, if so."""
        self._core.check()


class ConnectionBase(OptionAttributes):
    """A connection to a broker."""

    __slots__ = ()

    def _dialer(self) -> Dial | None:
        """How the broker is reached, for subclasses; None for TCP."""
        return None

    @property
    def options(self) -> ConnectionOptions:
        """The options as read."""
        return self._core.options

    def opened(self) -> bool:
        """True from `open` to `close`."""
        return self._core.opened

    def attached(self) -> bool:
        """True while there is a network connection."""
        return self._core.network is not None

    def check_error(self) -> None:
        """Raise why the connection failed, if it did."""
        self._core.check_error()

    def check_closed(self) -> None:
        """Raise `ConnectionClosed` unless the connection is open and attached; it may be reconnecting."""
        if not self._core.opened or self._core.detached:
            raise ConnectionClosed(text=self._core.state_text())


class SessionBase(_Part[SessionCore]):
    """A session of a connection.

    Attributes:
        name: unique in its connection.
        transactional: True if sends and acknowledgements take effect with `commit`.
    """

    __slots__ = ("name", "transactional")

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core)
        self.name = core.name
        self.transactional = core.transactions is not None

    @property
    def senders(self) -> list[Any]:
        """The senders that are open, of the form that the session has."""
        return [link.endpoint for link in self._core.senders]

    @property
    def receivers(self) -> list[Any]:
        """The receivers that are open."""
        return [link.endpoint for link in self._core.receivers]

    @property
    def ack_capacity(self) -> int | Constant:
        """Acknowledgements that may wait for the broker's confirmation; 0 for none at all: `InsufficientCapacity`.

        Another number than 0 is no limit: the acknowledgements of one call leave together.
        """
        return self._core.acknowledgements.capacity

    @ack_capacity.setter
    def ack_capacity(self, value: int | Constant) -> None:
        self._core.acknowledgements.capacity = value

    def check_closed(self) -> None:
        """Raise `SessionClosed` after `close`."""
        if self.closed:
            raise self._core.closed_error()

    def set_message_received_handler(self, handler: Callable[[Self], None] | None) -> None:
        """Call `handler` with this session whenever a message arrives.

        The handler runs on the thread of the connection's loop. It must not block, and must not call methods that wait
        for the broker.
        """
        self._core.on_message = None if handler is None else functools.partial(handler, self)


class _LinkEndpoint(_Part[LinkT]):
    """A sender or receiver."""

    __slots__ = ()

    @property
    def linked(self) -> bool:
        """True while the broker has the link: not while the connection is lost, and not after `close`."""
        return self._core.attached

    def check_closed(self) -> None:
        """Raise `LinkClosed` after `close`."""
        if self.closed:
            raise self._core.closed_error()


class SenderBase(_LinkEndpoint[OutgoingLink]):
    """Sends messages to a node."""

    __slots__ = ()

    @property
    def target(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._core.node

    @property
    def capacity(self) -> int | Constant:
        """Messages that may be sent without an answer from the broker; an int, or `UNLIMITED`.

        With 0, `send` raises `InsufficientCapacity`.
        """
        return self._core.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._core.capacity = value

    @property
    def threshold(self) -> float:
        """A part of the capacity. It has no effect: the broker answers each message without being asked to."""
        return self._core.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._core.threshold = value

    @property
    def durable(self) -> bool | None:
        """Whether messages that do not say so themselves are durable; None as False."""
        return self._core.encoder.durable

    @durable.setter
    def durable(self, value: bool | None) -> None:
        self._core.encoder.durable = value

    def unsettled(self) -> int:
        """Number of messages that the broker has not answered yet."""
        return self._core.count_unsettled()

    def available(self) -> int | Constant:
        """Number of messages that can be sent before the capacity is exhausted."""
        capacity = self._core.capacity
        return UNLIMITED if isinstance(capacity, Constant) else max(0, capacity - self._core.count_unsettled())


class ReceiverBase(_LinkEndpoint[IncomingLink]):
    """Receives messages from a node."""

    __slots__ = ()

    @property
    def source(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._core.node

    @property
    def capacity(self) -> int | Constant:
        """Messages that the broker may send before they are fetched; 0: only while a fetch waits for one.

        When it is lowered, messages above it that were not fetched return to the node.
        """
        return self._core.window.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._core.window.resize(value)
        self._call_soon(self._core.adjust)

    @property
    def threshold(self) -> float:
        """Part of the capacity: when so many messages are left to come or to be fetched, the broker may send more.

        From 0 to 1, else there is a `ValueError`.
        """
        return self._core.window.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._core.window.threshold = value
        self._call_soon(self._core.grant)

    def available(self) -> int:
        """Number of messages that have arrived and can be fetched without waiting."""
        return self._core.available()

    def unsettled(self) -> int:
        """Number of messages that were acknowledged and whose acknowledgement the broker has not confirmed yet."""
        return self._core.count_unsettled()

    def _call_soon(self, action: Callable[[], object]) -> None:
        """Call one of the link's methods on the loop's thread."""
        action()
