"""Transactions of a client: declared, committed as a whole, rolled back."""

from __future__ import annotations

import attrs
import pytest

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import Recorder
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.operations.grants import Publication
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.refusal import Reason, Refusal
from qmf.broker.transactions.coordinator import MAX_TRANSACTIONS, Coordinator, TransactionFailed


def declare(coordinator: Coordinator) -> bytes:
    return coordinator.declare(TransactionCounts())


def discharge(coordinator: Coordinator, id: bytes, *, fail: bool = False) -> Refusal | None:
    """What the client learns; without a store it does so at once."""
    answers: list[Refusal | None] = []
    coordinator.discharge(id, TransactionCounts(), answers.append, fail=fail)
    (only,) = answers
    return only


def admitted(registry: NodeRegistry, node: Node | None, message: Message) -> Publication:
    return Operations(registry).publisher(BROKER).admit(node, message)


def message(text: str) -> Message:
    return Message(text.encode(), None, "", None, None)


@attrs.define
class Acquired:
    """Counts what becomes of an acquisition."""

    commits: int = 0
    roll_backs: int = 0

    def record(self, recorder: Recorder) -> None:
        raise AssertionError("nothing is recorded here")

    def commit(self) -> None:
        self.commits += 1

    def roll_back(self) -> None:
        self.roll_backs += 1


@pytest.fixture
def registry() -> NodeRegistry:
    return NodeRegistry()


@pytest.fixture
def coordinator(registry: NodeRegistry) -> Coordinator:
    return Coordinator(registry)


def queue(registry: NodeRegistry, name: str = "q", max_count: int | None = None) -> Queue:
    made = registry.create(name, NodeDeclaration(queue=QueueSettings(limits=QueueLimits(max_count))))
    assert isinstance(made, Queue)
    return made


def test_a_commit_lets_everything_take_effect(registry: NodeRegistry, coordinator: Coordinator) -> None:
    one, two, acquired = queue(registry, "one"), queue(registry, "two"), Acquired()
    id = declare(coordinator)
    transaction = coordinator.find(id)
    transaction.sent += [
        admitted(registry, *each) for each in ((one, message("a")), (two, message("b")), (None, message("nowhere")))
    ]
    transaction.acquisitions.append(acquired)
    assert (len(one.contents), len(two.contents)) == (0, 0)
    assert discharge(coordinator, id) is None
    assert (len(one.contents), len(two.contents), acquired) == (1, 1, Acquired(commits=1))
    with pytest.raises(TransactionFailed, match="no open transaction"):
        coordinator.find(id)


def test_a_roll_back_lets_nothing_take_effect(registry: NodeRegistry, coordinator: Coordinator) -> None:
    it, acquired = queue(registry), Acquired()
    id = declare(coordinator)
    coordinator.find(id).sent.append(admitted(registry, it, message("a")))
    coordinator.find(id).acquisitions.append(acquired)
    assert discharge(coordinator, id, fail=True) is None
    assert (len(it.contents), acquired) == (0, Acquired(roll_backs=1))


def test_a_full_queue_aborts_the_whole(registry: NodeRegistry, coordinator: Coordinator) -> None:
    small, large, acquired = queue(registry, "small", 2), queue(registry, "large"), Acquired()
    id = declare(coordinator)
    coordinator.find(id).sent += [
        admitted(registry, large, message("a")),
        *(admitted(registry, small, message(text)) for text in "bcd"),
    ]
    coordinator.find(id).acquisitions.append(acquired)
    text = "the transaction was rolled back: queue 'small' is full"
    assert discharge(coordinator, id) == Refusal(Reason.ROLLED_BACK, text)
    assert (len(small.contents), len(large.contents), acquired) == (0, 0, Acquired(roll_backs=1))


def test_exchanges_count_for_the_queues_behind_them(registry: NodeRegistry, coordinator: Coordinator) -> None:
    small = queue(registry, "small", 1)
    id = declare(coordinator)
    sent = Message(b"x", None, "small", None, None)
    coordinator.find(id).sent += [admitted(registry, registry.default_exchange, sent)] * 2
    refusal = discharge(coordinator, id)
    assert refusal is not None
    assert "'small' is full" in refusal.description
    assert len(small.contents) == 0


def test_an_unknown_transaction_cannot_be_discharged(coordinator: Coordinator) -> None:
    with pytest.raises(TransactionFailed, match="no open transaction") as caught:
        discharge(coordinator, b"unknown")
    assert caught.value.refusal.reason is Reason.UNKNOWN_TRANSACTION


def test_transactions_are_limited_and_rolled_back_with_their_link(coordinator: Coordinator) -> None:
    ids = [declare(coordinator) for _ in range(MAX_TRANSACTIONS)]
    with pytest.raises(TransactionFailed, match="open transactions"):
        declare(coordinator)
    acquired = Acquired()
    coordinator.find(ids[0]).acquisitions.append(acquired)
    coordinator.roll_back(ids)
    assert acquired == Acquired(roll_backs=1)
    declare(coordinator)


def test_transactions_are_counted(registry: NodeRegistry, coordinator: Coordinator) -> None:
    counts = TransactionCounts()
    first, second, third = (coordinator.declare(counts) for _ in range(3))
    small = queue(registry, "small", max_count=0)
    coordinator.find(third).sent.append(admitted(registry, small, message("too much")))
    for id, fail in ((first, False), (second, True), (third, False)):
        coordinator.discharge(id, counts, lambda _: None, fail=fail)
    assert counts == TransactionCounts(started=3, committed=1, rolled_back=2)
