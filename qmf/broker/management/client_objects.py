"""The clients of a broker as managed objects: connections, sessions and subscriptions."""

from __future__ import annotations

import uuid

from qmf.broker.links.connection import Connection
from qmf.broker.links.links import IncomingLink, OutgoingLink
from qmf.broker.management.node_objects import unsupported
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import address, long, plain, short
from qmf.broker.observer import ClientInfo
from qmf.models.broker import agent as model

#: The connection properties by which clients of Qpid tell of their process.
_PROCESS, _PID, _PARENT = "qpid.client_process", "qpid.client_pid", "qpid.client_ppid"


class ManagedConnection(model.Connection, SampledObject):
    """A connection. Frames and octets are not counted."""

    def __init__(self, vhost: model.Vhost, client: Connection, peer: ClientInfo, listening: str) -> None:
        """Args:

        vhost: where it is.
        client: of the broker.
        peer: who it is.
        listening: host and port that it has connected to.
        """
        said = plain(peer.properties)
        process = said.get(_PROCESS)
        super().__init__(
            vhostRef=vhost,
            address=address(listening, peer.address),
            incoming=True,
            SystemConnection=False,
            authIdentity=short(peer.user),
            remoteProcessName=long(process) if isinstance(process, str) else None,
            remotePid=_number(said.get(_PID)),
            remoteParentPid=_number(said.get(_PARENT)),
            saslMechanism=short(peer.mechanism),
            remoteProperties=said,
            protocol="AMQP 1.0",
        )
        self._client = client
        self._ends: set[OutgoingLink | IncomingLink] = set()
        #: Of links that are gone.
        self._received = self._sent = 0

    def add(self, end: OutgoingLink | IncomingLink) -> None:
        """A link came."""
        self._ends.add(end)

    def remove(self, end: OutgoingLink | IncomingLink) -> None:
        """A link goes."""
        self._ends.discard(end)
        if isinstance(end, OutgoingLink):
            self._sent += end.transfers
        else:
            self._received += end.transfers

    def sample(self) -> None:
        """Read the counters."""
        received, sent = self._received, self._sent
        for end in self._ends:
            if isinstance(end, OutgoingLink):
                sent += end.transfers
            else:
                received += end.transfers
        self.msgsFromClient.set(received)
        self.msgsToClient.set(sent)

    def close(self) -> None:
        """See the schema."""
        self.closing = True
        self._client.close("amqp:connection:forced", "closed by management")


class ManagedSession(model.Session, SampledObject):
    """A session; in AMQP 1.0 it has no name, so it gets one here.

    Attributes:
        ends: its links.
    """

    def __init__(self, vhost: model.Vhost, connection: model.Connection) -> None:
        super().__init__(vhostRef=vhost, name=str(uuid.uuid4()), connectionRef=connection, attached=True)
        self.ends: set[OutgoingLink | IncomingLink] = set()

    def sample(self) -> None:
        """Read the counters."""
        self.unackedMessages = sum(end.held()[0] for end in self.ends if isinstance(end, OutgoingLink))

    solicitAck = unsupported("Session.solicitAck")
    detach = unsupported("Session.detach")
    resetLifespan = unsupported("Session.resetLifespan")
    close = unsupported("Session.close")


class ManagedSubscription(model.Subscription, SampledObject):
    """A link to a client that receives."""

    def __init__(self, session: model.Session, queue: model.Queue | None, outgoing: OutgoingLink) -> None:
        super().__init__(
            sessionRef=session,
            queueRef=queue,
            name=short(outgoing.link.name),
            browsing=False,
            acknowledged=not outgoing.link.settled,
            exclusive=outgoing.queue.exclusive,
            # In AMQP 1.0 a receiver gives credit message by message; a window is its own affair.
            creditMode="CREDIT",
            arguments={},
        )
        self._feed = outgoing

    def sample(self) -> None:
        """Read the counters."""
        self.delivered.set(self._feed.transfers)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32 else None
