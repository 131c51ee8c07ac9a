"""Nodes that addresses create, assert and delete."""

from __future__ import annotations

import uuid

import pytest
from messaging.conftest import MakeQueue, Target, is_gone, qpid_addresses
from support.waiting import wait_until

from qmf.messaging import (
    Address,
    AssertionFailed,
    Message,
    NotFound,
    ResolutionError,
    Session,
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
