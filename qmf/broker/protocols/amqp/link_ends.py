"""What the broker's ends of links have in common, whichever way the messages go."""

from __future__ import annotations

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.router import Node
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import ExpiryPolicy, Terminus
from qmf.bus.transport import AmqpTransport

#: Seconds for which a suspended link is kept, at most, and for a client that does not say how long.
MAX_TIMEOUT = 3_600
DEFAULT_TIMEOUT = 300


def resumable_terms(link: Link, wanted: Terminus, granted: Terminus) -> Terminus:
    """The terminus of a new link that can be resumed, with the time-out that it gets.

    Raises:
        LinkRefused: its messages are settled at once.
    """
    if link.presettled:
        raise LinkRefused("amqp:not-allowed", "a link whose messages are settled at once cannot be resumed")
    timeout = min(wanted.timeout or DEFAULT_TIMEOUT, MAX_TIMEOUT)
    return attrs.evolve(granted, expiry=ExpiryPolicy.LINK, timeout=timeout)


def querying_link(
    transport: AmqpTransport, link: Link, publisher: Publisher, exchange: Exchange, origin: ClientInfo
) -> IncomingLink:
    """The broker's end of a link to an `xml` exchange."""
    # Imported here, because few brokers have such exchanges.
    from qmf.broker.nodes.xml_exchange import XmlExchange
    from qmf.broker.protocols.amqp.querying import QueryingIncomingLink

    assert isinstance(exchange, XmlExchange)
    return QueryingIncomingLink(transport, link, publisher, exchange, origin=origin)


def node_of(end: IncomingLink | OutgoingLink) -> Node | None:
    """Where a link ends; None for the relay."""
    return end.queue if isinstance(end, OutgoingLink) else end.node
