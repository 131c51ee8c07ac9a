"""What the routes of messages stand on, opened when it is first used and closed with the application."""

from __future__ import annotations

from qmf.web.messages.broker_links import BrokerLinks, MakeConnection
from qmf.web.messages.creations import Creations
from qmf.web.messages.pull_consumers import PullConsumers

#: Pull consumers at a time.
MAX_CONSUMERS = 2000

#: The container id of the connections: brokers identify durable subscriptions by it, so it must stay the same.
CONTAINER = "qmf-web"


class MessageService:
    """The parts.

    Attributes:
        links: to the broker.
        consumers: all pull consumers.
        creations: creates messages with ids.
    """

    def __init__(self, make_connection: MakeConnection, *, max_consumers: int = MAX_CONSUMERS) -> None:
        """Make the parts; nothing is connected yet.

        Args:
            make_connection: makes a connection that is not open yet, which reconnects, with `CONTAINER`.
            max_consumers: pull consumers at a time.
        """
        self.links = BrokerLinks(make_connection)
        self.consumers = PullConsumers(self.links, limit=max_consumers)
        self.creations = Creations(self.links)

    async def close(self) -> None:
        """End the consumers, and close the connection."""
        await self.consumers.close()
        await self.links.close()
