"""All links of the broker that can be resumed: those that are attached, and those that wait for their client.

A link is suspended when its connection is lost or the client detaches it without closing it. It is given up when its
time-out has passed, or when suspended links are too many or hold too much: its messages return to their queue, and a
client that comes back gets a new link. Everything is in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import attrs

from qmf.broker.nodes.registry import ExchangeInUse
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.broker.protocols.amqp.link_nodes import LinkNode
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.broker.protocols.amqp.resumable import LinkKey, ResumableLink

log = logging.getLogger("qmf.broker")

#: Links that may be suspended at a time, and bytes of the messages that are delivered on them.
MAX_SUSPENDED = 1_000
MAX_SUSPENDED_BYTES = 64 * 1024 * 1024


class LinkHolder(Protocol):
    """Where a link is attached: the links of one client."""

    def surrender(self, link: ResumableLink) -> Sequence[LinkNode]:
        """Detach a link that is resumed elsewhere; returns the nodes that are deleted with it."""


@attrs.frozen
class _Suspended:
    link: ResumableLink
    nodes: Sequence[LinkNode]
    size: int
    timer: asyncio.TimerHandle


class ResumableLinks:
    """The links of a broker that can be resumed. Methods are called on the loop's thread."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._attached: dict[LinkKey, tuple[ResumableLink, LinkHolder]] = {}
        #: The one that has been waiting longest first.
        self._suspended: OrderedDict[LinkKey, _Suspended] = OrderedDict()
        self._closed = False

    @property
    def suspended(self) -> int:
        """Number of links that wait for their client."""
        return len(self._suspended)

    def add(self, link: ResumableLink, holder: LinkHolder) -> None:
        """A link is attached, for the first time or again."""
        self._attached[link.key] = (link, holder)

    def is_late(self, key: LinkKey, attempt: int) -> bool:
        """True if the client has attached a link again since it asked with this number."""
        link = self._attached[key][0] if key in self._attached else None
        if key in self._suspended:
            link = self._suspended[key].link
        return link is not None and link.attempt >= attempt

    def take(self, key: LinkKey) -> tuple[ResumableLink, Sequence[LinkNode]] | None:
        """Remove a link to resume it, with the nodes that are deleted with it; None if there is no such link.

        One that is still attached is detached there: its client has lost that connection, which was not noticed here.
        """
        if (attached := self._attached.pop(key, None)) is not None:
            link, holder = attached
            return link, holder.surrender(link)
        if key not in self._suspended:
            return None
        kept = self._remove(key)
        return kept.link, kept.nodes

    def remove(self, link: ResumableLink) -> None:
        """A link was closed."""
        self._attached.pop(link.key, None)

    def suspend(self, link: ResumableLink, nodes: Sequence[LinkNode]) -> None:
        """Keep a link, and the nodes that are deleted with it, for its client."""
        self.remove(link)
        if self._closed:
            return
        seconds = link.granted.timeout
        timer = asyncio.get_running_loop().call_later(seconds, self._give_up, link.key, f"no client for {seconds} s")
        self._suspended[link.key] = _Suspended(link, nodes, link.count_unsettled()[1], timer)
        while len(self._suspended) > MAX_SUSPENDED:
            self._give_up(next(iter(self._suspended)), f"more than {MAX_SUSPENDED} links are suspended")
        while sum(kept.size for kept in self._suspended.values()) > MAX_SUSPENDED_BYTES:
            self._give_up(next(iter(self._suspended)), f"suspended links hold more than {MAX_SUSPENDED_BYTES} bytes")

    def close(self) -> None:
        """Forget all links, and keep none any more."""
        self._closed = True
        for key in list(self._suspended):
            self._remove(key)

    def _give_up(self, key: LinkKey, reason: str) -> None:
        kept = self._remove(key)
        count = kept.link.count_unsettled()[0]
        log.warning("gave up suspended link %r with %d unsettled messages: %s", kept.link.name, count, reason)
        end_link(self._operations, kept.link, kept.nodes)

    def _remove(self, key: LinkKey) -> _Suspended:
        kept = self._suspended.pop(key)
        kept.timer.cancel()
        return kept


def end_link(
    operations: Operations,
    link: IncomingLink | OutgoingLink | None,
    nodes: Sequence[LinkNode],
    principal: Principal = BROKER,
) -> None:
    """A link is gone for good: what was unsettled returns to its queue, and the nodes of the link are deleted.

    Args:
        link: which; None for one that was refused.
        nodes: to delete.
        principal: on whose behalf.
    """
    if isinstance(link, OutgoingLink):
        link.on_detached()
        operations.registry.on_unused(link.queue)
    for node in nodes:
        try:
            operations.delete_owned(principal, node)
        except ExchangeInUse as error:
            log.warning("an exchange remains though its link is gone: %s", error)
