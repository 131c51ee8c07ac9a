"""Addresses of other brokers, ``name@domain``: messages to them wait in the transmission queue of the domain."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakValueDictionary

import attrs

from qmf.broker.nodes.bindings import Binding, BindingRefused, BindingSpec
from qmf.broker.nodes.counters import ExchangeCounters
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message, with_time_left
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.sections import read_annotation
from qmf.codec import amqp10
from qmf.codec.types import Int64, Symbol
from qmf.errors import DecodeError

#: Message annotations of a message that waits in a transmission queue: its address, the user who sent it (empty for one
#: who has not logged in), the time until which it may wait, in milliseconds since 1970, and when its time to live ends.
RELAY_TO, RELAY_USER, RELAY_UNTIL = "x-opt-relay-to", "x-opt-relay-user", "x-opt-relay-until"
RELAY_EXPIRES = "x-opt-relay-expires"
_WAITING = (RELAY_TO, RELAY_USER, RELAY_UNTIL, RELAY_EXPIRES)

#: And of a dead letter: why it was not forwarded, and when that was given up, in milliseconds since 1970.
RELAY_REASON, RELAY_ENDED = "x-opt-relay-reason", "x-opt-relay-ended"

#: Queue of the messages that could not be forwarded, unless a relay or a link names another one.
DEAD_LETTERS = "relay.dead-letters"

#: Separates the name of a node from its domain.
AT = "@"

#: Domains that stand for this broker.
_HERE = frozenset({"", "localhost"})


@attrs.frozen(eq=False)
class RelayRoute:
    """Where messages to a domain wait.

    Attributes:
        domain: in small letters; empty for all domains that have no route of their own.
        queue: the transmission queue.
        timeout: seconds that a message may wait.
        counters: of the messages that came.
    """

    domain: str
    queue: Queue
    timeout: float
    counters: ExchangeCounters = attrs.field(factory=ExchangeCounters)


class RelayAddress(Exchange):
    """An address in another domain: what is sent to it is put into the transmission queue, with the address.

    Its name is that of the domain, with ``@`` before it: rules about publishing are for that.
    """

    kind = "relay"
    by_subject = False

    def __init__(self, address: str, domain: str, route: RelayRoute, clock: Callable[[], float]) -> None:
        """Make the node of an address.

        Args:
            clock: of the broker, in seconds; times to live end by it.
        """
        super().__init__(f"{AT}{domain}")
        self.address = address
        self.route_of_domain = route
        self.counters = route.counters
        self.prepares = True
        self._clock = clock
        super().bind(route.queue, BindingSpec())

    def bind(self, queue: Queue, spec: BindingSpec) -> bool:  # noqa: ARG002
        """See `Exchange`: nothing can be bound."""
        raise BindingRefused(f"{self.address!r} is in another domain: messages can only be sent to it")

    def prepare(self, message: Message) -> Message:
        """See `Exchange`: the message with its address, its user, and the time until which it waits."""
        now = time.time()
        until = now + self.route_of_domain.timeout
        expires: Int64 | None = None
        if message.expires_at is not None:
            end = now + message.expires_at - self._clock()
            until = min(until, end)
            expires = Int64(round(end * 1000))
        values: dict[Symbol, object] = {
            Symbol(RELAY_TO): self.address,
            Symbol(RELAY_USER): _user(message),
            Symbol(RELAY_UNTIL): Int64(round(until * 1000)),
        }
        if expires is not None or message.origin is None:  # a dead letter that is sent again begins anew
            values[Symbol(RELAY_EXPIRES)] = expires
        stamped = message.with_annotations(amqp10.encode(values))
        if stamped is not message:  # the queue would drop it in the end, where the relay says why
            stamped.expires_at = None
        return stamped

    def _matching(self, message: Message) -> Sequence[Binding]:  # noqa: ARG002
        return self.all_bindings()


class RelayTable:
    """The domains of other brokers to which a broker relays.

    Attributes:
        routes: by domain.
        parked: for the other domains; None to refuse them.
    """

    def __init__(self, local: Sequence[str], clock: Callable[[], float]) -> None:
        """Make a table without domains; `local`: further domains that stand for this broker."""
        self.routes: dict[str, RelayRoute] = {}
        self.parked: RelayRoute | None = None
        self._local = _HERE | {normal_domain(name) for name in local}
        self._clock = clock
        #: Those that links or messages have, by address.
        self._addresses: WeakValueDictionary[str, RelayAddress] = WeakValueDictionary()

    def split(self, address: str) -> tuple[str, str] | None:
        """Name and domain of an address; None for an address without a domain."""
        name, at, domain = address.rpartition(AT)
        return (name, normal_domain(domain)) if at and name else None

    def is_local(self, domain: str) -> bool:
        """True if a domain stands for this broker."""
        return domain in self._local

    def find(self, address: str) -> RelayAddress | None:
        """The node of an address in another domain; None where messages to that are refused."""
        parts = self.split(address)
        route = None if parts is None else self.routes.get(parts[1], self.parked)
        if parts is None or route is None:
            return None
        found = self._addresses.get(address)
        if found is None or found.route_of_domain is not route:
            found = self._addresses[address] = RelayAddress(address, parts[1], route, self._clock)
        return found

    def has(self, node: object) -> bool:
        """True unless the node is another one, or messages to its domain go elsewhere meanwhile."""
        return isinstance(node, RelayAddress) and self.find(node.address) is node

    def addresses_of(self, route: RelayRoute) -> Sequence[RelayAddress]:
        """The addresses in use that a route has."""
        return [each for each in self._addresses.values() if each.route_of_domain is route]


def normal_domain(name: str) -> str:
    """A domain as it is compared: in small letters, without a point at its end."""
    return name.lower().rstrip(".")


def relay_annotations(message: Message) -> Mapping[str, object]:
    """The annotations of a message that waits in a transmission queue; those are missing that it does not have."""
    if message.opaque:
        return {}
    try:
        found = {name: read_annotation(message.data, name) for name in _WAITING}
    except DecodeError:
        return {}
    return {name: value for name, value in found.items() if value is not None}


def data_to_forward(message: Message) -> bytes:
    """A message that waits in a transmission queue, with what is left of its time to live, as it is sent."""
    expires = relay_annotations(message).get(RELAY_EXPIRES)
    return with_time_left(message.data, expires / 1000 - time.time()) if isinstance(expires, int) else message.data


def _user(message: Message) -> str:
    """Who has sent a message, as far as that was proven; a transfer agent may name the user of another broker."""
    if message.origin is None:  # the broker itself, which moves a message that it was sent before
        return str(relay_annotations(message).get(RELAY_USER, ""))
    proven = message.origin.proven_user
    return message.user_id.decode("utf-8", "replace") if proven and message.user_id else proven
