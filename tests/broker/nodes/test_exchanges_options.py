"""Options of exchanges: numbered messages, initial values, exclusive bindings, alternate exchanges, deletion."""

from __future__ import annotations

import itertools

import pytest
from broker.nodes.parts import encoded

from qmf.broker.nodes.bindings import EXCLUSIVE_BINDING, BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import BindingExists, ExchangeInUse, NodeRegistry, NoSuchExchange
from qmf.broker.nodes.router import RoutingResult
from qmf.broker.nodes.settings import ExchangeSettings, QueueLimits, QueueSettings


def message(subject: str = "", **headers: object) -> Message:
    return read_message(encoded(subject, subject, **headers), 0.0)


def exchange(registry: NodeRegistry, name: str = "x", kind: str = "direct", **settings: object) -> Exchange:
    declared = ExchangeSettings(kind, **settings)  # type: ignore[arg-type]
    made = registry.create(name, NodeDeclaration(exchange=declared))
    assert isinstance(made, Exchange)
    return made


def subjects(it: Queue) -> list[str]:
    return [entry.message.subject for entry in it.contents.waiting()]


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", "headers"])
def test_messages_are_numbered_from_0_and_numbers_wrap(kind: str) -> None:
    registry = NodeRegistry()
    it, queue = exchange(registry, kind=kind, sequence=True), registry.declare_queue("q")
    registry.bind(it, queue, BindingSpec("k"))
    for number in (0, 0, (1 << 63) - 1, None):
        it.sequence = number or it.sequence
        registry.publish(it, message("k", colour="red"))
    found = [entry.message for entry in queue.contents.waiting()]
    numbers = [0, 1, (1 << 63) - 1, -(1 << 63)]
    assert [one.headers["qpid.msg_sequence"] for one in found] == numbers
    assert [one.fields.message_annotations["qpid.msg_sequence"] for one in found] == numbers
    assert {one.headers["colour"] for one in found} == {"red"}


def test_a_number_replaces_that_of_another_exchange() -> None:
    first = message("k", colour="red").with_sequence("qpid.msg_sequence", 5)
    second = first.with_sequence("qpid.msg_sequence", 6)
    assert second.headers == {"colour": "red", "qpid.msg_sequence": 6}
    assert second.fields.message_annotations == {"qpid.msg_sequence": 6}
    assert (second.subject, len(second.data)) == ("k", len(first.data))


def test_a_new_binding_gets_the_last_message_if_it_matches() -> None:
    registry = NodeRegistry()
    it = exchange(registry, kind="topic", initial_value=True)
    one, two, other = (registry.declare_queue(name) for name in ("one", "two", "other"))
    registry.bind(it, one, BindingSpec("a.#"))
    for key in ("a.1", "a.2"):
        registry.publish(it, message(key))
    registry.bind(it, two, BindingSpec("*.2"))
    registry.bind(it, other, BindingSpec("b"))
    assert (subjects(one), subjects(two), subjects(other)) == (["a.1", "a.2"], ["a.2"], [])


def test_an_exclusive_binding_replaces_the_others_with_its_key_and_no_message_is_lost_or_doubled() -> None:
    registry = NodeRegistry()
    it = exchange(registry)
    queues = [registry.declare_queue(str(number)) for number in range(3)]
    registry.bind(it, queues[0], BindingSpec("other"))
    for number, queue in zip(range(9), itertools.cycle(queues), strict=False):
        registry.bind(it, queue, BindingSpec("k", {EXCLUSIVE_BINDING: 1}))
        assert [binding.queue for binding in it.route(message("k"))] == [queue]
        registry.publish(it, message("k", number=number))
    assert [len(queue.contents) for queue in queues] == [3, 3, 3]
    assert it.binding_count == 2
    registry.bind(it, queues[0], BindingSpec("k"))
    assert len(it.route(message("k"))) == 2


