"""Incoming links that remember what they have accepted: credit, and messages of one connection that come on another."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.protocols.amqp.test_resumable import Peer, lost, peer
from broker.visible_broker import VisibleBroker

from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.principal import BROKER
from qmf.broker.protocols.amqp import remembering, resumable
from qmf.bus.engine.events import CreditChanged, OutcomeReceived
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.values import Outcome
from qmf.codec import Message, Section, encode_message

#: Credit that is given at first, and messages that may be unsettled.
WINDOW, MOST = 8, 20


def held(client: Peer) -> int:
    """Messages that the broker has accepted, and that the client has not settled."""
    return len(client.link.transactional)


@pytest.mark.parametrize("stored", [False, True])
async def test_credit_comes_before_messages_are_confirmed_until_too_many_are_not(
    stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable, "CREDIT_WINDOW", WINDOW)
    monkeypatch.setattr(remembering, "MAX_UNSETTLED", MOST)
    async with VisibleBroker(port=0, data_dir=tmp_path if stored else None) as broker:
        broker.operations.create(BROKER, "q", read_node_declaration(("queue",), {"durable": stored}))
        client = await peer(broker)
        await client.attach(sending=True)
        link, engine = client.link, client.engine
        link.keeps_unsettled = True
        await client.exchange(CreditChanged)
        data = encode_message(Message(section=Section.DATA, body=b"x", durable=stored))
        sent = 0
        while credit := engine.links.credit(link):
            tags = list(range(sent, sent + credit))
            engine.deliveries.send_all(link, [data] * credit, 0, 1 << 20, delivery_tags=tags)
            sent += credit
            await client.exchange(OutcomeReceived, sent)
            await client.flush()  # credit that the outcomes have caused is there
        assert (held(client), sent) == (MOST, MOST)
        (queue,) = [queue for queue in broker.registry.queues if queue.name == "q"]
        assert queue.contents.depth.count == MOST
        engine.decisions.settle_all_sent(link, list(range(WINDOW)))
        await client.flush()
        assert (held(client), engine.links.credit(link)) == (MOST - WINDOW, WINDOW)
        await client.cut()


async def test_what_another_connection_has_left_takes_no_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client does not confirm what it knows from the attach."""
    monkeypatch.setattr(resumable, "CREDIT_WINDOW", WINDOW)
    monkeypatch.setattr(remembering, "MAX_UNSETTLED", WINDOW)
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        first = await peer(broker)
        await first.attach(sending=True)
        first.link.keeps_unsettled = True
        await first.exchange(CreditChanged)
        data = encode_message(Message(section=Section.DATA, body=b"x"))
        tags = list(range(WINDOW))
        first.engine.deliveries.send_all(first.link, [data] * WINDOW, 0, 1 << 20, delivery_tags=tags)
        await first.exchange(OutcomeReceived, WINDOW)
        await lost(broker, first)
        second = await peer(broker)
        known = await second.attach(sending=True, unsettled=dict.fromkeys(tags))
        assert known == Resumption("id", dict.fromkeys(tags, Outcome.ACCEPTED), resumed=True)
        await second.exchange(CreditChanged)
        for tag in range(WINDOW, 3 * WINDOW):
            second.engine.deliveries.send(second.link, data, delivery_tag=tag)
            await second.exchange(OutcomeReceived, tag - WINDOW + 1)
            await second.flush()
            assert second.engine.links.credit(second.link) > 0
        await second.cut()
