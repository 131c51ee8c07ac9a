"""The links of a client as managed objects."""

from __future__ import annotations

from typing import Any

from qmf.broker.management.client_objects import ManagedConnection
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import sstr
from qmf.broker.nodes.observed_clients import ClientLink
from qmf.broker.nodes.queues import Queue
from qmf.models.broker import agent as model


class ManagedIncoming(model.Incoming, SampledObject):
    """A link on which a client sends."""

    def __init__(self, session: model.Session, connection: ManagedConnection, link: ClientLink) -> None:
        super().__init__(**_properties(session, connection, link))
        self._link = link

    def sample(self) -> None:
        self.transfers.set(self._link.transfers)


class ManagedOutgoing(model.Outgoing, SampledObject):
    """A link on which a client receives."""

    def __init__(self, session: model.Session, connection: ManagedConnection, link: ClientLink) -> None:
        super().__init__(**_properties(session, connection, link))
        self._link = link

    def sample(self) -> None:
        self.transfers.set(self._link.transfers)


def _properties(session: model.Session, connection: ManagedConnection, link: ClientLink) -> dict[str, Any]:
    """The properties that links of both directions have."""
    return {
        "sessionRef": session,
        "containerid": connection.container,
        "name": sstr(link.name),
        "source": sstr(link.source),
        "target": sstr(link.target),
        "domain": sstr(connection.domain),
    }


class ManagedSubscription(model.Subscription, SampledObject):
    """A link on which a client receives, as the consumer of a queue."""

    def __init__(
        self, session: model.Session, queue_object: model.Queue | None, link: ClientLink, queue: Queue
    ) -> None:
        """Make the object of a link on which a client receives.

        Args:
            queue_object: the queue as managed object, where there is one.
        """
        super().__init__(
            sessionRef=session,
            queueRef=queue_object,
            name=sstr(link.name),
            browsing=link.browsing,
            acknowledged=not link.presettled,
            exclusive=queue.settings.exclusive,
            # In AMQP 1.0, credit is per message; a window, where there is one, is known to the receiver alone.
            creditMode="CREDIT",
            arguments={},
        )
        self._link = link

    def sample(self) -> None:
        self.delivered.set(self._link.transfers)
