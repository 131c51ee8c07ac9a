"""What the routes of messages stand on, opened when it is first used and closed with the application."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from qmf.web.messages.broker_links import BrokerLinks, MakeConnection
from qmf.web.messages.creations import Creations
from qmf.web.messages.pull_consumers import PullConsumers
from qmf.web.messages.push.consumers import MayPush, PushConsumers
from qmf.web.messages.push.store import PushStore

#: Pull consumers at a time.
MAX_CONSUMERS = 2000

#: Push registrations at a time.
MAX_PUSHES = 500

#: The container id of the connections: brokers identify durable subscriptions by it, so it must stay the same.
CONTAINER = "qmf-web"


class MessageService:
    """The parts.

    Attributes:
        links: to the broker.
        consumers: all pull consumers.
        creations: creates messages with ids.
        push: all push consumers.
    """

    def __init__(
        self,
        make_connection: MakeConnection,
        *,
        max_consumers: int = MAX_CONSUMERS,
        push_dir: Path | None = None,
        push_to: Collection[str] | None = None,
        may_push: MayPush,
    ) -> None:
        """Make the parts; nothing is connected yet.

        Args:
            make_connection: makes a connection that is not open yet, which reconnects, with `CONTAINER`.
            max_consumers: pull consumers at a time.
            push_dir: folder of durable push registrations; None: there are none.
            push_to: hosts that may be pushed to, as names or ``name:port``; None for any.
            may_push: whether the owner of a push registration may have its messages.

        Raises:
            PushStoreError: the folder cannot be used.
        """
        self.links = BrokerLinks(make_connection)
        self.consumers = PullConsumers(self.links, limit=max_consumers)
        self.creations = Creations(self.links)
        store = None if push_dir is None else PushStore(push_dir)
        self.push = PushConsumers(self.links, store=store, hosts=push_to, limit=MAX_PUSHES, may_push=may_push)

    def open(self) -> None:
        """Begin with the durable push registrations.

        Raises:
            PushStoreError: a file of them cannot be read.
        """
        self.push.restore()

    async def close(self) -> None:
        """End the consumers, and close the connection."""
        await self.push.close()
        await self.consumers.close()
        await self.links.close()
