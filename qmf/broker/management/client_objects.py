"""The clients of a broker as managed objects: connections and sessions."""

from __future__ import annotations

import uuid
from collections.abc import Hashable

import attrs

from qmf.broker.management.callers import not_implemented
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import connection_address, lstr, simple_map, sstr
from qmf.broker.nodes.observed_clients import ClientLink, ClientSession, TransactionCounts
from qmf.models.broker import agent as model

#: Connection properties in which clients of Qpid name their process.
_PROCESS, _PID, _PARENT = "qpid.client_process", "qpid.client_pid", "qpid.client_ppid"
#: Entry of a connection's properties with the container id of the client, as with qpidd.
_CONTAINER = "container-id"


@attrs.define(eq=False)
class SessionLinks:
    """The links of a session, whether or not there is an object of it.

    Attributes:
        links: they.
        transactions: of links that are gone.
    """

    links: set[ClientLink] = attrs.field(factory=set)
    transactions: TransactionCounts = attrs.field(factory=TransactionCounts)

    def remove(self, link: ClientLink) -> None:
        """A link is about to be removed: keep what it has counted. Its open transactions are rolled back."""
        self.links.discard(link)
        if (counts := link.transactions) is not None:
            self.transactions.add(counts)
            self.transactions.rolled_back = self.transactions.started - self.transactions.committed


@attrs.define(eq=False)
class ConnectionLinks:
    """The sessions of a connection, whether or not there is an object of it.

    Attributes:
        sessions: by their identities, as of `ClientLink`.
        received, sent: transfers on links that are gone.
    """

    sessions: dict[Hashable, SessionLinks] = attrs.field(factory=dict)
    received: int = 0
    sent: int = 0

    def add(self, link: ClientLink) -> bool:
        """Count a link, too; True for the first one of its session."""
        first = (session := self.sessions.get(link.session)) is None
        if session is None:
            session = self.sessions[link.session] = SessionLinks()
        session.links.add(link)
        return first

    def remove(self, link: ClientLink) -> bool:
        """A link is about to be removed: keep what it has counted; True for the last one of its session."""
        if link.queue is not None:
            self.sent += link.transfers
        else:
            self.received += link.transfers
        session = self.sessions[link.session]
        session.remove(link)
        if session.links:
            return False
        del self.sessions[link.session]
        return True


class ManagedConnection(model.Connection, SampledObject):
    """A connection.

    Attributes:
        container: container id of the client.
        domain: name of the domain, if it is another broker to which this one has connected; else empty.
    """

    def __init__(self, vhost: model.Vhost, client: ClientSession, links: ConnectionLinks, listening: str) -> None:
        """Make the object of a client's connection; `listening`: host and port that the broker listens on."""
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
        self._links = links

    def sample(self) -> None:
        received, sent = self._links.received, self._links.sent
        for session in self._links.sessions.values():
            for link in session.links:
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
        self.closing = True
        self._client.close("closed by management")

    def end_session(self, session: Hashable) -> None:
        """End a session of the connection; `session` as of `ClientLink`."""
        self._client.end_session(session, "the session was ended by management")


class ManagedSession(model.Session, SampledObject):
    """A session. It has no name in AMQP 1.0, so a random one is used."""

    def __init__(
        self, vhost: model.Vhost, connection: ManagedConnection, session: Hashable, links: SessionLinks
    ) -> None:
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
        self._connection = connection
        self._session = session
        self._links = links

    def sample(self) -> None:
        counts = TransactionCounts()
        counts.add(self._links.transactions)
        unsettled = 0
        for link in self._links.links:
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
        self._connection.end_session(self._session)

    solicitAck = not_implemented("Session.solicitAck")
    resetLifespan = not_implemented("Session.resetLifespan")
    close = not_implemented("Session.close")


def _process_id(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32 else None
