"""Transactions of a client: declared, committed as a whole, rolled back."""

from __future__ import annotations

import attrs
import pytest

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import Recorder
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.observer import TransactionCounts
from qmf.broker.operations.grants import Publication
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import BROKER
from qmf.broker.transactions.coordinator import MAX_TRANSACTIONS, Coordinator, Declared, TransactionFailed
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message
from qmf.codec.types import Described, Symbol, UInt64


def request(descriptor: object, *fields: object) -> bytes:
    return encode_message(AmqpMessage(section=Section.VALUE, body=Described(descriptor, list(fields))))


def answer(coordinator: Coordinator, data: bytes) -> Declared | TransactionFailed | None:
    """What the coordinator answers to a request; without a store it does so at once."""
    answers: list[Declared | TransactionFailed | None] = []
    coordinator.request(data, TransactionCounts(), answers.append)
    (only,) = answers
    return only


def declare(coordinator: Coordinator) -> bytes:
    declared = answer(coordinator, request(UInt64(0x31), None))
    assert isinstance(declared, Declared)
    return declared.id


def discharge(coordinator: Coordinator, id: bytes, *, fail: bool = False) -> None:
    assert answer(coordinator, request(UInt64(0x32), id, fail)) is None


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
    assert (len(one), len(two)) == (0, 0)
    discharge(coordinator, id)
    assert (len(one), len(two), acquired) == (1, 1, Acquired(commits=1))
    with pytest.raises(TransactionFailed, match="no open transaction"):
        coordinator.find(id)


def test_a_roll_back_lets_nothing_take_effect(registry: NodeRegistry, coordinator: Coordinator) -> None:
    it, acquired = queue(registry), Acquired()
    id = declare(coordinator)
    coordinator.find(id).sent.append(admitted(registry, it, message("a")))
    coordinator.find(id).acquisitions.append(acquired)
    discharge(coordinator, id, fail=True)
    assert (len(it), acquired) == (0, Acquired(roll_backs=1))


def test_a_full_queue_aborts_the_whole(registry: NodeRegistry, coordinator: Coordinator) -> None:
    small, large, acquired = queue(registry, "small", 2), queue(registry, "large"), Acquired()
    id = declare(coordinator)
    coordinator.find(id).sent += [
        admitted(registry, large, message("a")),
        *(admitted(registry, small, message(text)) for text in "bcd"),
    ]
    coordinator.find(id).acquisitions.append(acquired)
    with pytest.raises(TransactionFailed, match="queue 'small' is full") as caught:
        discharge(coordinator, id)
    assert caught.value.condition == "amqp:transaction:rollback"
    assert (len(small), len(large), acquired) == (0, 0, Acquired(roll_backs=1))


def test_exchanges_count_for_the_queues_behind_them(registry: NodeRegistry, coordinator: Coordinator) -> None:
    small = queue(registry, "small", 1)
    id = declare(coordinator)
    sent = Message(b"x", None, "small", None, None)
    coordinator.find(id).sent += [admitted(registry, registry.default_exchange, sent)] * 2
    with pytest.raises(TransactionFailed, match="'small' is full"):
        discharge(coordinator, id)
    assert len(small) == 0


def test_symbols_are_understood_as_descriptors(coordinator: Coordinator) -> None:
    declared = answer(coordinator, request(Symbol("amqp:declare:list")))
    assert isinstance(declared, Declared)
    assert answer(coordinator, request(Symbol("amqp:discharge:list"), declared.id, False)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        encode_message(AmqpMessage(section=Section.VALUE, body="text")),
        request(UInt64(0x33), b"id"),
        request(UInt64(0x32)),
        request(UInt64(0x32), "text", False),
        request(UInt64(0x32), b"unknown", False),
    ],
)
def test_other_requests_fail(coordinator: Coordinator, data: bytes) -> None:
    with pytest.raises(TransactionFailed):
        answer(coordinator, data)


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
    declared: list[bytes] = []

    def on_declared(result: object) -> None:
        assert isinstance(result, Declared)
        declared.append(result.id)

    for _ in range(3):
        coordinator.request(request(UInt64(0x31), None), counts, on_declared)
    first, second, third = declared
    small = queue(registry, "small", max_count=0)
    coordinator.find(third).sent.append(admitted(registry, small, message("too much")))
    coordinator.request(request(UInt64(0x32), first, False), counts, lambda _: None)
    coordinator.request(request(UInt64(0x32), second, True), counts, lambda _: None)
    with pytest.raises(TransactionFailed, match="is full"):
        coordinator.request(request(UInt64(0x32), third, False), counts, lambda _: None)
    assert counts == TransactionCounts(started=3, committed=1, rolled_back=2)
