"""Transactions take effect as a whole, or not at all."""

from __future__ import annotations

import pytest
from messaging.conftest import MakeQueue, transactions

from qmf.messaging import (
    REJECTED,
    RELEASED,
    Connection,
    Disposition,
    Empty,
    NontransactionalSession,
    Session,
    SessionError,
    TransactionError,
)


@transactions
def test_a_transaction_takes_effect_as_a_whole(connection: Connection, queue: MakeQueue) -> None:
    source, target = queue(), queue()
    plain = connection.session()
    plain.sender(source).send("in")
    watcher = plain.receiver(target)
    session = connection.session(transactional=True)
    sender, receiver = session.sender(target), session.receiver(source)
    assert receiver.fetch(timeout=10).content == "in"
    session.acknowledge()
    sender.send("out")
    with pytest.raises(Empty):
        watcher.fetch(timeout=0)
    session.commit(timeout=10)
    assert watcher.fetch(timeout=10).content == "out"
    plain.acknowledge()
    with pytest.raises(Empty):
        plain.receiver(source).fetch(timeout=0)


@transactions
def test_a_rollback_undoes_everything(connection: Connection, queue: MakeQueue) -> None:
    source, target = queue(), queue()
    plain = connection.session()
    for text in "ab":
        plain.sender(source).send(text)
    watcher = plain.receiver(target)
    session = connection.session(transactional=True)
    sender, receiver = session.sender(target), session.receiver(source, capacity=10)
    assert receiver.fetch(timeout=10).content == "a"
    session.acknowledge()
    assert receiver.fetch(timeout=10).content == "b"
    sender.send("lost")
    session.rollback(timeout=10)
    with pytest.raises(Empty):
        watcher.fetch(timeout=0)
    assert [receiver.fetch(timeout=10).content for _ in range(2)] == ["a", "b"]
    session.acknowledge()
    session.commit(timeout=10)
    with pytest.raises(Empty):
        plain.receiver(source).fetch(timeout=0)


@pytest.mark.only("embedded", "qpidd")
@pytest.mark.parametrize("sync", [True, False])
def test_messages_are_rejected_and_released_in_a_transaction(
    connection: Connection, queue: MakeQueue, sync: bool
) -> None:
    address = queue()
    plain = connection.session()
    for text in ("rejected", "released", "accepted"):
        plain.sender(address).send(text)
    session = connection.session(transactional=True)
    receiver = session.receiver(address)
    dispositions = [Disposition(REJECTED, code="shop:no-such-item", text="no such item"), Disposition(RELEASED), None]
    messages = [receiver.fetch(timeout=10) for _ in dispositions]
    assert [message.content for message in messages] == ["rejected", "released", "accepted"]
    for message, disposition in zip(messages, dispositions, strict=True):
        session.acknowledge(message, disposition, sync=sync)
    session.commit(timeout=10)
    session.close()
    left = plain.receiver(address)
    again = left.fetch(timeout=10)
    assert again.content == "released"
    again.accept()
    with pytest.raises(Empty):
        left.fetch(timeout=0)


@pytest.mark.only("embedded", "artemis")  # qpidd rejects at once, not with the transaction
def test_a_rollback_undoes_a_rejection(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    session = connection.session(transactional=True)
    connection.session().sender(address).send("x")
    receiver = session.receiver(address)
    session.acknowledge(receiver.fetch(timeout=10), Disposition(REJECTED))
    session.rollback(timeout=10)
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()
    session.commit(timeout=10)


@pytest.mark.only("embedded", "qpidd")
@pytest.mark.parametrize("option", ["set_redelivered", "undeliverable_here"])
@pytest.mark.parametrize("sync", [True, False])
def test_a_release_with_changes_is_refused_in_a_transaction(
    connection: Connection, queue: MakeQueue, option: str, sync: bool
) -> None:
    address = queue()
    session = connection.session(transactional=True)
    connection.session().sender(address).send("x")
    message = session.receiver(address).fetch(timeout=10)
    with pytest.raises(SessionError, match=f"{option}: not possible in a transaction"):
        session.acknowledge(message, Disposition(RELEASED, **{option: True}), sync=sync)
    session.acknowledge(message, Disposition(RELEASED, **{option: False}), sync=sync)
    session.commit(timeout=10)
    session.close()
    again = connection.session().receiver(address).fetch(timeout=10)
    assert again.content == "x"
    again.accept()


@pytest.mark.only("artemis")
def test_a_broker_that_would_drop_what_is_released_is_not_asked_to(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    session = connection.session(transactional=True)
    connection.session().sender(address).send("x")
    receiver = session.receiver(address)
    message = receiver.fetch(timeout=10)
    refusal = "apache-activemq-artemis drops what a transaction releases; roll back"
    with pytest.raises(SessionError, match=refusal):
        message.release()
    with pytest.raises(SessionError, match=refusal):
        session.acknowledge(message, Disposition(RELEASED))
    session.rollback(timeout=10)
    again = receiver.fetch(timeout=10)
    assert again.content == "x"
    again.accept()
    session.commit(timeout=10)


@transactions
def test_an_open_transaction_ends_with_its_session(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    plain = connection.session()
    receiver = plain.receiver(address)
    session = connection.session(transactional=True)
    session.sender(address).send("never")
    session.close()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0.2)


def test_commit_needs_a_transactional_session(session: Session) -> None:
    with pytest.raises(NontransactionalSession):
        session.commit()
    with pytest.raises(NontransactionalSession):
        session.rollback()


@pytest.mark.only("rabbitmq")
def test_transactions_are_refused_where_there_are_none(connection: Connection, queue: MakeQueue) -> None:
    with pytest.raises(TransactionError, match="transactions refused by the broker"):
        connection.session(transactional=True).sender(queue(), timeout=10)
