"""The clients of a broker as managed objects: connections, sessions and subscriptions."""

from __future__ import annotations

import uuid

from qmf.broker.management.node_objects import unsupported
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import connection_address, lstr, simple_map, sstr
from qmf.broker.nodes.queues import Queue
from qmf.broker.observer import BrokerClient, ClientLink
from qmf.models.broker import agent as model

#: Connection properties in which clients of Qpid name their process.
_PROCESS, _PID, _PARENT = "qpid.client_process", "qpid.client_pid", "qpid.client_ppid"


class ManagedConnection(model.Connection, SampledObject):
    """A connection. Frames and octets are not counted."""

    def __init__(self, vhost: model.Vhost, client: BrokerClient, listening: str) -> None:
        """Args:

        vhost: that it belongs to.
        client: of the broker.
        listening: host and port that the broker listens on.
        """
        info = client.info
        properties = simple_map(info.properties)
        process = properties.get(_PROCESS)
        super().__init__(
            vhostRef=vhost,
            address=connection_address(listening, info.address),
            incoming=True,
            SystemConnection=False,
            authIdentity=sstr(info.user),
            remoteProcessName=lstr(process) if isinstance(process, str) else None,
            remotePid=_process_id(properties.get(_PID)),
            remoteParentPid=_process_id(properties.get(_PARENT)),
            saslMechanism=sstr(info.mechanism),
            remoteProperties=properties,
            protocol="AMQP 1.0",
        )
        self._client = client
        self._links: set[ClientLink] = set()
        #: Transfers on links that are gone.
        self._received = self._sent = 0

    def add_link(self, link: ClientLink) -> None:
        """Count the transfers of a link, too."""
        self._links.add(link)

    def remove_link(self, link: ClientLink) -> None:
        """A link is about to be removed: keep what it has counted."""
        self._links.discard(link)
        if link.queue is not None:
            self._sent += link.transfers
        else:
            self._received += link.transfers

    def sample(self) -> None:
        """See `SampledObject`."""
        received, sent = self._received, self._sent
        for link in self._links:
            if link.queue is not None:
                sent += link.transfers
            else:
                received += link.transfers
        self.msgsFromClient.set(received)
        self.msgsToClient.set(sent)

    def close(self) -> None:
        """See the schema."""
        self.closing = True
        self._client.close("amqp:connection:forced", "closed by management")


class ManagedSession(model.Session, SampledObject):
    """A session. It has no name in AMQP 1.0, so a random one is used.

    Attributes:
        links: of the session.
    """

    def __init__(self, vhost: model.Vhost, connection: model.Connection) -> None:
        super().__init__(vhostRef=vhost, name=str(uuid.uuid4()), connectionRef=connection, attached=True)
        self.links: set[ClientLink] = set()

    def sample(self) -> None:
        """See `SampledObject`."""
        self.unackedMessages = sum(link.unsettled()[0] for link in self.links)

    solicitAck = unsupported("Session.solicitAck")
    detach = unsupported("Session.detach")
    resetLifespan = unsupported("Session.resetLifespan")
    close = unsupported("Session.close")


class ManagedSubscription(model.Subscription, SampledObject):
    """A link on which a client receives."""

    def __init__(
        self, session: model.Session, queue_object: model.Queue | None, link: ClientLink, queue: Queue
    ) -> None:
        """Args:

        session: that it belongs to.
        queue_object: the queue as managed object, where there is one.
        link, queue: of the broker.
        """
        super().__init__(
            sessionRef=session,
            queueRef=queue_object,
            name=sstr(link.name),
            browsing=False,
            acknowledged=not link.presettled,
            exclusive=queue.exclusive,
            # In AMQP 1.0, credit is per message; a window, where there is one, is known to the receiver alone.
            creditMode="CREDIT",
            arguments={},
        )
        self._link = link

    def sample(self) -> None:
        """See `SampledObject`."""
        self.delivered.set(self._link.transfers)


def _process_id(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32 else None
