"""Receivers of exchanges with at-least-once get what is published while their connection is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from messaging.scripted_peer import scripted_peer
from support.proxy import Proxy
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection, Empty, LinkError, Session

QUICK = {"reconnect": True, "reconnect_interval_min": 0.01, "reconnect_interval_max": 0.05}
LASTING = "amq.topic/a.#; {link: {reliability: at-least-once}}"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(management=3600.0) as broker:
        yield broker


@pytest.fixture
def proxy(broker: EmbeddedBroker) -> Iterator[Proxy]:
    with Proxy(broker.url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: Proxy) -> Iterator[Connection]:
    """A connection that reconnects, and is cut."""
    with Connection.establish(proxy.url, timeout=10, **QUICK) as connection:
        yield connection


@pytest.fixture
def other(broker: EmbeddedBroker) -> Iterator[Session]:
    """Of a connection that is never cut."""
    with Connection.establish(broker.url, timeout=10) as connection:
        yield connection.session()


def interrupt(proxy: Proxy, connection: Connection, meanwhile: Callable[[], object]) -> None:
    proxy.refuse(True)
    proxy.cut()
    wait_until(lambda: not connection.attached())
    meanwhile()
    proxy.refuse(False)
    wait_until(connection.attached)


@pytest.mark.parametrize("capacity", [0, 10])
def test_what_is_published_around_a_reconnect_comes(
    proxy: Proxy, connection: Connection, other: Session, capacity: int
) -> None:
    session = connection.session()
    receiver, sender = session.receiver(LASTING, capacity=capacity), other.sender("amq.topic/a.b")
    sender.send("before")
    first = receiver.fetch(timeout=10)
    session.acknowledge(first)
    sender.send("unacknowledged")
    assert receiver.fetch(timeout=10).content == "unacknowledged"
    for number in range(3):
        interrupt(proxy, connection, lambda: sender.send("meanwhile"))
        sender.send(str(number))
    expected = ["unacknowledged", "meanwhile", "0", "meanwhile", "1", "meanwhile", "2"]
    assert [receiver.fetch(timeout=10).content for _ in expected] == expected


def test_the_subscription_ends_with_its_receiver(connection: Connection, other: Session) -> None:
    session = connection.session()
    session.receiver(LASTING).close()
    sender = other.sender("amq.topic/a.b")
    sender.send("nobody has it")
    with pytest.raises(Empty):
        session.receiver(LASTING).fetch(timeout=0)


@pytest.mark.slow
def test_it_ends_when_nobody_comes_back(proxy: Proxy, other: Session) -> None:
    address = "amq.topic; {link: {name: brief, reliability: at-least-once, timeout: 1}}"
    # Not by a link to the queue: that would keep the subscription.
    agent = BrokerAgent(other.connection)
    with Connection.establish(proxy.url, timeout=10, container_id="me") as connection:
        connection.session().receiver(address)
        assert agent.getQueue("brief") is not None
        proxy.cut()
        wait_until(lambda: connection.get_error() is not None)
    wait_until(lambda: agent.getQueue("brief") is None)
    agent.close()


def test_queues_are_not_concerned(proxy: Proxy, connection: Connection, other: Session) -> None:
    session = connection.session()
    receiver = session.receiver("q; {create: always, assert: always, link: {reliability: at-least-once}}")
    sender = other.sender("q")
    interrupt(proxy, connection, lambda: sender.send("meanwhile"))
    assert receiver.fetch(timeout=10).content == "meanwhile"


def test_a_durable_subscription_is_found_again_without_a_container_id(
    proxy: Proxy, connection: Connection, other: Session
) -> None:
    receiver = connection.session().receiver("amq.topic; {link: {name: mine, durable: True}}")
    sender = other.sender("amq.topic/a")
    interrupt(proxy, connection, lambda: sender.send("meanwhile"))
    assert receiver.fetch(timeout=10).content == "meanwhile"


def test_a_subscription_that_the_last_link_still_has_is_waited_for(
    proxy: Proxy, broker: EmbeddedBroker, other: Session
) -> None:
    mine = "amq.topic; {link: {name: mine, durable: True}}"
    with (
        Connection.establish(proxy.url, timeout=10, container_id="me", **QUICK) as connection,
        Connection.establish(broker.url, timeout=10, container_id="me") as last,
    ):
        receiver = connection.session().receiver(mine)
        session = last.session()

        def take() -> bool:
            try:
                session.receiver(mine)
            except LinkError:  # the broker has not noticed the cut yet
                return False
            return True

        interrupt(proxy, connection, lambda: wait_until(take))
        with pytest.raises(Empty):
            receiver.fetch(timeout=0.1)
        other.sender("amq.topic/a").send("one")
        session.close()
        assert receiver.fetch(timeout=20).content == "one"


def test_a_fetch_while_the_link_is_asked_for_does_not_spoil_the_one_that_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.messaging.core.incoming_link.DRAIN_TIMEOUT", 0.05)
    with scripted_peer() as peer, Connection.establish(peer.url, timeout=10, **QUICK) as connection:
        receiver = connection.session().receiver("q; {link: {name: mine, durable: True}}")
        peer.silent_links = True
        peer.do(lambda lost: lost.transport.close())
        wait_until(lambda: len(peer.links) == 2)
        with pytest.raises(Empty):
            receiver.fetch(timeout=0.05)
        peer.silent_links = False
        peer.to_send.append("one")
        peer.do(lambda again: again.engine.links.refuse(peer.links[1], "amqp:resource-locked", "held"))
        assert receiver.fetch(timeout=20).content == b"one"
