"""What operations need of the links within a broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from qmf.broker.nodes.observed_forwarding import NodeLink
from qmf.broker.operations.principal import Principal


class QueueLinkError(Exception):
    """A link within the broker cannot be created, deleted or changed; says why."""


class QueueLinks(Protocol):
    """The links within a broker."""

    @property
    def links(self) -> Collection[NodeLink]:
        """All links."""

    def add(self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool) -> None:
        """Add a link, which takes messages from now on.

        Args:
            principal: who creates it; it acts on its behalf.
            name: of the link.
            properties: as consoles give them.
            strict: refuse properties that are not known.

        Raises:
            QueueLinkError: there is one of that name, a node does not exist, messages would come back to the source,
                or a property is wrong.
            OperationRefused: the policy refuses to the principal what the link does.
        """

    def remove(self, name: str) -> None:
        """Remove a link.

        Raises:
            QueueLinkError: there is none.
        """

    def pause(self, name: str) -> None:
        """Take no messages, until `resume`, or the next start of the broker.

        Raises:
            QueueLinkError: there is none.
        """

    def resume(self, name: str) -> None:
        """Take messages again.

        Raises:
            QueueLinkError: there is none.
        """
