"""Events of a connection, as `Engine.next_event` returns them: small frozen objects without anything of proton."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome


@attrs.frozen
class Opened:
    """The peer opened the connection, and, of a client, its session: it can be used.

    Attributes:
        container: its container id, or empty.
        capabilities: what it offers.
        properties: what it says of itself, such as `product`.
    """

    container: str
    capabilities: frozenset[str]
    properties: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def product(self) -> str:
        """What it calls itself, or empty."""
        product = self.properties.get("product")
        return product if isinstance(product, str) else ""


@attrs.frozen
class Closed:
    """The peer closed the connection in good order, perhaps for a reason."""

    condition: str
    description: str


@attrs.frozen
class Failed:
    """The connection broke: no AMQP, an error of encoding, silence, or who we are was refused.

    Attributes:
        condition, description: of the error, in proton's or the peer's words.
        authentication: True when SASL ended without success.
    """

    condition: str
    description: str
    authentication: bool = False


@attrs.frozen
class LinkRequested:
    """The peer wants a link; answer with `Engine.accept_link` or `Engine.refuse_link`."""

    link: Link


@attrs.frozen
class LinkAttached:
    """The peer confirmed a link of ours."""

    link: Link


@attrs.frozen
class LinkDetached:
    """A link is gone; nothing can be done with it any more.

    Attributes:
        link: which.
        condition, description: the peer's words; empty when it gave none.
        answer: True when we had detached first and this is the confirmation.
    """

    link: Link
    condition: str
    description: str
    answer: bool


@attrs.frozen
class CreditChanged:
    """The peer said how much it takes on a sending link, or asks to use up its credit (drain)."""

    link: Link


@attrs.frozen
class Delivery:
    """A whole message arrived.

    Attributes:
        link: on which link.
        delivery_tag: to settle it with; None when the peer settled it.
        data: the encoded message.
    """

    link: Link
    delivery_tag: int | None
    data: bytes


@attrs.frozen
class Settled:
    """The peer decided about a message that we sent.

    Attributes:
        link, delivery_tag: which, as `Engine.send` returned it.
        outcome: what it decided.
        condition, description: why not, for a rejected one.
    """

    link: Link
    delivery_tag: int
    outcome: Outcome
    condition: str = ""
    description: str = ""


EngineEvent = (
    Opened | Closed | Failed | LinkRequested | LinkAttached | LinkDetached | CreditChanged | Delivery | Settled
)
