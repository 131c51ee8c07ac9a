"""Other brokers, and the links to them, as managed objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from qmf.broker.management.refusals import not_implemented
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import lstr, sstr
from qmf.broker.nodes.observer import ClientSession, PeerDomain, PeerLink
from qmf.models.broker import agent as model


class ManagedDomain(model.Domain, SampledObject):
    """Another broker. Its password is not shown, unlike by qpidd."""

    def __init__(self, domain: PeerDomain) -> None:
        super().__init__(
            name=sstr(domain.name),
            durable=domain.durable,
            url=sstr(domain.url),
            mechanisms=sstr(" ".join(domain.mechanisms or ())),
            username=sstr(domain.username or ""),
            password="",
        )


class ManagedLink(model.Link, SampledObject):
    """A link to another broker, whether or not it is up."""

    def __init__(
        self,
        vhost: model.Vhost,
        link: PeerLink,
        connection_of: Callable[[ClientSession], model.Connection | None],
        delete: Callable[[], None],
    ) -> None:
        """Make the object of a link.

        Args:
            vhost: that it belongs to.
            link: of the broker.
            connection_of: the managed object of another broker's connection, where there is one.
            delete: deletes the link.
        """
        host, port, tls = link.place
        super().__init__(
            vhostRef=vhost,
            name=sstr(link.name),
            host=sstr(host),
            port=port,
            transport="ssl" if tls else "tcp",
            durable=link.durable,
            connectionRef=None,
        )
        self._link = link
        self._connection_of = connection_of
        self._delete = delete

    def sample(self) -> None:
        """See `SampledObject`."""
        link = self._link
        host, port, tls = link.place
        self.host, self.port, self.transport = sstr(host), port, "ssl" if tls else "tcp"
        self.connectionRef = None if link.session is None else self._connection_of(link.session)
        self.state = sstr(link.state_name)
        since = datetime.fromtimestamp(link.since, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        self.lastError = lstr(f"{link.reason} (since {since} UTC)") if link.reason else ""

    def close(self) -> None:
        """See the schema."""
        self._delete()

    bridge = not_implemented("Link.bridge", "there are no bridges here; create links, incoming or outgoing")
