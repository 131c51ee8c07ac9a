"""The contents of a queue by themselves."""

from __future__ import annotations

from broker.nodes.parts import Clock, message, text_of

from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.depth import Depth
from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, GONE, Entry
from qmf.broker.nodes.last_values import Replacement
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.settings import QueueLimits, QueueSettings


def make(settings: QueueSettings | None = None, within: Depth | None = None) -> Contents:
    return Contents(settings or QueueSettings(), BrokerCounters(), Clock(), lambda _: None, within=within)


def add(contents: Contents, one: Message) -> Entry:
    entry = contents.add(one, len(one.data))
    assert entry is not None
    return entry


def test_entries_are_available_acquired_or_gone() -> None:
    total = Depth(QueueLimits(9, None))
    contents = make(within=total)
    first, second = add(contents, message("a")), add(contents, message("bb"))
    contents.acquire(first, "consumer")
    assert (first.state, first.acquirer, contents.acquired_count, len(contents)) == (ACQUIRED, "consumer", 1, 1)
    contents.restore(first)
    assert (first.state, first.acquirer, contents.waiting()) == (AVAILABLE, None, [first, second])
    contents.remove(first)
    contents.remove(first)
    assert (first.state, contents.depth.count, contents.depth.size, total.count, total.size) == (GONE, 1, 2, 1, 2)


def test_messages_in_one_go_are_refused_where_they_have_to_be_looked_at() -> None:
    contents = make(QueueSettings(limits=QueueLimits(3, None)))
    late = message("c")
    late.deliver_at = 5.0
    assert not contents.add_all([message("a"), late])
    assert contents.add_all([message("a"), message("b")])
    assert not contents.add_all([message("c"), message("d")])
    assert ([text_of(entry.message) for entry in contents.waiting()], contents.position) == (["a", "b"], 2)


def test_what_passes_through_is_counted_and_has_no_place() -> None:
    contents = make()
    gone, acquired = contents.pass_through(message("a"), 1, None), contents.pass_through(message("b"), 1, "consumer")
    assert (gone.state, acquired.state, contents.depth.count, len(contents)) == (GONE, ACQUIRED, 1, 0)
    assert (contents.counters.enqueues, contents.counters.acquires) == (2, 2)
    contents.restore(acquired)
    assert contents.waiting() == [acquired]


def test_a_message_that_takes_the_place_of_another_has_its_entry() -> None:
    contents = make(QueueSettings(value_key="key", replacement=Replacement.IN_PLACE))
    entry = add(contents, message("old", key="k"))
    assert contents.add(message("new", key="k"), 3) is None
    assert (text_of(entry.message), contents.depth.count, contents.counters.replaced) == ("new", 1, 1)


def test_the_oldest_is_given_up_wherever_it_is() -> None:
    contents = make()
    first, second = add(contents, message("a")), add(contents, message("b"))
    contents.acquire(first, "consumer")
    assert contents.oldest() is first
    contents.give_up(first)
    assert (contents.oldest(), contents.counters.dropped) == (second, 0)
    contents.give_up(second)
    assert (contents.oldest(), contents.counters.dropped) == (None, 1)
    assert [text_of(one) for one in contents.given_up] == ["a", "b"]
