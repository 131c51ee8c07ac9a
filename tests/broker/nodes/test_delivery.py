"""Delivery by itself: consumers that may not have an entry again."""

from __future__ import annotations

from broker.nodes.parts import Clock, RecordingConsumer, message

from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.delivery import QueueDelivery
from qmf.broker.nodes.settings import QueueSettings


def make(texts: str) -> tuple[Contents, QueueDelivery]:
    settings, counters = QueueSettings(), BrokerCounters()
    contents = Contents(settings, counters, Clock(), lambda _: None)
    contents.add_all([message(text) for text in texts])
    return contents, QueueDelivery(contents, settings, counters)


def test_a_barred_consumer_does_not_get_the_entry_again_and_another_one_does() -> None:
    contents, delivery = make("ab")
    one, other = RecordingConsumer(credit=1), RecordingConsumer()
    delivery.add_consumer(one)
    delivery.dispatch()
    (entry,) = one.entries
    delivery.exclude(entry, one)
    one.credit = 9
    delivery.release([entry])
    assert (one.delivered, delivery.plain) == (["a", "b"], False)
    delivery.add_consumer(other)
    delivery.dispatch()
    assert other.delivered == ["a"]
    assert contents.observers.need_each
    delivery.accept(entry)
    assert not contents.observers.all


def test_who_left_is_barred_from_nothing() -> None:
    contents, delivery = make("a")
    one, other = RecordingConsumer(credit=1), RecordingConsumer(credit=0)
    for consumer in (one, other):
        delivery.add_consumer(consumer)
    delivery.dispatch()
    (entry,) = one.entries
    for consumer in (one, other):
        delivery.exclude(entry, consumer)
        delivery.exclude(entry, consumer)
    delivery.release([entry])
    delivery.remove_consumer(one)
    other.credit = 1
    delivery.dispatch()
    assert other.delivered == []
    delivery.remove_consumer(other)
    assert (delivery.plain, contents.observers.all) == (True, ())
