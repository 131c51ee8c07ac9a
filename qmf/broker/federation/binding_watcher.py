"""Notifies dynamic routes when bindings of their exchange come and go."""

from __future__ import annotations

from qmf.broker.federation.bridges import PullBridge
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue


class BindingWatcher(BrokerObserver):
    """An observer of all exchanges. Routes look at the bindings later: those that go are there still."""

    def __init__(self) -> None:
        self._bridges: dict[str, set[PullBridge]] = {}

    def add(self, bridge: PullBridge) -> None:
        """Notify a route from now on."""
        self._bridges.setdefault(bridge.bridge.src, set()).add(bridge)

    def remove(self, bridge: PullBridge) -> None:
        """Do so no more."""
        self._bridges.get(bridge.bridge.src, set()).discard(bridge)

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._notify(exchange.name)

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._notify(exchange.name)

    def on_origins_changed(self, exchange: Exchange) -> None:
        self._notify(exchange.name)

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:  # noqa: ARG002
        """See `BrokerObserver`. Its bindings, which go with it, are not reported."""
        for exchange in self._bridges:
            self._notify(exchange)

    def _notify(self, exchange: str) -> None:
        for bridge in self._bridges.get(exchange, ()):
            bridge.on_bindings_changed()
