"""Sessions and links between two engines."""

from __future__ import annotations

import struct

import pytest
from support.engines import Pair

from qmf.bus.engine.events import (
    CreditChanged,
    Delivery,
    LinkDetached,
    LinkRequested,
    SessionEnded,
)
from qmf.bus.engine.native import SKIP
from qmf.bus.engine.values import Filter, Terminus


def test_credit_is_counted_on_both_sides() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True, credit=3)
    assert pair.client.links.credit(mine) == 3
    for _ in range(3):
        pair.client.deliveries.send(mine, b"x")
    assert pair.client.links.credit(mine) == 0
    pair.pump()
    pair.credit.clear()
    pair.server.links.add_credit(theirs, 2)
    pair.pump()
    assert CreditChanged(mine) in pair.credit
    assert pair.client.links.credit(mine) == 2


def test_credit_of_a_quiet_link_is_counted_and_not_reported() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True, credit=1)
    pair.credit.clear()
    mine.set_quiet(True)
    pair.server.links.add_credit(theirs, 2)
    pair.pump()
    assert (pair.credit, pair.client.links.credit(mine)) == ([], 3)
    pair.server.links.drain(theirs, 0)
    pair.pump()
    assert pair.credit == [CreditChanged(mine)]
    pair.client.links.answer_drain(mine)
    pair.pump()
    mine.set_quiet(False)
    pair.server.links.add_credit(theirs, 1)
    pair.pump()
    assert pair.credit[-1] == CreditChanged(mine)
    assert pair.client.links.credit(mine) == 1


def test_backlog_is_what_waits_to_be_encoded() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"x" * 1000)
    assert pair.client.links.backlog(mine) == 1000
    pair.pump()
    assert pair.client.links.backlog(mine) == 0


@pytest.mark.parametrize("descriptor", ["apache.org:legacy-amqp-topic-binding:string", 0x0000468C00000001])
def test_nodes_and_filters_are_read_as_they_were_written(descriptor: str | int) -> None:
    node = Terminus("qmf.default.topic", filters=(Filter("any", descriptor, "a.#"),))
    pair = Pair()
    mine, theirs = pair.link(sending=False, node=node)
    assert theirs.source == node
    assert mine.source == node
    assert theirs.target == Terminus()
    assert theirs.is_sender
    assert not mine.is_sender


def test_dynamic_nodes_get_their_address_from_the_server() -> None:
    pair = Pair()
    mine = pair.client.links.attach("dynamic", is_sender=False, terminus=Terminus(dynamic=True), credit=1)
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    assert request.link.source == Terminus(dynamic=True)
    pair.server.links.accept(request.link, source=Terminus("made-up", dynamic=True), target=None)
    pair.pump()
    assert mine.source == Terminus("made-up", dynamic=True)


@pytest.mark.parametrize("sending", [True, False])
def test_a_refused_link_is_only_detached_with_the_servers_error(sending: bool) -> None:
    pair = Pair()
    mine = pair.client.links.attach("refused", is_sender=sending, terminus=Terminus("nowhere"))
    pair.pump()
    pair.at_client.clear()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    pair.server.links.refuse(request.link, "amqp:not-found", "no such node")
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "amqp:not-found", "no such node", answer=False)]
    assert pair.at_server[-1] == LinkDetached(request.link, "", "", answer=True)


def test_a_detached_link_is_forgotten_and_nothing_on_it_does_harm() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    pair.client.deliveries.send(mine, b"one")
    pair.pump()
    (incoming,) = pair.at_server
    assert isinstance(incoming, Delivery)
    pair.server.links.detach(theirs, "amqp:not-allowed", "enough")
    pair.server.links.detach(theirs)
    pair.pump()
    assert pair.at_client == [LinkDetached(mine, "amqp:not-allowed", "enough", answer=False)]
    assert incoming.delivery_tag is not None
    pair.server.decisions.settle(theirs, incoming.delivery_tag)
    pair.server.links.add_credit(theirs, 5)
    pair.client.links.detach(mine)
    pair.client.links.answer_drain(mine)
    assert pair.client.links.credit(mine) == 0
    assert pair.client.links.backlog(mine) == 0
    pair.at_client.clear()
    pair.pump()
    assert pair.at_client == []


def test_ending_a_session_ends_its_links_and_the_next_link_gets_a_new_one() -> None:
    pair = Pair()
    mine, theirs = pair.link(sending=True)
    theirs.session.close()
    pair.pump()
    detached, ended = pair.at_client
    assert detached == LinkDetached(mine, "", "", answer=False, closed=False)
    assert isinstance(ended, SessionEnded)
    pair.client.links.attach("again", is_sender=True, terminus=Terminus("there"))
    pair.pump()
    assert isinstance(pair.at_server[-1], LinkRequested)


def test_a_link_that_ends_is_left_out_by_the_compiled_functions() -> None:
    pair = Pair()
    mine, _ = pair.link(sending=True, credit=1)
    table, place = mine.table, mine.place
    pair.client.links.detach(mine)
    if table is not None:  # else there are no compiled functions
        assert struct.unpack_from("=QII", table, 16 * place) == (mine.address, place, SKIP)
    pair.pump()
    assert mine.detached