def test_what_no_binding_matches_goes_to_the_alternate_exchange_and_no_further() -> None:
    registry = NodeRegistry()
    last = exchange(registry, "last", "fanout")
    alternate = exchange(registry, "alternate", "direct", alternate="last")
    it = exchange(registry, "x", "direct", alternate="alternate")
    queue, unused = registry.declare_queue("q"), registry.declare_queue("unused")
    registry.bind(alternate, queue, BindingSpec("k"))
    registry.bind(last, unused, BindingSpec())
    assert registry.publish(it, message("k")) is RoutingResult.ROUTED
    assert registry.publish(it, message("other")) is RoutingResult.DISCARDED
    assert (subjects(queue), len(unused.contents), registry.counters.discarded) == (["k"], 0, 1)
    assert (it.counters.discarded, alternate.counters.received) == (2, 2)
    for one in (alternate, last):
        with pytest.raises(ExchangeInUse, match=f"Cannot delete {one.name}, in use as alternate-exchange"):
            registry.delete(one)
    for one in (it, alternate, last):
        registry.delete(one)
    with pytest.raises(NoSuchExchange, match="Exchange not found: last"):
        exchange(registry, alternate="last")


def test_exchanges_are_deleted_after_their_last_use() -> None:
    registry = NodeRegistry()
    it = exchange(registry, auto_delete=True)
    queue = registry.declare_queue("q")
    other = registry.declare_queue("other", QueueSettings(alternate="x"))
    registry.bind(it, queue, BindingSpec("k"))
    registry.unbind(it, queue, "k")
    assert registry.find("x") is it
    registry.bind(it, queue, BindingSpec("k"))
    registry.delete_queue(other)
    assert registry.find("x") is it
    registry.delete_queue(queue)
    assert registry.find("x") is None


def test_invalid_arguments_of_a_binding_are_refused() -> None:
    registry = NodeRegistry(queues=["q"])
    queue = registry.find("q")
    assert isinstance(queue, Queue)
    it = exchange(registry, kind="headers")
    with pytest.raises(BindingRefused, match="Invalid or missing x-match value"):
        registry.bind(it, queue, BindingSpec("k", {"x-match": "some"}))
    assert it.binding_count == 0
    registry.bind(it, queue, BindingSpec("k", {"x-match": "any", "a": 1}))
    with pytest.raises(BindingExists):
        registry.bind(it, queue, BindingSpec("k", {"x-match": "all", "a": 1}))


def test_a_queue_with_several_matching_bindings_gets_a_message_once_and_the_first_counts_it() -> None:
    registry = NodeRegistry()
    it, queue = exchange(registry, kind="topic"), registry.declare_queue("q")
    for key in ("a.#", "#", "*.b"):
        registry.bind(it, queue, BindingSpec(key))
    registry.publish(it, message("a.b"))
    assert len(queue.contents) == 1
    assert sum(binding.matched for binding in it.bindings(queue)) == 1


def test_a_message_that_one_of_several_queues_refuses_is_refused_to_its_sender() -> None:
    registry = NodeRegistry()
    it = exchange(registry, kind="fanout")
    small, large = (
        registry.declare_queue("small", QueueSettings(limits=QueueLimits(1))),
        registry.declare_queue("large"),
    )
    for queue in (small, large):
        registry.bind(it, queue, BindingSpec())
    assert registry.publish(it, message("1")) is RoutingResult.ROUTED
    assert registry.publish(it, message("2")) is RoutingResult.QUEUE_FULL
    assert registry.refusal.startswith("Maximum depth exceeded on small")
    assert (len(small.contents), len(large.contents), registry.counters.rejected) == (1, 2, 1)


def test_of_many_bindings_to_a_topic_exchange_those_that_match_count() -> None:
    registry = NodeRegistry()
    it, queue = exchange(registry, kind="topic"), registry.declare_queue("q")
    for number in range(2_000):
        registry.bind(it, queue, BindingSpec(f"a.{number}.*"))
    registry.publish(it, message("a.77.x"))
    assert [binding.spec.key for binding in it.bindings(queue) if binding.matched] == ["a.77.*"]
    assert len(queue.contents) == 1
