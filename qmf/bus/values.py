"""What the engine says and is told, as values: nodes, settings and events. No proton object leaves the engine.

Events are small frozen objects; `Link` is the engine's handle of a link, compared by identity.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from qmf.bus.link import Link

#: Frames of 64 KiB carry all but the largest QMF messages in one piece, and keep heartbeats of one link from waiting
#: long behind a large message of another. qpidd offers the same.
MAX_FRAME = 65536
#: Largest message taken from a peer. QMF's are below 1 MB (100 objects); this only protects memory.
MAX_MESSAGE = 16 * 1024 * 1024


@attrs.frozen
class Filter:
    """One entry of a source's filter map.

    Attributes:
        name: key in the map; any symbol.
        descriptor: what kind of filter, as symbol or as number.
        value: its argument, as Python value.
    """

    name: str
    descriptor: str | int
    value: object


@attrs.frozen
class Node:
    """One end of a link: the source or target that a peer named.

    Attributes:
        address: name of the node; None for the anonymous relay and for dynamic nodes.
        dynamic: the broker shall make up a node.
        filters: of a source.
        browse: messages shall stay in the node (distribution mode `copy`).
        coordinator: the node is a transaction coordinator.
        capabilities: what the node is to be able to do, in the words of the broker that is asked.
    """

    address: str | None = None
    dynamic: bool = False
    filters: tuple[Filter, ...] = ()
    browse: bool = False
    coordinator: bool = False
    capabilities: tuple[str, ...] = ()


@attrs.frozen
class Settings:
    """How an engine introduces itself and what it accepts.

    Attributes:
        container: our container id.
        server: True on the accepting side.
        hostname: name of the peer as the user knows it; None on the accepting side.
        idle_timeout: seconds of silence after which the peer counts as dead; it is asked to send something at twice
            that rate. None: never.
        max_frame: largest frame, in bytes.
        max_message: largest message, in bytes.
        mechanisms: SASL mechanisms offered or allowed; None for no SASL layer.
        username, password: for SASL PLAIN.
        capabilities: offered to the peer.
        properties: of the connection, shown by management tools.
    """

    container: str
    server: bool = False
    hostname: str | None = None
    idle_timeout: float | None = None
    max_frame: int = MAX_FRAME
    max_message: int = MAX_MESSAGE
    mechanisms: tuple[str, ...] | None = ("ANONYMOUS",)
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    capabilities: tuple[str, ...] = ()
    properties: Mapping[str, str | int] = attrs.field(factory=dict)


class Outcome(enum.Enum):
    """What became of a message that was sent."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    MODIFIED = "modified"


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
class Incoming:
    """A whole message arrived.

    Attributes:
        link: on which link.
        token: to settle it with; None when the peer settled it.
        data: the encoded message.
    """

    link: Link
    token: int | None
    data: bytes


@attrs.frozen
class Settled:
    """The peer decided about a message that we sent.

    Attributes:
        link, token: which, as `Engine.send` returned it.
        outcome: what it decided.
        condition, description: why not, for a rejected one.
    """

    link: Link
    token: int
    outcome: Outcome
    condition: str = ""
    description: str = ""


EngineEvent = (
    Opened | Closed | Failed | LinkRequested | LinkAttached | LinkDetached | CreditChanged | Incoming | Settled
)
