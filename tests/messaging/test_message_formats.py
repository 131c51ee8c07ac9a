"""Messages with a format: their bytes pass as they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, EncodeError, Message

#: As senders of batches use it.
FORMAT = 0x80013700


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker(queues=["q"]) as broker:
        yield broker.url


def formatted(content: object, message_format: int = FORMAT) -> Message:
    message = Message(content)
    message.message_format = message_format
    return message


@pytest.mark.parametrize(
    "options", ["", "; {link: {reliability: exactly-once}}", "; {link: {reliability: unreliable}}"]
)
def test_the_content_is_the_whole_message(url: str, options: str) -> None:
    sent = [b"\xffno sections", b"", b"\x00\x53\x75\xa0\x01x", b"large" * 100_000]
    with Connection.establish(url) as connection:
        session = connection.session()
        sender, receiver = session.sender("q" + options), session.receiver("q" + options)
        for content in sent:
            sender.send(Message("usual"))
            sender.send(formatted(content))
        for content in sent:
            usual, other = receiver.fetch(timeout=30), receiver.fetch(timeout=30)
            assert (usual.content, usual.message_format) == ("usual", 0)
            assert (other.content, other.message_format, other.content_type) == (content, FORMAT, None)
            assert type(other.content) is bytes
        session.acknowledge()


def test_in_a_transaction(url: str) -> None:
    with Connection.establish(url) as connection:
        session = connection.session(transactional=True)
        session.sender("q").send(formatted(b"\xff", 1))
        session.commit()
        message = session.receiver("q").fetch(timeout=30)
        assert (message.content, message.message_format) == (b"\xff", 1)
        session.acknowledge()
        session.commit()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (formatted("text"), "with a format its content has to be bytes, not str"),
        (formatted(None), "bytes, not NoneType"),
        (formatted(b"", 1 << 32), "its format 4294967296 is no number of 32 bits"),
        (formatted(b"", -1), "its format -1 is no number"),
    ],
)
def test_what_cannot_be_sent(url: str, message: Message, reason: str) -> None:
    with Connection.establish(url) as connection:
        sender = connection.session().sender("q")
        with pytest.raises(EncodeError, match=reason):
            sender.send(message)


def test_how_it_is_shown() -> None:
    assert repr(formatted(b"x", 5)) == "Message(message_format=5, content=b'x')"


@pytest.mark.parametrize("options", ["", "; {link: {reliability: unreliable}}"])
def test_messages_of_all_kinds_that_are_sent_together_keep_their_order(url: str, options: str) -> None:
    count = 200
    with Connection.establish(url) as connection:
        session = connection.session()
        sender, receiver = session.sender("q" + options), session.receiver("q", capacity=100)
        for number in range(count):
            content = str(number).encode()
            message = formatted(content) if number % 70 == 50 else Message(content)
            sender.send(message, sync=number % 90 == 60, timeout=30)
        sender.sync(timeout=30)
        assert sender.unsettled() == 0
        found = [receiver.fetch(timeout=30) for _ in range(count)]
        assert [int(message.content) for message in found] == list(range(count))
        assert [number for number, message in enumerate(found) if message.message_format] == [50, 120, 190]
        session.acknowledge()
