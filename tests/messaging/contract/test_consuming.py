"""Consumers: what becomes of messages, on every broker, whether it can delay them or not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from messaging.conftest import MakeQueue, Target
from support.waiting import until, wait_until

from qmf.messaging import (
    JSON,
    Connection,
    Consumer,
    Empty,
    Failure,
    Fate,
    InvalidOption,
    Message,
    MessagingError,
    RejectMessage,
    Retry,
    RetryLater,
    TooManyDeliveries,
    aio,
)

QUICK = Retry(limit=2, delay=0.01)


class Run:
    """A consumer on a thread of its own, and what it has done."""

    def __init__(
        self, connection: Connection, source: str, handler: Callable[[Message], object], options: dict[str, Any]
    ) -> None:
        self.failures: list[Failure] = []
        self.errors: list[Exception] = []
        options = {"retry": QUICK, "on_failure": self.failures.append, **options}
        self.consumer: Consumer = Consumer(connection, source, handler, **options)
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.consumer.run()
        except Exception as error:  # noqa: BLE001 - compared by the test
            self.errors.append(error)

    def __enter__(self) -> Run:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()


def run(connection: Connection, source: str, handler: Callable[[Message], object], **options: Any) -> Run:
    return Run(connection, source, handler, options)


def left(connection: Connection, address: str) -> list[Message]:
    """The messages of a queue, which leave it."""
    found: list[Message] = []
    session = connection.session()
    receiver = session.receiver(address, capacity=10)
    try:
        while True:
            found.append(receiver.fetch(timeout=0.3))
    except Empty:
        session.acknowledge()
        session.close()
    return found


def send(connection: Connection, address: str, *messages: object) -> None:
    with connection.session() as session, session.sender(address) as sender:
        for message in messages:
            sender.send(message)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_each_message_is_handled_once(connection: Connection, queue: MakeQueue, concurrency: int) -> None:
    address, handled = queue(), list[Any]()
    send(connection, address, *(str(number) for number in range(20)))
    with run(connection, address, lambda message: handled.append(message.content), concurrency=concurrency) as it:
        wait_until(lambda: len(handled) == 20)
    assert sorted(handled, key=int) == [str(number) for number in range(20)]
    assert (it.failures, it.errors, left(connection, address)) == ([], [], [])


def test_as_many_at_the_same_time_as_it_says(connection: Connection, queue: MakeQueue) -> None:
    address, together, passed = queue(), threading.Barrier(4), list[int]()
    send(connection, address, *"abcd")
    with run(connection, address, lambda _: passed.append(together.wait(20)), concurrency=4) as it:
        wait_until(lambda: len(passed) == 4)
    assert it.failures == []
    assert left(connection, address) == []


def test_coroutines_are_handlers_as_well(connection: Connection, queue: MakeQueue) -> None:
    address, handled = queue(), list[Any]()

    async def handle(message: Message) -> None:
        await asyncio.sleep(0)
        handled.append(message.content)

    send(connection, address, *"ab")
    with run(connection, address, handle):
        wait_until(lambda: len(handled) == 2)
    assert left(connection, address) == []


def test_a_message_is_tried_again_and_then_a_dead_letter(connection: Connection, queue: MakeQueue) -> None:
    address, dead = queue(), queue()
    attempts: dict[Any, int] = {}

    def handle(message: Message) -> None:
        attempts[message.content] = attempts.get(message.content, 0) + 1
        if message.content == "never" or attempts[message.content] < 3:
            raise ValueError(f"not {message.content}")

    send(connection, address, Message("third", id="1"), Message("never", id="2", properties={"own": 5}, subject="s"))
    with run(connection, address, handle, dead_letters=dead) as it:
        wait_until(lambda: attempts == {"third": 3, "never": 3})
        wait_until(lambda: len(it.failures) == 5)
    fates = [(failure.message.content, failure.attempt, failure.fate) for failure in it.failures]
    assert sorted(fates, key=lambda item: (item[0], item[1])) == [
        ("never", 1, Fate.RETRIED),
        ("never", 2, Fate.RETRIED),
        ("never", 3, Fate.DEAD_LETTER),
        ("third", 1, Fate.RETRIED),
        ("third", 2, Fate.RETRIED),
    ]
    assert [failure.delay for failure in it.failures if failure.message.content == "third"] == [0.01, 0.02]
    (letter,) = left(connection, dead)
    assert (letter.content, letter.id, letter.subject, letter.properties["own"]) == ("never", "2", "s", 5)
    assert letter.properties["qmf.error"] == "ValueError: not never"
    assert letter.properties["qmf.attempts"] == 3
    assert letter.properties["qmf.source"] == address.partition(";")[0]
    assert left(connection, address) == []


@pytest.mark.parametrize("rejected", [RejectMessage(text="cannot be used"), RetryLater(text="later", delay=0.0)])
def test_a_handler_says_what_is_to_become_of_it(
    connection: Connection, queue: MakeQueue, rejected: MessagingError
) -> None:
    address, dead, count = queue(), queue(), 1 if isinstance(rejected, RejectMessage) else 3
    send(connection, address, "a")

    def handle(_: Message) -> None:
        raise rejected

    with run(connection, address, handle, dead_letters=dead) as it:
        wait_until(lambda: len(it.failures) == count)
    assert it.failures[-1].fate is Fate.DEAD_LETTER
    assert all(failure.delay == 0 for failure in it.failures)
    assert len(left(connection, dead)) == 1


@pytest.mark.only("embedded", "qpidd", "artemis")
def test_a_message_that_was_delivered_too_often_is_given_up_without_its_handler(
    connection: Connection, queue: MakeQueue
) -> None:
    address, dead = queue(), queue()
    handled: list[Message] = []
    send(connection, address, "poison")
    with connection.session() as session:
        receiver = session.receiver(address)
        for _ in range(2):
            receiver.fetch(timeout=10).modify()
    send(connection, address, "good")
    with run(connection, address, handled.append, dead_letters=dead, max_deliveries=2) as it:
        wait_until(lambda: len(it.failures) == 1 and len(handled) == 1)
    assert [message.content for message in handled] == ["good"]
    (failure,) = it.failures
    assert (failure.message.content, failure.attempt, failure.fate) == ("poison", 2, Fate.DEAD_LETTER)
    assert isinstance(failure.error, TooManyDeliveries)
    (letter,) = left(connection, dead)
    assert (letter.content, letter.properties["qmf.attempts"]) == ("poison", 2)
    assert letter.properties["qmf.error"] == "TooManyDeliveries: too many deliveries without an outcome deliveries=2"


def test_without_dead_letters_it_is_rejected(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    send(connection, address, "a")

    def handle(_: Message) -> None:
        raise SystemExit(3)

    with run(connection, address, handle, retry=Retry(limit=0)) as it:
        wait_until(lambda: len(it.failures) == 1)
    assert it.failures[0].fate is Fate.REJECTED
    assert left(connection, address) == []


def test_content_that_cannot_be_decoded_is_a_dead_letter_as_it_came(connection: Connection, queue: MakeQueue) -> None:
    address, dead, handled = queue(), queue(), list[Any]()
    send(connection, address, b"{", Message(b'{"a":1}', content_type="application/json"))
    with run(
        connection, address, lambda message: handled.append(message.content), content=JSON, dead_letters=dead
    ) as it:
        wait_until(lambda: len(handled) == len(it.failures) == 1)
    assert handled == [{"a": 1}]
    assert [letter.content for letter in left(connection, dead)] == [b"{"]


def test_a_message_that_its_handler_has_settled_is_left_alone(broker: Target, queue: MakeQueue) -> None:
    async def check() -> None:
        address, handled = queue(), list[Any]()
        async with broker.AsyncConnection(broker.url) as connection, connection.session() as session:
            sender = await session.sender(address)
            await sender.send("a")

            async def handle(message: Message) -> None:
                assert isinstance(message, aio.ReceivedMessage)
                handled.append(message.content)
                await message.accept()

            consumer: aio.Consumer = aio.Consumer(connection, address, handle)
            running = asyncio.create_task(consumer.run())
            await until(lambda: handled)
            consumer.stop()
            await asyncio.wait_for(running, 10)

    asyncio.run(check())


def test_when_it_stops_handlers_end_and_the_rest_stays(broker: Target, queue: MakeQueue) -> None:
    address, begun, go_on = queue(), threading.Event(), threading.Event()

    def handle(message: Message) -> None:
        begun.set()
        assert go_on.wait(20)

    with broker.Connection.establish(broker.url, timeout=10) as connection:
        send(connection, address, "a", "b", "c")
        with run(connection, address, handle, capacity=5) as it:
            assert begun.wait(20)
            it.consumer.stop()
            assert it.thread.is_alive()
            go_on.set()
            it.thread.join(20)
        assert it.failures == []
        assert sorted(message.content for message in left(connection, address)) == ["b", "c"]


def test_a_second_stop_returns_what_is_being_handled(broker: Target, queue: MakeQueue) -> None:
    async def check() -> None:
        address, begun = queue(), asyncio.Event()
        failures: list[Failure] = []

        async def handle(message: Message) -> None:
            begun.set()
            await asyncio.Event().wait()

        async with broker.AsyncConnection(broker.url) as connection, connection.session() as session:
            await (await session.sender(address)).send("a")
            consumer: aio.Consumer = aio.Consumer(connection, address, handle, on_failure=failures.append)
            running = asyncio.create_task(consumer.run())
            await asyncio.wait_for(begun.wait(), 20)
            with pytest.raises(MessagingError, match="runs already"):
                await consumer.run()
            consumer.stop()
            consumer.stop()
            await asyncio.wait_for(running, 20)
            message = await (await session.receiver(address)).fetch(timeout=10)
            await message.accept()
            assert (message.content, [failure.fate for failure in failures]) == ("a", [Fate.RETURNED])

    asyncio.run(check())


def test_the_end_of_the_connection_is_an_error(broker: Target, queue: MakeQueue) -> None:
    connection = broker.Connection.establish(broker.url, timeout=10)
    address, handled = queue(), threading.Event()
    send(connection, address, "a")
    it = run(connection, address, lambda _: handled.set())
    it.thread.start()
    assert handled.wait(20)
    connection.detach()
    it.thread.join(20)
    connection.close()
    assert not it.thread.is_alive()
    assert isinstance(it.errors[0], MessagingError)


@pytest.mark.only("embedded", "qpidd")
def test_a_subscription_is_retried_without_copies(connection: Connection) -> None:
    attempts: list[Any] = []

    def handle(message: Message) -> None:
        attempts.append(message.properties.get("qmf.attempts"))
        if len(attempts) < 3:
            raise ValueError("again")

    with connection.session() as session, session.sender("amq.topic/consuming.test") as sender:
        with run(connection, "amq.topic/consuming.*", handle, max_held=1) as it:

            def arrives() -> bool:
                if not attempts:
                    sender.send("a")
                return len(attempts) >= 3

            wait_until(arrives)
        assert attempts[:3] == [None, None, None]
        assert {failure.fate for failure in it.failures} == {Fate.RETRIED}


def test_wrong_arguments_are_refused(connection: Connection) -> None:
    with pytest.raises(InvalidOption, match="a consumer takes messages"):
        Consumer(connection, "q; {mode: browse}", print)
    with pytest.raises(ValueError, match="concurrency"):
        Consumer(connection, "q", print, concurrency=0)
    with pytest.raises(ValueError, match="limit"):
        Retry(limit=-1)
