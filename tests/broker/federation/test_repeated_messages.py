"""Messages that come again from brokers that don't resume links: known by their ids."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from broker.federation.federated import IN, FederatedBroker, pair, send
from broker.federation.test_peer_links_exactly_once import contents, ends
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import until

from qmf.broker.federation import incoming, peer_links, repeated_messages
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.federation.repeated_messages import RepeatedMessages
from qmf.broker.nodes.link_memory import LinkMemory
from qmf.broker.protocols.amqp.remembering import AmqpMemory
from qmf.codec import Message as AmqpMessage
from qmf.codec import Section, encode_message


def encoded(id: object) -> bytes:
    return encode_message(AmqpMessage(section=Section.DATA, body=b"x", message_id=id))


def accept(messages: RepeatedMessages, tag: int, id: object, *, accepted: bool = True) -> bool:
    """A message comes, and has an outcome; True if it is repeated."""
    repeated = messages.has(tag, encoded(id))
    messages.end(tag, accepted=accepted)
    return repeated


@pytest.mark.parametrize("id", ["text", b"text", 7, UUID(int=7)])
def test_what_was_accepted_on_an_earlier_connection(id: object) -> None:
    memory: AmqpMemory = LinkMemory()
    first = RepeatedMessages(memory)
    assert not accept(first, 1, id)
    assert not accept(first, 2, id)  # its sender wants it twice
    later = RepeatedMessages(memory)
    assert accept(later, 1, id)
    assert not accept(later, 2, "another")


def test_what_was_refused_is_not_repeated() -> None:
    memory: AmqpMemory = LinkMemory()
    assert not accept(RepeatedMessages(memory), 1, "id", accepted=False)
    assert not accept(RepeatedMessages(memory), 1, "id")


@pytest.mark.parametrize("data", [encoded(None), b"no message"])
def test_what_has_no_id_cannot_be_known(data: bytes) -> None:
    memory: AmqpMemory = LinkMemory()
    for _ in range(2):
        messages = RepeatedMessages(memory)
        assert not messages.has(1, data)
        messages.end(1, accepted=True)
    assert memory.accepted == []


def test_ids_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_messages, "REMEMBERED", 2)
    memory: AmqpMemory = LinkMemory()
    first = RepeatedMessages(memory)
    for number in range(3):
        accept(first, number, number)
    later = RepeatedMessages(memory)
    assert [accept(later, number, number) for number in range(3)] == [False, True, True]


async def test_a_lost_acceptance_at_a_broker_that_does_not_resume_links(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (incoming, peer_links):
        monkeypatch.setattr(module, "LINK_RESUMPTION", "nobody.has-it")
    async with FederatedBroker(port=0, queues=["q"]) as there, pair() as (here, _):
        with FrameCutter(there.url) as proxy:
            here.domain(proxy.url, "cut")
            proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=True, passed=False))
            here.link(IN, "q", "here", domain="cut")
            await here.state(PeerLinkState.OPERATIONAL)
            await send(there, "q", "one", id="first")
            await send(there, "q", "two", id="second")
            await until(lambda: there.depth("q") == 0, lambda: f"{there.depth('q')}")
            assert (here.depth("here"), proxy.cuts) == (2, 1)


async def test_a_durable_link_knows_them_after_a_restart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (incoming, peer_links):
        monkeypatch.setattr(module, "LINK_RESUMPTION", "nobody.has-it")
    async with ends(tmp_path, pull=True) as made:
        made.proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=True, passed=False, refuse=True))
        await send(made.source, "q", "one", id="first", durable=True)
        await made.brokers["own"].state(PeerLinkState.WAITING)
        await made.kill("own")
        made.proxy.refuse(False)
        await made.brokers["own"].state(PeerLinkState.OPERATIONAL)
        await send(made.source, "q", "two", id="second", durable=True)
        await until(lambda: made.source.depth("q") == 0, lambda: f"{made.source.depth('q')}")
        assert contents(made.target, "p") == ["one", "two"]
