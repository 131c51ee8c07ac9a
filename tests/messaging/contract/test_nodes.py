"""Nodes that addresses create, assert and delete."""

from __future__ import annotations

import uuid

import pytest
from messaging.conftest import MakeQueue, Target, is_gone, qpid_addresses
from support.waiting import wait_until

from qmf.messaging import (
    Address,
    AssertionFailed,
    Connection,
    Message,
    NotFound,
    ResolutionError,
    Session,
    SessionError,
)


@qpid_addresses
def test_create_is_for_the_side_that_it_names(session: Session) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    with pytest.raises(NotFound):
        session.receiver(f"{name}; {{create: sender}}")
    session.sender(f"{name}; {{create: sender}}").send("x")
    assert session.receiver(name).fetch(timeout=10).content == "x"
    session.acknowledge()


@qpid_addresses
@pytest.mark.parametrize("kind", ["topic", "direct", "fanout", "headers"])
def test_topics_are_created(session: Session, kind: str) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    address = f"{name}; {{create: always, node: {{type: topic, x-declare: {{type: {kind}}}}}}}"
    sender = session.sender(address)
    receiver = session.receiver(name if kind in ("fanout", "headers") else f"{name}/key", capacity=1)
    if kind != "headers":
        sender.send(Message("x", subject="key"))
        assert receiver.fetch(timeout=10).content == "x"
        session.acknowledge()


@qpid_addresses
def test_assertions(session: Session, queue: MakeQueue) -> None:
    session.sender("amq.fanout; {assert: always, node: {type: topic}}").close()
    with pytest.raises((AssertionFailed, ResolutionError)):
        session.receiver("amq.fanout; {assert: always, node: {type: queue}}")
    name = Address(queue()).name
    session.sender(f"{name}; {{create: sender, node: {{type: queue}}}}").close()
    session.receiver(f"{name}; {{assert: receiver, node: {{type: queue}}}}").close()
    with pytest.raises((AssertionFailed, ResolutionError)):
        session.sender(f"{name}; {{assert: sender, node: {{type: topic}}}}")


@qpid_addresses
def test_a_temporary_queue_ends_with_its_link(session: Session) -> None:
    receiver = session.receiver("#")
    address = receiver.source
    assert address != "#"
    session.sender(address).send("x")
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()
    receiver.close()
    wait_until(lambda: is_gone(session, address))


@qpid_addresses
@pytest.mark.parametrize("policy", ["always", "sender"])
@pytest.mark.parametrize("close", ["link", "session", "connection"])
def test_a_node_is_deleted_when_the_link_is_closed(broker: Target, queue: MakeQueue, policy: str, close: str) -> None:
    with broker.Connection.establish(broker.url, timeout=10) as connection:
        session, other = connection.session(), connection.session()
        address = queue()
        name = Address(address).name
        other.sender(address).send("x")  # the node exists before
        receiver = session.receiver(f"{name}; {{delete: sender}}")
        receiver.close()
        assert not is_gone(other, name)
        sender = session.sender(f"{name}; {{delete: {policy}}}")
        {"link": sender.close, "session": session.close, "connection": connection.close}[close]()
    with broker.Connection.establish(broker.url, timeout=10) as connection:
        wait_until(lambda: is_gone(connection.session(), name))


@qpid_addresses
def test_an_exchange_is_deleted_when_the_link_is_closed(session: Session) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    session.sender(f"{name}; {{create: always, node: {{type: topic}}}}")
    session.receiver(f"{name}; {{delete: receiver}}").close()
    wait_until(lambda: is_gone(session, name))


EXCLUSIVE = "node: {type: queue, x-declare: {exclusive: True, auto-delete: True}}"


@qpid_addresses
def test_an_exclusive_queue_is_consumed_by_its_session_alone(
    broker: Target, connection: Connection, session: Session, queue: MakeQueue
) -> None:
    name = queue().split(";")[0]
    session.sender(f"{name}; {{create: always, {EXCLUSIVE}}}")
    with broker.Connection.establish(broker.url, timeout=10) as other:
        for stranger in (connection.session(), other.session()):
            with pytest.raises(ResolutionError, match=f"Cannot consume from exclusive queue {name}") as caught:
                stranger.receiver(name)
            assert caught.value.code == "amqp:precondition-failed"
            with pytest.raises(ResolutionError, match=f"Cannot grant exclusive access to {name}"):
                stranger.sender(f"{name}; {{create: always, {EXCLUSIVE}}}")
            stranger.sender(name).send("from a stranger")
            assert stranger.receiver(f"{name}; {{mode: browse}}").fetch(timeout=10).content == "from a stranger"
            stranger.close()
        assert session.receiver(name).fetch(timeout=10).content == "from a stranger"
        assert session.receiver(name).fetch(timeout=10).content == "from a stranger"
        session.close()  # the broker ends it soon after
        wait_until(lambda: is_gone(other.session(), name), "the end of the queue")


@qpid_addresses
def test_an_exclusive_queue_that_stays_is_free_after_its_session(
    connection: Connection, session: Session, queue: MakeQueue
) -> None:
    name = queue().split(";")[0]
    own = connection.session()
    own.sender(f"{name}; {{create: always, node: {{type: queue, x-declare: {{exclusive: True}}}}}}").send("x")
    with pytest.raises(ResolutionError, match="exclusive"):
        session.receiver(name)
    own.close()
    receivers = [session.receiver(name, capacity=1), connection.session().receiver(f"{name}; {{delete: always}}")]
    assert receivers[0].fetch(timeout=10).content == "x"
    session.acknowledge()
    receivers[1].close()
    assert is_gone(session, name)


@qpid_addresses
def test_exchanges_that_the_broker_has_from_the_start_are_not_deleted(session: Session) -> None:
    with pytest.raises((SessionError, ResolutionError)) as caught:
        session.sender("amq.topic; {delete: always}").close()
    assert caught.value.code == "amqp:not-allowed"
    session.sender("amq.topic").close()
