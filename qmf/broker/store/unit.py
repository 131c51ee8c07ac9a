"""What is written together: a unit is on the disk whole, or not at all."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import attrs


class DefinitionKind(enum.Enum):
    """What a definition defines; the value is in the file."""

    QUEUE = "queue"
    EXCHANGE = "exchange"
    BINDING = "binding"
    SUBSCRIPTION = "subscription"
    TOPIC = "topic"
    QUEUE_POLICY = "queue policy"
    TOPIC_POLICY = "topic policy"
    DOMAIN = "domain"
    INCOMING = "incoming"
    OUTGOING = "outgoing"
    LINK = "link"
    BRIDGE = "bridge"
    REMEMBERED_LINK = "remembered link"
    RELAY = "relay"
    QUEUE_LINK = "queuelink"


@attrs.frozen
class StoredMessage:
    """A message in a queue of the store.

    Attributes:
        id: unique in the store; larger than those of all earlier ones.
        queue: id of its queue's definition.
        position: order in the queue.
        expires: seconds since 1970 at which its time to live ends; None for never.
        data: the encoded message.
        deliver: seconds since 1970 from which on it may be delivered; None for at once.
        format: of its transfer, in 32 bits.
    """

    id: int
    queue: int
    position: int
    expires: float | None
    data: bytes
    deliver: float | None = None
    format: int = 0


@attrs.frozen
class Definition:
    """A node or another thing that is there again after a start.

    Attributes:
        id: unique in the store.
        kind: what is defined.
        name: unique among those of its kind.
        fields: names and AMQP values.
    """

    id: int
    kind: DefinitionKind
    name: str
    fields: Mapping[str, object]


@attrs.frozen
class Acceptances:
    """Messages that came on a remembered link together.

    Attributes:
        link: id of the link's definition.
        number: unique among those of the link that are kept.
        tags: numbers of the messages, in 64 bits.
    """

    link: int
    number: int
    tags: Sequence[int]


@attrs.define(eq=False)
class Unit:
    """Changes that belong together. Within a unit definitions come first, then messages, then those that are changed,
    then removals.

    Attributes:
        defined: definitions to write; one of the same id is replaced.
        undefined: ids of definitions to remove, with the messages of those that are queues.
        messages: to write.
        changed: ids of messages with their new data; of those that are gone, nothing is written.
        removed: ids of messages to remove.
        accepted: messages that came on remembered links.
        confirmed: those of them whose senders know that: link and number of each.
        lasting: the unit is tried again until it is written: what was acknowledged or deleted is gone from the
            broker already. Others fail once.
    """

    defined: list[Definition] = attrs.field(factory=list)
    undefined: list[int] = attrs.field(factory=list)
    messages: list[StoredMessage] = attrs.field(factory=list)
    changed: list[tuple[int, bytes]] = attrs.field(factory=list)
    removed: list[int] = attrs.field(factory=list)
    accepted: list[Acceptances] = attrs.field(factory=list)
    confirmed: list[tuple[int, int]] = attrs.field(factory=list)
    lasting: bool = False

    @property
    def frees(self) -> bool:
        """True if the unit only removes, which a full disk must not prevent."""
        return not self.messages and not self.defined and not self.changed

    @property
    def only_changes(self) -> bool:
        """True if nothing but messages is changed."""
        return not (self.defined or self.undefined or self.messages or self.removed)

    def __bool__(self) -> bool:
        return bool(self.defined or self.undefined or self.messages or self.changed or self.removed or self.confirmed)
