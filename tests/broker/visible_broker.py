"""A broker whose parts tests can see: what no client and no console is shown."""

from __future__ import annotations

import pytest

from qmf.broker import Broker, server
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.protocols.amqp import protocol
from qmf.broker.protocols.amqp.resumable_links import ResumableLinks


class VisibleBroker(Broker):
    """A `Broker` like any other.

    Attributes:
        registry: its nodes.
        operations: on them.
        resumable: its links that can be resumed.
    """

    registry: NodeRegistry
    operations: Operations
    resumable: ResumableLinks

    async def start(self) -> None:
        """See `Broker`."""

        def make_registry(**options: object) -> NodeRegistry:
            self.registry = NodeRegistry(**options)  # type: ignore[arg-type]
            return self.registry

        def make_resumable(operations: Operations) -> ResumableLinks:
            self.operations = operations
            self.resumable = ResumableLinks(operations)
            return self.resumable

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server, "NodeRegistry", make_registry)
            patch.setattr(protocol, "ResumableLinks", make_resumable)
            await super().start()
