"""Observers of a broker."""

from __future__ import annotations

from functools import partial

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
    noted: list[tuple[str, str]] = []
    everything = [
        type(whose, (BrokerObserver,), {name: staticmethod(partial(_note, noted, whose, name)) for name in names})()
        for whose in ("first", "second")
    ]
    together = BrokerObservers(*everything, BrokerObserver())
    for name in names:
        getattr(together, name)()
    assert noted == [(whose, name) for name in names for whose in ("first", "second")]


def _note(noted: list[tuple[str, str]], whose: str, name: str) -> None:
    noted.append((whose, name))


def test_only_those_are_called_that_do_something() -> None:
    only = Noted()
    together = BrokerObservers(BrokerObserver(), only, BrokerObservers())
    assert together.on_queue_declared == only.on_queue_declared
    assert "on_attached" not in vars(together)
