"""The clients of a broker as managed objects: connections and sessions."""

from __future__ import annotations

import uuid
from collections.abc import Hashable

from qmf.broker.management.refusals import not_implemented
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import connection_address, lstr, simple_map, sstr
from qmf.broker.nodes.observed_clients import ClientLink, ClientSession, TransactionCounts
from qmf.models.broker import agent as model

#: Connection properties in which clients of Qpid name their process.
_PROCESS, _PID, _PARENT = "qpid.client_process", "qpid.client_pid", "qpid.client_ppid"
#: Entry of a connection's properties with the container id of the client, as with qpidd.
_CONTAINER = "container-id"


class ManagedConnection(model.Connection, SampledObject):
    """A connection.

    Attributes:
        container: container id of the client.
        domain: name of the domain, if it is another broker to which this one has connected; else empty.
    """

    def __init__(self, vhost: model.Vhost, client: ClientSession, listening: str) -> None:
        """Make the object of a client's connection.

        Args:
            vhost: that it belongs to.
            client: of the broker.
            listening: host and port that the broker listens on.
        """
        info = client.info
        properties = simple_map({**info.properties, _CONTAINER: info.container})
        process = properties.get(_PROCESS)
        super().__init__(
            vhostRef=vhost,
            address=connection_address(info.local or listening, info.address),
            incoming=not info.domain,
            SystemConnection=False,
            userProxyAuth=False,
            federationLink=bool(info.domain),
            authIdentity=sstr(info.user),
            remoteProcessName=lstr(process) if isinstance(process, str) else None,
            remotePid=_process_id(properties.get(_PID)),
            remoteParentPid=_process_id(properties.get(_PARENT)),
            shadow=False,
            saslMechanism=sstr(info.mechanism),
            saslSsf=0,
            remoteProperties=properties,
            protocol=sstr(info.protocol),
        )
        self.closing = False
        self.container = sstr(info.container)
        self.domain = info.domain
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
        traffic = self._client.traffic()
        self.framesFromClient.set(traffic.frames_in)
        self.framesToClient.set(traffic.frames_out)
        self.bytesFromClient.set(traffic.octets_in)
        self.bytesToClient.set(traffic.octets_out)

    def close(self) -> None:
        """See the schema."""
        self.closing = True
        self._client.close("closed by management")

    def end_session(self, session: Hashable) -> None:
        """End a session of the connection; `session` as of `ClientLink`."""
        self._client.end_session(session, "the session was ended by management")


class ManagedSession(model.Session, SampledObject):
    """A session. It has no name in AMQP 1.0, so a random one is used.

    Attributes:
        links: of the session.
    """

    def __init__(self, vhost: model.Vhost, connection: ManagedConnection, session: Hashable) -> None:
        """Make the object of a client's session.

        Args:
            vhost: that it belongs to.
            connection: that it is in.
            session: as of `ClientLink`.
        """
        name = str(uuid.uuid4())
        super().__init__(
            vhostRef=vhost,
            name=name,
            fullName=name,
            channelId=0,
            connectionRef=connection,
            detachedLifespan=0,
            attached=True,
        )
        self.links: set[ClientLink] = set()
        self._connection = connection
        self._session = session
        #: Transactions of links that are gone.
        self._transactions = TransactionCounts()

    def remove_link(self, link: ClientLink) -> None:
        """A link is about to be removed: keep what it has counted. Its open transactions are rolled back."""
        self.links.discard(link)
        if (counts := link.transactions) is not None:
            self._transactions.add(counts)
            self._transactions.rolled_back = self._transactions.started - self._transactions.committed

    def sample(self) -> None:
        """See `SampledObject`."""
        counts = TransactionCounts()
        counts.add(self._transactions)
        unsettled = 0
        for link in self.links:
            unsettled += link.count_unsettled()[0]
            if link.transactions is not None:
                counts.add(link.transactions)
        self.unackedMessages = unsettled
        self.TxnStarts.set(counts.started)
        self.TxnCommits.set(counts.committed)
        self.TxnRejects.set(counts.rolled_back)
        # One may be discharged on the link of another session.
        self.TxnCount.set(max(0, counts.started - counts.committed - counts.rolled_back))

    def detach(self) -> None:
        """See the schema."""
        self._connection.end_session(self._session)

    solicitAck = not_implemented("Session.solicitAck")
    resetLifespan = not_implemented("Session.resetLifespan")
    close = not_implemented("Session.close")


def _process_id(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32 else None
