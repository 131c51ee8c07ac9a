"""An attribute that the API does not have cannot be set: a mistyped name is an error, with similar ones."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest

from qmf.messaging import Connection, Message, aio


def set_unknown(target: object, name: str, similar: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"^'{type(target).__name__}' object has no attribute '{name}'(.*)$"
    ) as found:
        setattr(target, name, True)
    assert ("did you mean" in str(found.value)) == bool(similar)
    assert similar in str(found.value)
    assert not hasattr(target, name)


NAMES = [
    ("connection", "sesion", "session"),
    ("session", "set_message_received_handle", "set_message_received_handler"),
    ("sender", "durible", "durable"),
    ("receiver", "capacty", "capacity"),
    ("message", "subjekt", "subject"),
    ("message", "propertys", "properties"),
    ("sender", "zzz", ""),
    ("message", "zzz", ""),
]


@pytest.mark.parametrize(("kind", "name", "similar"), NAMES)
def test_unknown_attributes_are_refused(embedded: str, kind: str, name: str, similar: str) -> None:
    with Connection.establish(embedded, timeout=10) as connection:
        session = connection.session()
        made = {
            "connection": connection,
            "session": session,
            "sender": session.sender("attributes; {create: always}"),
            "receiver": session.receiver("attributes"),
            "message": Message(),
        }
        set_unknown(made[kind], name, similar)


@pytest.mark.parametrize(("kind", "name", "similar"), NAMES)
def test_those_of_asyncio_as_well(embedded: str, kind: str, name: str, similar: str) -> None:
    async def check() -> None:
        async with aio.Connection(embedded) as connection:
            session = await connection.session()
            made = {
                "connection": connection,
                "session": session,
                "sender": await session.sender("attributes; {create: always}"),
                "receiver": await session.receiver("attributes"),
                "message": Message(),
            }
            set_unknown(made[kind], name, similar)

    asyncio.run(check())


def test_a_method_cannot_be_replaced(embedded: str) -> None:
    with Connection.establish(embedded, timeout=10) as connection, pytest.raises(AttributeError, match="read-only"):
        connection.session = None  # type: ignore[method-assign, assignment]


def test_attributes_of_a_subclass_are_its_own() -> None:
    class Order(Message):
        number = 0

    order = Order("tea")
    order.number = 5
    order.note = "late"
    assert (order.number, order.content, vars(order)["note"]) == (5, "tea", "late")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))])
def test_a_copy_of_a_message_is_one(again: object) -> None:
    message = Message("tea", subject="order", reply_to="answers/key", properties={"n": 1})
    copied = again(message)  # type: ignore[operator]
    copied.subject = "other"
    assert (copied.content, copied.reply_to, copied.properties, message.subject) == (
        "tea",
        "answers/key",
        {"n": 1},
        "order",
    )
