"""What becomes of messages that are acknowledged, released, rejected, or left."""

from __future__ import annotations

import pytest
from messaging.conftest import MakeQueue, Target

from qmf.messaging import (
    REJECTED,
    RELEASED,
    Disposition,
    Empty,
    Message,
    Session,
    SessionError,
)


def test_what_is_not_acknowledged_comes_again(broker: Target, queue: MakeQueue) -> None:
    address = queue()
    with broker.Connection.establish(broker.url, timeout=10) as first:
        session = first.session()
        session.sender(address).send("once")
        assert session.receiver(address).fetch(timeout=10).content == "once"
    with broker.Connection.establish(broker.url, timeout=10) as second:
        session = second.session()
        assert session.receiver(address).fetch(timeout=10).content == "once"
        session.acknowledge()
    with broker.Connection.establish(broker.url, timeout=10) as third, pytest.raises(Empty):
        third.session().receiver(address).fetch(timeout=0)


def test_released_messages_come_again_and_rejected_ones_do_not(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    message = receiver.fetch(timeout=10)
    session.acknowledge(message, Disposition(RELEASED))
    message = receiver.fetch(timeout=10)
    assert message.content == "a"
    session.acknowledge(message, Disposition(REJECTED, code="app:bad", text="cannot be used"))
    with pytest.raises(Empty):
        receiver.fetch(timeout=0.2)


@pytest.mark.only("embedded", "qpidd", "artemis")
def test_a_release_can_count_as_a_delivery(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    session.acknowledge(receiver.fetch(timeout=10), Disposition(RELEASED, set_redelivered=True))
    message = receiver.fetch(timeout=10)
    assert message.redelivered
    session.acknowledge()


def test_acknowledging_one_message_leaves_the_others(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=10)
    for text in "abc":
        sender.send(text)
    a, b, c = (receiver.fetch(timeout=10) for _ in range(3))
    session.acknowledge(b)
    with pytest.raises(SessionError, match="not waiting for acknowledgement"):
        session.acknowledge(b)
    session.acknowledge(a)
    session.acknowledge(c, sync=False)
    assert receiver.unsettled() == 0
    with pytest.raises(SessionError):
        session.acknowledge(Message("never received"))


@pytest.mark.parametrize("disposition", [None, Disposition(RELEASED), Disposition(REJECTED)])
@pytest.mark.parametrize("sync", [False, True])
def test_a_message_that_came_settled_needs_no_acknowledgement(
    session: Session, queue: MakeQueue, disposition: Disposition | None, sync: bool
) -> None:
    address = queue()
    name, options = address.split("; {")
    sender, receiver = (
        session.sender(address),
        session.receiver(f"{name}; {{link: {{reliability: unreliable}}, {options}"),
    )
    for text in "ab":
        sender.send(text)
        message = receiver.fetch(timeout=10)
        assert message.content == text
        assert receiver.unsettled() == 0
        session.acknowledge(message, disposition, sync=sync)
        session.acknowledge(message, disposition, sync=sync)
