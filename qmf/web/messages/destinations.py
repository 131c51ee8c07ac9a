"""Queues and topics: what URLs name, and their addresses for the messaging API. No I/O."""

from __future__ import annotations

import enum
import re

import attrs

from qmf.messaging.addresses.address import Address, literal
from qmf.web.addresses import to_segment

#: Characters of a name, at most.
MAX_NAME = 255

#: Control characters, and the names with a meaning of their own in addresses.
_INVALID = re.compile(r"[\x00-\x1f\x7f]|\A(?:#|<null>|)\Z")


class DestinationKind(enum.Enum):
    """What a destination is; the first part of its URL."""

    QUEUE = "queues"
    TOPIC = "topics"

    @property
    def noun(self) -> str:
        """Its word in sentences."""
        return self.value[:-1]


@attrs.frozen
class Destination:
    """A queue or topic.

    Attributes:
        kind: which of them.
        name: the broker's.
    """

    kind: DestinationKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.noun} {self.name!r}"

    @property
    def path(self) -> str:
        """The path of its URL, without the first slash; a part of what ids of consumers are checked by."""
        return f"{self.kind.value}/{to_segment(self.name)}"

    @property
    def is_valid(self) -> bool:
        """True if a node may have that name."""
        return len(self.name) <= MAX_NAME and not _INVALID.search(self.name)

    def address(self, *link: str) -> str:
        """The address of the node; `link`: options of the link, such as ``durable: True``."""
        kind = self.kind.noun
        options = f"node: {{type: {kind}}}" + (f", link: {{{', '.join(link)}}}" if link else "")
        return f"{Address.of(self.name)}; {{{options}}}"


def link_options(*, selector: str | None, name: str | None = None, durable: bool = False) -> list[str]:
    """Options of a receiver's link, for `Destination.address`.

    Args:
        selector: condition on the properties of messages; None for all.
        name: of the link; None for any.
        durable: the subscription stays until it is ended.
    """
    found = [] if name is None else [f"name: {literal(name)}"]
    if durable:
        found.append("durable: True")
    if selector is not None:
        found.append(f"selector: {literal(selector)}")
    return found


def subscription_name(destination: Destination, name: str) -> str:
    """The name of the link of a durable subscription; it is one of this topic only."""
    return f"{name}@{destination.name}"
