"""Groups of messages."""

from __future__ import annotations

from broker.nodes.parts import RecordingConsumer, message, queue, text_of
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.groups import NO_GROUP
from qmf.broker.nodes.queues import Queue


def grouped(groups: str) -> Queue:
    """A queue with a message for each letter, which is its group."""
    it, _, _ = queue(count=None, size=None, group_key="g")
    for number, group in enumerate(groups):
        it.enqueue(message(f"{group}{number}", g=group))
    return it


def consumers(it: Queue, *credits: int) -> list[RecordingConsumer]:
    made = [RecordingConsumer(credit=credit) for credit in credits]
    for consumer in made:
        it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    return made


def test_a_group_belongs_to_the_consumer_that_has_one_of_its_messages() -> None:
    it = grouped("abaab")
    one, two = consumers(it, 9, 9)
    assert (one.delivered, two.delivered) == (["a0", "a2", "a3"], ["b1", "b4"])
    assert it.delivery.groups is not None
    assert it.delivery.groups.owners() == {"a": (3, one), "b": (2, two)}


def test_a_group_is_free_when_its_messages_are_settled() -> None:
    it = grouped("aab")
    one, two = consumers(it, 1, 9)
    assert (one.delivered, two.delivered) == (["a0"], ["b2"])
    it.delivery.accept(one.entries[0])
    it.delivery.dispatch()
    assert two.delivered == ["b2", "a1"]
    for entry in two.entries:
        it.delivery.accept(entry)
    assert it.delivery.groups is not None
    assert it.delivery.groups.owners() == {}


def test_a_group_is_free_when_its_messages_are_given_back_and_keeps_its_order() -> None:
    it = grouped("aaa")
    one, two = consumers(it, 2, 0)
    it.delivery.remove_consumer(one)
    two.credit = 9
    it.delivery.release(reversed(one.entries))
    assert two.delivered == ["a0", "a1", "a2"]


def test_messages_without_a_group_are_a_group() -> None:
    it, _, _ = queue(group_key="g")
    it.enqueue(message("1"))
    it.enqueue(message("2"))
    one, two = consumers(it, 1, 1)
    assert (one.delivered, two.delivered) == (["1"], [])
    assert it.delivery.groups is not None
    assert list(it.delivery.groups.owners()) == [NO_GROUP]


@given(st.text("abc", max_size=20), st.lists(st.tuples(st.integers(0, 1), st.sampled_from("agr")), max_size=40))
def test_no_two_consumers_have_messages_of_a_group_and_their_order_is_kept(
    groups: str, steps: list[tuple[int, str]]
) -> None:
    it = grouped(groups)
    both = consumers(it, 2, 2)
    accepted: list[str] = []
    for number, step in steps:
        consumer = both[number]
        if consumer.entries and step != "g":
            entry = consumer.entries.pop(0)
            if step == "a":
                accepted.append(text_of(entry.message))
                it.delivery.accept(entry)
            else:
                it.delivery.release([entry])
                continue
        consumer.credit = 2 - len(consumer.entries)
        it.delivery.dispatch()
        held = [{text[0] for text in one.delivered} for one in both]
        assert not held[0] & held[1]
    assert it.contents.depth.count == len(groups) - len(accepted)
