"""Other brokers, and the links to them, as managed objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from qmf.agent import ErrorCode
from qmf.broker.management.administration import Administration
from qmf.broker.management.callers import refusal
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import lstr, sstr
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.observed_definitions import PeerBridge, PeerDomain, PeerLink
from qmf.models.broker import agent as model

#: Credit of a route that has no limit.
UNLIMITED = 0xFFFFFFFF


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
        administration: Administration,
    ) -> None:
        """Make the object of a link.

        Args:
            connection_of: the managed object of another broker's connection, where there is one.
            delete: deletes the link.
            administration: creates routes.
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
        self.bridges: set[PeerBridge] = set()
        self._link = link
        self._connection_of = connection_of
        self._delete = delete
        self._administration = administration

    def sample(self) -> None:
        link = self._link
        host, port, tls = link.place
        self.host, self.port, self.transport = sstr(host), port, "ssl" if tls else "tcp"
        self.connectionRef = None if link.session is None else self._connection_of(link.session)
        self.state = sstr(link.state_name)
        self.lastError = lstr(_reason(link) or next(filter(None, map(_bridge_reason, self._sorted_bridges())), ""))

    def close(self) -> None:
        self._delete()

    def bridge(
        self,
        durable: bool,
        src: str,
        dest: str,
        key: str,
        tag: str,
        excludes: str,
        srcIsQueue: bool,
        srcIsLocal: bool,
        dynamic: bool,
        sync: int,
        credit: int = UNLIMITED,
    ) -> None:
        if self._link.kind != "link":
            raise refusal(ErrorCode.INVALID_PARAMETER, f"an {self._link.kind} link has no routes")
        ends = {"src": src, "dest": dest, "key": key, "srcIsQueue": srcIsQueue, "srcIsLocal": srcIsLocal}
        options = {"durable": durable, "tag": tag, "excludes": excludes, "dynamic": dynamic, "sync": sync}
        self._administration.bridge(self._link.name, {**ends, **options, "credit": credit})

    def _sorted_bridges(self) -> list[PeerBridge]:
        return sorted(self.bridges, key=lambda item: item.name)


class ManagedBridge(model.Bridge, SampledObject):
    """A route on a link. What is wrong with it is in the `lastError` of its link."""

    def __init__(self, link: ManagedLink, bridge: PeerBridge, delete: Callable[[], None]) -> None:
        wanted = bridge.bridge
        super().__init__(
            linkRef=link,
            name=sstr(bridge.name),
            channelId=0,
            durable=bridge.durable,
            src=sstr(wanted.src),
            dest=sstr(wanted.dest),
            key=lstr(wanted.key),
            srcIsQueue=wanted.src_is_queue,
            srcIsLocal=wanted.src_is_local,
            tag=sstr(wanted.tag),
            excludes=sstr(wanted.excludes),
            dynamic=wanted.dynamic,
            sync=wanted.sync,
            credit=wanted.credit,
        )
        self._delete = delete

    def close(self) -> None:
        self._delete()


def _reason(item: PeerLink | PeerBridge) -> str:
    """Why something is not up and since when, for people; empty if all is well."""
    if not item.reason:
        return ""
    since = datetime.fromtimestamp(item.since, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    return f"{item.reason} (since {since} UTC)"


def _bridge_reason(bridge: PeerBridge) -> str:
    reason = _reason(bridge)
    return f"route {bridge.name}: {reason}" if reason else ""
