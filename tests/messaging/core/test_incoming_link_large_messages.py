"""Messages above the limit of a connection stay in their queue; the error says what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from qmf.broker import AmqpOptions, EmbeddedBroker
from qmf.messaging import Connection, Empty, FetchError, MessagingError

LIMIT = 100_000


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker(queues=["q"], amqp=AmqpOptions(max_message=64 * 1024 * 1024)) as broker:
        yield broker.url


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    """A connection with a low limit."""
    with Connection.establish(url, timeout=10, max_message_size=LIMIT) as connection:
        yield connection


@pytest.mark.parametrize("options", ["", "; {link: {reliability: exactly-once}}"])
@pytest.mark.parametrize("size", [LIMIT, 10 * LIMIT])
def test_a_message_above_the_limit_stays_in_the_queue(
    url: str, connection: Connection, size: int, options: str
) -> None:
    session = connection.session()
    session.sender("q").send(b"x" * size)
    receiver = session.receiver("q" + options)
    with pytest.raises(FetchError) as caught:
        receiver.fetch(timeout=10)
    assert caught.value.code == "amqp:link:message-size-exceeded"
    text = str(caught.value)
    found = re.search(r"'q' closed: a message has (\d+) bytes, .*max_message_size allows 100000; it stays", text)
    assert found, text
    assert size < int(found[1]) < size + 100
    with Connection.establish(url, timeout=10) as other:
        session = other.session()
        message = session.receiver("q").fetch(timeout=10)
        assert len(message.content) == size
        session.acknowledge()


def test_messages_of_that_size_and_other_receivers_are_not_concerned(connection: Connection) -> None:
    session = connection.session()
    sender = session.sender("q")
    sender.send(b"x" * (LIMIT - 1000))
    sender.send(b"y" * LIMIT)
    other_sender = session.sender("other; {create: always}")
    other_sender.send("small")
    receiver, other = session.receiver("q"), session.receiver("other", capacity=1)
    assert receiver.fetch(timeout=10).content == b"x" * (LIMIT - 1000)
    with pytest.raises(FetchError, match="max_message_size"):
        receiver.fetch(timeout=10)
    assert other.fetch(timeout=10).content == "small"
    session.acknowledge(sync=False)


def test_the_handler_of_errors_is_told(connection: Connection) -> None:
    errors: list[tuple[object, MessagingError]] = []
    session = connection.session()
    receiver = session.receiver("q", capacity=1)
    receiver.set_async_exception_notify_handler(lambda endpoint, error: errors.append((endpoint, error)))
    session.sender("q").send(b"x" * LIMIT)
    with pytest.raises(FetchError):
        receiver.fetch(timeout=10)
    (reported,) = errors
    assert reported[0] is receiver
    assert isinstance(reported[1], FetchError)


def test_a_message_that_was_sent_settled_is_lost_and_the_error_says_so(connection: Connection) -> None:
    session = connection.session()
    session.sender("q").send(b"x" * LIMIT)
    receiver = session.receiver("q; {link: {reliability: unreliable}}")
    with pytest.raises(FetchError, match="is lost"):
        receiver.fetch(timeout=10)
    with pytest.raises(Empty):
        session.receiver("q").fetch(timeout=0)


def test_the_default_is_above_what_brokers_take_by_default(url: str) -> None:
    content = b"x" * (17 * 1024 * 1024)
    with Connection.establish(url, timeout=10) as connection:
        session = connection.session()
        session.sender("q").send(content)
        assert session.receiver("q").fetch(timeout=30).content == content
        session.acknowledge()
