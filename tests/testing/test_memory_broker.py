"""The broker for tests of programs: what it adds to the contract of messaging, which runs on it as well."""

from __future__ import annotations

import asyncio
import threading

import pytest

from qmf import messaging
from qmf.messaging import AuthenticationFailure, ConnectError, Connection, MessagingError, NotFound, aio
from qmf.testing import MemoryBroker
from qmf.testing.fixtures import qmf_memory_broker

__all__ = ["qmf_memory_broker"]


def program(url: str) -> list[str]:
    """A program as it is tested: it makes its connection itself."""
    with messaging.Connection.establish(url, timeout=10) as connection, connection.session() as session:
        session.sender("orders; {create: always}").send("tea")
        return [session.receiver("orders").fetch(timeout=10).content]


def test_a_program_can_be_given_the_class(qmf_memory_broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messaging, "Connection", qmf_memory_broker.Connection)
    assert program("amqp://broker.example.com") == ["tea"]
    waiting = qmf_memory_broker.messages("orders")
    assert [(message.content, message.redelivered) for message in waiting] == [("tea", True)]


def test_brokers_have_nothing_in_common(qmf_memory_broker: MemoryBroker) -> None:
    with MemoryBroker(queues=["q"]) as other, other.connection() as connection:
        connection.session().sender("q").send("a")
        assert [message.content for message in other.messages("q")] == ["a"]
    with pytest.raises(NotFound):
        qmf_memory_broker.messages("q")


def test_both_forms_share_a_broker(qmf_memory_broker: MemoryBroker) -> None:
    async def receive() -> object:
        async with await qmf_memory_broker.async_connection() as connection, connection.session() as session:
            assert isinstance(connection, aio.Connection)
            receiver = await session.receiver("q")
            message = await receiver.fetch(timeout=10)
            await message.accept()
            return message.content

    with qmf_memory_broker.connection() as connection:
        assert isinstance(connection, Connection)
        connection.session().sender("q; {create: always}").send({"a": 1})
        assert asyncio.run(receive()) == {"a": 1}
    assert qmf_memory_broker.messages("q") == []


def test_a_cut_is_the_loss_of_the_connection(qmf_memory_broker: MemoryBroker) -> None:
    with qmf_memory_broker.connection(reconnect=True) as connection, qmf_memory_broker.connection() as lost:
        session = connection.session()
        receiver = session.receiver("q; {create: always}")
        session.sender("q").send("a")
        assert receiver.fetch(timeout=10).content == "a"
        qmf_memory_broker.disconnect()
        again = receiver.fetch(timeout=10)
        assert (again.content, again.redelivered) == ("a", True)
        again.accept()
        with pytest.raises(MessagingError):
            lost.session().sender("q")


def test_options_are_those_of_the_broker() -> None:
    with MemoryBroker(users={"ann": "secret"}) as broker:
        with pytest.raises(AuthenticationFailure):
            broker.connection(username="ann", password="wrong", timeout=10)
        broker.connection(username="ann", password="secret", timeout=10).close()


def test_nothing_is_left_after_it() -> None:
    threads = set(threading.enumerate())
    with MemoryBroker() as broker:
        connection = broker.connection(timeout=10)
    with pytest.raises(MessagingError):
        connection.session().sender("q")
    connection.close()
    broker.close()
    assert set(threading.enumerate()) == threads
    with pytest.raises(ConnectError, match="the broker is not started"):
        broker.connection()
