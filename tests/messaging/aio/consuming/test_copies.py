"""Copies of messages: what they keep, and what belongs to a delivery."""

from __future__ import annotations

from qmf.messaging import Message
from qmf.messaging.aio.consuming.copies import dead_letter, delayed_copy, failed_attempts


def received() -> Message:
    return Message(
        {"a": 1},
        id="1",
        subject="s",
        user_id="ann",
        reply_to="answers",
        correlation_id="c",
        durable=True,
        priority=7,
        ttl=60,
        to="q",
        properties={
            "own": 1,
            "x-amqp-delivery-count": 3,
            "x-amqp-message-annotations": {"x-opt-delivery-delay": 5, "a": 1},
        },
    )


def test_a_delayed_copy_counts_the_attempts() -> None:
    copy = delayed_copy(received(), 2, 1.5)
    assert failed_attempts(copy) == 2
    assert (failed_attempts(received()), failed_attempts(Message(properties={"qmf.attempts": "x"}))) == (0, 0)
    assert copy.properties == {
        "own": 1,
        "qmf.attempts": 2,
        "qmf.user_id": "ann",
        "x-amqp-message-annotations": {"x-opt-delivery-delay": 1500, "a": 1},
    }
    assert (copy.content, copy.id, copy.subject, copy.correlation_id) == ({"a": 1}, "1", "s", "c")
    assert (copy.reply_to, copy.durable, copy.priority, copy.ttl) == ("answers", True, 7, 60)
    assert (copy.user_id, copy.to) == (None, None)


def test_a_dead_letter_says_why() -> None:
    letter = dead_letter(received(), 4, ValueError("x" * 1000), "q")
    assert len(letter.properties["qmf.error"]) == 500
    assert (letter.properties["qmf.attempts"], letter.properties["qmf.source"]) == (4, "q")
    assert letter.properties["x-amqp-message-annotations"] == {"a": 1}


def test_a_message_with_a_format_stays_as_it_is() -> None:
    message = Message(b"bytes")
    message.message_format = 5
    letter = dead_letter(message, 1, ValueError(), "q")
    assert (letter.content, letter.message_format, letter.properties) == (b"bytes", 5, {})
