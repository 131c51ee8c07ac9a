"""What is under way to a client: packet ids, and which answer does what."""

from __future__ import annotations

import pytest

from qmf.broker.protocols.mqtt.codec.values import MqttError
from qmf.broker.protocols.mqtt.sent_messages import SENT_TABLE, SentMessages, SentMessageState, SentMessageTrigger

_S, _T = SentMessageState, SentMessageTrigger


def test_a_message_with_qos_1_is_done_with_puback() -> None:
    messages: SentMessages[str] = SentMessages()
    packet_id = messages.add("x", 1)
    assert messages.on_answer(packet_id, _T.PUBACK) == ("x", _S.DONE)
    assert len(messages) == 0
    assert messages.on_answer(packet_id, _T.PUBACK) is None


def test_a_message_with_qos_2_is_done_with_pubcomp() -> None:
    messages: SentMessages[str] = SentMessages()
    packet_id = messages.add("x", 2)
    assert messages.on_answer(packet_id, _T.PUBREC) == ("x", _S.RELEASED)
    assert messages.on_answer(packet_id, _T.PUBREC) == (None, _S.RELEASED)
    assert len(messages) == 1
    assert messages.on_answer(packet_id, _T.PUBCOMP) == (None, _S.DONE)
    assert len(messages) == 0


def test_pubrec_with_an_error_ends_a_message() -> None:
    messages: SentMessages[str] = SentMessages()
    assert messages.on_answer(messages.add("x", 2), _T.PUBREC_ERROR) == ("x", _S.DONE)


@pytest.mark.parametrize(("qos", "trigger"), [(1, _T.PUBREC), (1, _T.PUBCOMP), (2, _T.PUBACK), (2, _T.PUBCOMP)])
def test_an_answer_that_does_not_fit_is_an_error(qos: int, trigger: SentMessageTrigger) -> None:
    messages: SentMessages[str] = SentMessages()
    packet_id = messages.add("x", qos)
    with pytest.raises(MqttError, match="not possible then"):
        messages.on_answer(packet_id, trigger)


def test_packet_ids_are_used_once_at_a_time() -> None:
    messages: SentMessages[int] = SentMessages()
    messages.restore(2, 0)
    assert [messages.add(number, 1) for number in range(3)] == [1, 3, 4]
    messages.forget(3)
    for number in range(5, 65_536):
        messages.add(number, 1)
    assert messages.add(0, 1) == 3


def test_what_was_under_way_before_a_start_has_its_old_id() -> None:
    messages: SentMessages[str] = SentMessages()
    messages.restore(5, "x")
    messages.restore(6, None)
    assert [(packet_id, each.item, each.state) for packet_id, each in messages] == [
        (5, "x", _S.SENT_ONCE),
        (6, None, _S.RELEASED),
    ]
    assert messages.on_answer(6, _T.PUBCOMP) == (None, _S.DONE)


@pytest.mark.parametrize("state", SentMessageState)
def test_each_state_is_in_the_table(state: SentMessageState) -> None:
    reached = {to for row in SENT_TABLE.rows.values() for to in row.values()}
    assert state in reached | {_S.SENT, _S.SENT_ONCE}
