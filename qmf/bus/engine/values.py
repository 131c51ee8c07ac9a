"""What an engine is configured with, and what it exchanges with its peer, as values: settings, termini, outcomes."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

#: Frames of 64 KiB carry nearly all QMF messages in one transfer, and heartbeats don't wait long behind a large message
#: of another link. qpidd offers the same.
MAX_FRAME = 65536
#: Largest message that is accepted from a peer. QMF's are below 1 MB (100 objects); this only protects memory.
MAX_MESSAGE = 16 * 1024 * 1024


#: Descriptor of the filter of a source that says at which message of a queue its receiver begins: ``head``, ``tail``,
#: or a map with ``time`` or ``sequence``.
START_FILTER = "qmf:start-position:any"
#: Properties of a link to `qmf-broker`: bindings of its node, and of the queue that the client receives from.
NODE_BINDINGS, LINK_BINDINGS = "qmf.node-bindings", "qmf.link-bindings"


@attrs.frozen
class Filter:
    """One entry of a source's filter map.

    Attributes:
        name: key in the map; any symbol.
        descriptor: kind of filter, as symbol or as number.
        value: its argument, as Python value.
    """

    name: str
    descriptor: str | int
    value: object


@attrs.frozen
class DescribedProperty:
    """A described value among the properties of a terminus.

    Attributes:
        descriptor: what the value means, as symbol.
        value: the value itself.
    """

    descriptor: str
    value: object


class Durability(enum.IntEnum):
    """What of a terminus survives a restart of its container (AMQP 1.0, part 3.5.5)."""

    NONE = 0
    CONFIGURATION = 1
    UNSETTLED_STATE = 2


class ExpiryPolicy(enum.Enum):
    """The event that starts the expiry timer of a terminus (AMQP 1.0, part 3.5.6)."""

    LINK = "link-detach"
    SESSION = "session-end"
    CONNECTION = "connection-close"
    NEVER = "never"


@attrs.frozen
class Terminus:
    """One end of a link: its source or its target.

    Attributes:
        address: name of the node; None for the anonymous relay and for dynamic nodes.
        dynamic: the broker shall create a node.
        filters: of a source.
        browse: messages shall stay in the node (distribution mode `copy`).
        coordinator: the terminus is a transaction coordinator.
        capabilities: what is required of the node, in symbols that the broker defines.
        properties: of a dynamic node, by name; values are simple, or `DescribedProperty`.
        durability: what of the terminus survives.
        expiry: the event that starts its expiry timer.
        timeout: seconds of that timer.
    """

    address: str | None = None
    dynamic: bool = False
    filters: tuple[Filter, ...] = ()
    browse: bool = False
    coordinator: bool = False
    capabilities: tuple[str, ...] = ()
    properties: Mapping[str, object] = attrs.field(factory=dict)
    durability: Durability = Durability.NONE
    expiry: ExpiryPolicy = ExpiryPolicy.SESSION
    timeout: int = 0


@attrs.frozen
class ConnectionSettings:
    """What an engine sends in its open, and what it accepts.

    Attributes:
        container: our container id.
        server: True on the accepting side.
        hostname: name of the peer as the user wrote it; None on the accepting side.
        idle_timeout: seconds without a frame after which the peer counts as dead; it is asked for heartbeats at twice
            that rate. None: never.
        max_frame: largest frame, in bytes.
        max_message: largest message, in bytes.
        max_sessions: sessions that the peer may begin; others are ended with an error. 0 for no limit.
        capabilities: offered to the peer.
        properties: of the connection, shown by management tools.
    """

    container: str
    server: bool = False
    hostname: str | None = None
    idle_timeout: float | None = None
    max_frame: int = MAX_FRAME
    max_message: int = MAX_MESSAGE
    max_sessions: int = 0
    capabilities: tuple[str, ...] = ()
    properties: Mapping[str, str | int] = attrs.field(factory=dict)


class Outcome(enum.Enum):
    """The outcome of a message, decided by its receiver."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"  #: it is invalid; carries an error
    RELEASED = "released"  #: it was not processed, and may be delivered again
    MODIFIED = "modified"  #: as released, and something of the message is to be changed
