"""Observers of a broker."""

from __future__ import annotations

from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.observer import BrokerObserver, BrokerObservers
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry


class Noted(BrokerObserver):
    """Notes the queues that come."""

    def __init__(self) -> None:
        self.queues: list[str] = []

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        """See `BrokerObserver`."""
        self.queues.append(queue.name)


def test_several_observers_are_all_notified() -> None:
    registry = NodeRegistry()
    first, second = Noted(), Noted()
    registry.observer = BrokerObservers(BrokerObserver(), first, BrokerObservers(second))
    queue = registry.declare_queue("q")
    registry.delete(queue)
    assert (first.queues, second.queues) == (["q"], ["q"])


def test_all_methods_notify() -> None:
    names = [name for name in vars(BrokerObserver) if not name.startswith("_")]
    assert all(name in vars(BrokerObservers()) for name in names)
