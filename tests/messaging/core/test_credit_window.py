"""What a receiver counts of its credit."""

from __future__ import annotations

from qmf.messaging.core.credit_window import CreditWindow


def test_messages_for_credit_that_was_taken_back_are_counted_once() -> None:
    window = CreditWindow(10)
    window.taken_back = 3
    window.credit = -2
    assert window.count_used_late() == 2
    window.credit = -4
    assert (window.count_used_late(), window.count_used_late()) == (1, 0)


def test_a_broker_that_sends_more_than_it_may_has_used_nothing_that_was_taken_back() -> None:
    window = CreditWindow(10)
    window.credit = -5
    assert window.count_used_late() == 0
    assert window.missing(arrived=15, waiting=0) == 0


def test_without_a_link_there_is_no_credit() -> None:
    window = CreditWindow(10)
    window.credit, window.taken_back = -1, 1
    window.clear()
    assert (window.credit, window.count_used_late()) == (0, 0)


def test_credit_is_due_when_no_more_than_the_threshold_is_left() -> None:
    window = CreditWindow(10)
    assert window.due(arrived=0, waiting=0) == 10
    window.credit = 3
    assert window.due(arrived=2, waiting=0) == 5
    assert window.due(arrived=3, waiting=0) == 0
    assert window.due(arrived=3, waiting=2) == 6  # two messages are as good as fetched
    window.threshold = 1
    assert window.due(arrived=6, waiting=0) == 1
    assert window.due(arrived=8, waiting=0) == 0


def test_a_message_for_which_a_call_waits_does_not_count() -> None:
    window = CreditWindow(1)
    assert window.due(arrived=0, waiting=1) == 2
    window.credit = 1
    assert window.due(arrived=0, waiting=1) == 1
    assert window.due(arrived=0, waiting=0) == 0
    window.resize(0)
    window.credit = 0
    assert (window.due(arrived=0, waiting=0), window.due(arrived=0, waiting=3)) == (0, 3)
