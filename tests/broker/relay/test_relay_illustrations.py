"""Pictures of the AMQP illustrations that have no module of their own: the way from end to end, consumption, entities.

The others are in `test_relay_internet` (Internet subscription), `test_relay_kills` (relaying between brokers),
`queue_links.test_links_kills` (delivery into queues) and `federation.test_federation_kills` (peer to peer).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import attrs
import pytest
from broker.relay.lives import Life
from support.waiting import WAIT_LIMIT

from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message, Receiver, Session

pytestmark = pytest.mark.slow


@attrs.frozen
class Sites:
    """Two brokers: that of the senders, and one on which others work."""

    here: Life
    there: Life


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    with ExitStack() as stack:
        yield Sites(*(stack.enter_context(Life(folder / name)) for name in ("here", "there")))


def contents(receiver: Receiver, count: int) -> list[object]:
    """What it gets next, acknowledged."""
    found = [receiver.fetch(timeout=WAIT_LIMIT).content for _ in range(count)]
    receiver.session.acknowledge()
    return found


def send(session: Session, address: str, *numbers: int) -> None:
    sender = session.sender(address)
    for number in numbers:
        sender.send(Message(number, durable=True, properties={"amount": number}), sync=True)


def test_an_address_leads_to_queues_here_and_at_another_broker_over_a_kill_of_each(sites: Sites) -> None:
    """End to end: what is behind an address, its senders don't see; links with predicates lead on from it."""
    here, there = sites.here, sites.there
    for name in ("orders", "small", "large", "audit"):
        here.create("queue", name)
    there.create("queue", "from-partner")
    here.create("queuelink", "audit", source="orders", target="audit", mode="copy")
    here.create("queuelink", "small", source="orders", target="small", selector="amount < 100")
    here.create("queuelink", "large", source="orders", target="large", selector="amount >= 100")
    here.create("domain", "there", url=there.url)
    here.create("outgoing", "large-out", domain="there", source="large", target="from-partner")
    with Connection(here.url) as connection:
        send(connection.session(), "orders", 1, 500, 2)
    there.kill()
    with Connection(here.url) as connection:
        send(connection.session(), "orders", 600, 3)
    here.kill()
    there.start()
    here.start()
    with Connection(here.url) as connection, Connection(there.url) as partner:
        session, remote = connection.session(), partner.session()
        assert contents(remote.receiver("from-partner"), 2) == [500, 600]
        assert contents(session.receiver("small"), 3) == [1, 2, 3]
        assert contents(session.receiver("audit"), 5) == [1, 500, 2, 600, 3]


def test_a_queue_has_many_heads_and_shares_its_messages_by_any_criteria(sites: Sites) -> None:
    """Consumption: links of sessions begin at the head, the tail or anywhere, each with its predicate."""
    broker = sites.here
    broker.create("queue", "work")
    with Connection(broker.url) as connection:
        session = connection.session()
        send(session, "work", 1, 2, 3, 4)
        browse = "work; {{mode: browse, link: {{start: {}}}}}"
        head, third = session.receiver(browse.format("head")), session.receiver(browse.format("{sequence: 3}"))
        tail = session.receiver(browse.format("tail"), capacity=1)
        assert (contents(head, 2), contents(third, 2)) == ([1, 2], [3, 4])
        send(session, "work", 5)
        assert (contents(tail, 1), contents(third, 1), contents(head, 3)) == ([5], [5], [3, 4, 5])
    with Connection(broker.url) as lost:
        # What a session had and did not acknowledge is there again after it, and after the broker too.
        taken = lost.session().receiver("work; {link: {selector: 'amount > 3'}}")
        assert [taken.fetch(timeout=WAIT_LIMIT).content for _ in range(2)] == [4, 5]
    broker.kill()
    broker.start()
    with Connection(broker.url) as one, Connection(broker.url) as other:
        odd = one.session().receiver("work; {link: {selector: 'amount = 1 OR amount = 3 OR amount = 5'}}")
        even = other.session().receiver("work; {link: {selector: 'amount = 2 OR amount = 4'}}")
        assert (contents(even, 2), contents(odd, 3)) == ([2, 4], [1, 3, 5])


def test_a_client_can_discover_the_entities_and_what_refers_to_what(sites: Sites) -> None:
    """The entity relationship diagram: connections, their sessions and links, queues, links between queues."""
    broker = sites.here
    for name in ("source", "target"):
        broker.create("queue", name)
    broker.create("queuelink", "moves", source="source", target="target")
    with Connection(broker.url) as connection:
        session = connection.session()
        session.receiver("entities; {create: always, delete: always}")
        agent = BrokerAgent(connection)
        (subscription,) = [item for item in agent.getAllSubscriptions() if item.queueRef == "entities"]
        sessions = {item.name: item for item in agent.getAllSessions()}
        connections = {item.address: item for item in agent.getAllConnections()}
        own = connections[sessions[subscription.sessionRef].connectionRef]
        assert (own.incoming, own.remotePid) == (True, os.getpid())
        assert "entities" in {item.name for item in agent.getAllQueues()}
        links = {item["name"]: (item["source"], item["target"], item["mode"]) for item in agent.list("queuelink")}
        assert links["moves"] == ("source", "target", "move")
