"""Transactions take effect as a whole, or not at all."""

from __future__ import annotations

import pytest
from messaging.conftest import MakeQueue, transactions

from qmf.messaging import (
    Connection,
    Empty,
    NontransactionalSession,
    Session,
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
