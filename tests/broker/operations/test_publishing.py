"""Who a message says it is from: nobody, or the user that has logged in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker import Broker
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.publishing import WrongUserId, read_and_resolve
from qmf.codec import Message as AmqpMessage
from qmf.codec import Section, encode_message
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message


def encoded(user: bytes | None, message_id: str | None = None, to: str | None = "q") -> bytes:
    return encode_message(
        AmqpMessage(user_id=user, message_id=message_id, to=to, subject="s", section=Section.DATA, body=b"x")
    )


@given(
    user=st.one_of(st.none(), st.binary(max_size=300)),
    message_id=st.one_of(st.none(), st.text(max_size=300)),
    to=st.one_of(st.none(), st.text(max_size=300)),
)
def test_the_user_is_read(user: bytes | None, message_id: str | None, to: str | None) -> None:
    message = read_message(encoded(user, message_id, to), 0.0)
    assert (message.user_id, message.to, message.subject) == (user, to, "s")


@pytest.mark.parametrize(
    ("named", "user", "refused"),
    [(None, "bob", False), (b"", "bob", False), (b"bob", "bob", False), (b"ann", "bob", True), (b"ann", "", False)],
)
def test_another_user_is_refused(named: bytes | None, user: str, refused: bool) -> None:
    registry = NodeRegistry(queues=["q"])
    if refused:
        with pytest.raises(WrongUserId, match="names the user b'ann', and the client is 'bob'"):
            read_and_resolve(registry, encoded(named), None, user=user)
    else:
        message, node = read_and_resolve(registry, encoded(named), None, user=user)
        assert (message.to, node) == ("q", registry.find("q"))


@pytest.mark.parametrize("transactional", [False, True])
async def test_clients(transactional: bool) -> None:
    async with Broker(port=0, users={"bob": "b"}, queues=["q"]) as broker:
        connection = aio.Connection(f"amqp://bob:b@127.0.0.1:{broker.port}")
        await connection.open()
        session = await connection.session(transactional=transactional)
        sender = await session.sender("q")
        await sender.send(Message("x", user_id="bob"), sync=not transactional)

        async def send() -> None:
            await sender.send(Message("y", user_id="ann"), sync=not transactional)
            await session.commit()

        with pytest.raises(MessagingError, match="names the user b'ann'"):
            await send()
        await connection.close()


async def test_where_nobody_logs_in_messages_name_whom_they_want() -> None:
    async with Broker(port=0, queues=["q"]) as broker:
        connection = aio.Connection(broker.url)
        await connection.open()
        sender = await (await connection.session()).sender("q")
        receiver = await (await connection.session()).receiver("q")
        await sender.send(Message("x", user_id="carol"), sync=True)
        assert (await receiver.fetch(5)).user_id == "carol"
        await connection.close()
