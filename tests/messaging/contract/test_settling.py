"""The methods of received messages: accept, reject, release, modify."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable

import pytest
from messaging.conftest import MakeQueue, Target, transactions

from qmf.messaging import (
    Connection,
    Empty,
    Message,
    ReceivedMessage,
    Session,
    SessionClosed,
    SessionError,
)


def is_empty(session: Session, address: str) -> bool:
    with session.receiver(address) as receiver:
        try:
            receiver.fetch(timeout=0.2).release()
        except Empty:
            return True
    return False


SETTLED: dict[str, Callable[[ReceivedMessage], None]] = {
    "accept": lambda message: message.accept(),
    "accept later": lambda message: message.accept(sync=False),
    "reject": lambda message: message.reject(),
    "reject why": lambda message: message.reject(code="app:bad", text="cannot be used", timeout=10),
}
RETURNED: dict[str, Callable[[ReceivedMessage], None]] = {
    "release": lambda message: message.release(),
    "modify": lambda message: message.modify(),
}


@pytest.mark.parametrize("what", SETTLED)
def test_accepted_and_rejected_messages_leave_the_queue(session: Session, queue: MakeQueue, what: str) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    message = receiver.fetch(timeout=10)
    SETTLED[what](message)
    assert receiver.unsettled() == 0
    session.sync(timeout=10)
    receiver.close()
    assert is_empty(session, address)


@pytest.mark.parametrize(
    "what", ["release", pytest.param("modify", marks=pytest.mark.only("embedded", "qpidd", "artemis"))]
)
def test_released_and_modified_messages_come_again(session: Session, queue: MakeQueue, what: str) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    RETURNED[what](receiver.fetch(timeout=10))
    again = receiver.fetch(timeout=10)
    assert again.content == "a"
    again.accept()


@pytest.mark.only("embedded", "qpidd", "artemis")
@pytest.mark.parametrize("failed", [True, False])
def test_a_modified_message_says_whether_the_attempt_counts(session: Session, queue: MakeQueue, failed: bool) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    receiver.fetch(timeout=10).modify(failed=failed)
    again = receiver.fetch(timeout=10)
    assert again.redelivered == failed
    again.accept()


@pytest.mark.only("embedded")
@pytest.mark.parametrize("reliability", ["at-least-once", "exactly-once"])
def test_a_message_can_be_kept_from_one_receiver(session: Session, queue: MakeQueue, reliability: str) -> None:
    name, _, options = queue().partition("; {")
    address = f"{name}; {{link: {{reliability: {reliability}}}, {options}"
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    receiver.fetch(timeout=10).modify(undeliverable_here=True)
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    other = session.receiver(name)
    assert other.fetch(timeout=10).content == "a"
    session.acknowledge()


def test_a_message_is_settled_once(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=2)
    sender.send("a")
    message = receiver.fetch(timeout=10)
    message.accept()
    for settle in (message.accept, message.reject, message.release, message.modify):
        with pytest.raises(SessionError, match="not waiting for acknowledgement"):
            settle()


def test_one_that_came_settled_needs_nothing(session: Session, queue: MakeQueue) -> None:
    name, _, options = queue().partition("; {")
    address = f"{name}; {{link: {{reliability: unreliable}}, {options}"
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    message = receiver.fetch(timeout=10)
    for settle in (message.accept, message.reject, message.release, message.modify):
        settle()
    assert message.content == "a"


def test_its_session_alone_knows_it(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    session, other = connection.session(), connection.session()
    session.sender(address).send("a")
    message = session.receiver(address).fetch(timeout=10)
    with pytest.raises(SessionError, match="not waiting for acknowledgement in session"):
        other.acknowledge(message)
    message.accept()


def test_after_the_end_of_its_session_it_cannot_be_settled(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    session = connection.session()
    session.sender(address).send("a")
    message = session.receiver(address).fetch(timeout=10)
    session.close()
    with pytest.raises(SessionClosed):
        message.accept()


def test_a_message_of_the_program_has_no_session() -> None:
    assert not hasattr(Message("a"), "accept")
    copied = pickle.loads(pickle.dumps(ReceivedMessage("a")))
    with pytest.raises(SessionError, match="was not received"):
        copied.accept()


@transactions
def test_within_a_transaction(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    session = connection.session(transactional=True)
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a", sync=False)
    session.commit()
    message = receiver.fetch(timeout=10)
    with pytest.raises(SessionError, match=r"modify\(\) is not possible in a transaction"):
        message.modify()
    message.accept()
    session.rollback()
    receiver.fetch(timeout=10).accept()
    session.commit()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0.2)


def test_with_asyncio(broker: Target, queue: MakeQueue) -> None:
    async def check() -> None:
        address = queue()
        async with broker.AsyncConnection(broker.url) as connection, connection.session() as session:
            sender, receiver = await session.sender(address), await session.receiver(address)
            await sender.send("a")
            await (await receiver.fetch(timeout=10)).release()
            await (await receiver.fetch(timeout=10)).reject(text="cannot be used")
            await sender.send("b")
            message = await receiver.fetch(timeout=10)
            await message.accept()
            with pytest.raises(SessionError):
                await message.accept()
            with pytest.raises(Empty):
                await receiver.fetch(timeout=0.2)

    asyncio.run(check())


@pytest.mark.only("embedded", "qpidd", "artemis")
def test_modifying_with_asyncio(broker: Target, queue: MakeQueue) -> None:
    async def check() -> None:
        address = queue()
        async with broker.AsyncConnection(broker.url) as connection, connection.session() as session:
            sender, receiver = await session.sender(address), await session.receiver(address)
            await sender.send("a")
            await (await receiver.fetch(timeout=10)).modify()
            again = await receiver.fetch(timeout=10)
            assert again.content == "a"
            await again.accept()

    asyncio.run(check())
