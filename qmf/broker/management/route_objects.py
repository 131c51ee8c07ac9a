"""Routes between brokers as objects of the package ``qmf.federation``, with what the classes of qpidd do not have."""

from __future__ import annotations

from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import lstr, sstr
from qmf.broker.nodes.observed_definitions import PeerRoute
from qmf.models.federation import agent as model

_NS = 1_000_000_000


class ManagedRoute(model.Route, SampledObject):
    """A route: an incoming or outgoing link, or a bridge, whether or not it is up."""

    def __init__(self, broker: str, route: PeerRoute) -> None:
        """Make the object of a route; `broker`: id of this broker."""
        ends = route.ends
        super().__init__(
            name=sstr(route.name),
            kind=sstr(route.kind),
            link=sstr(ends.link),
            broker=lstr(broker),
            outgoing=ends.outgoing,
            source=lstr(ends.source),
            target=lstr(ends.target),
            key=lstr("" if ends.dynamic else ends.key),
            dynamic=ends.dynamic,
            durable=route.durable,
        )
        self._route = route

    def sample(self) -> None:
        route = self._route
        host, port, _ = route.place
        self.place, self.peer = lstr(f"{host}:{port}"), lstr(route.peer_id)
        self.state, self.up = sstr(route.state_name), route.is_up
        self.since, self.lastError = round(route.since * _NS), lstr(route.reason)
        self.losses.set(route.losses)
        self.transfers.set(route.transfers)
        self.rate, self.credit = route.measure_rate(), route.credit
        self.unforwarded.set(route.count_unforwarded)
        self.inDoubt.set(route.count_in_doubt)
        measure = route.measure()
        self.measured, self.backlog = measure.waiting is not None, measure.waiting or 0
        self.behind = round(measure.behind * _NS)
