"""Bindings that addresses ask for."""

from __future__ import annotations

import uuid

import pytest
from messaging.conftest import MakeQueue, qpid_addresses

from qmf.messaging import (
    Address,
    Empty,
    InvalidOption,
    Message,
    NotFound,
    Session,
)


@qpid_addresses
@pytest.mark.parametrize(
    "options",
    [
        "node: {x-bindings: [{exchange: amq.direct, key: KEY}, {exchange: amq.fanout}]}",
        "node: {x-declare: {bindings: ['amq.direct/KEY', amq.fanout]}}",
        "link: {x-bindings: [{exchange: amq.direct, key: KEY}, {exchange: amq.fanout, queue: QUEUE}]}",
        "node: {x-bindings: [{exchange: amq.match, arguments: {x-match: all, test: KEY}}]}",
    ],
)
def test_bindings_of_queues(session: Session, options: str) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    options = options.replace("KEY", f"key-{name}").replace("QUEUE", name)
    receiver = session.receiver(f"{name}; {{create: always, delete: always, {options}}}")
    if "amq.match" in options:
        session.sender("amq.match").send(Message("headers", properties={"test": f"key-{name}"}))
        session.sender("amq.match").send(Message("other", properties={"test": "other"}))
        expected = ["headers"]
    else:
        session.sender(f"amq.direct/key-{name}").send("direct")
        session.sender("amq.direct/other").send("other")
        session.sender("amq.fanout").send("fanout")
        expected = ["direct", "fanout"]
    assert [receiver.fetch(timeout=10).content for _ in expected] == expected
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_a_queue_with_several_bindings_to_an_exchange(session: Session) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    keys = [f"{name}.{number}" for number in range(3)]
    bindings = ", ".join(f"{{exchange: amq.direct, key: {key}}}" for key in keys[:2])
    receiver = session.receiver(f"{name}; {{create: always, delete: always, node: {{x-bindings: [{bindings}]}}}}")
    for key in keys:
        session.sender(f"amq.direct/{key}").send(key)
    assert [receiver.fetch(timeout=10).content for _ in keys[:2]] == keys[:2]
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_a_temporary_queue_has_no_bindings_but_those_asked_for(session: Session) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    bindings = f"[{{exchange: amq.direct, key: {name}}}, {{exchange: amq.topic, key: '{name}.*'}}]"
    receiver = session.receiver(f"#; {{node: {{x-bindings: {bindings}}}}}", capacity=10)
    sent = [("amq.direct", name), ("amq.direct", f"{name}.a"), ("amq.topic", f"{name}.b"), ("amq.topic", name)]
    for exchange, key in sent:
        session.sender(exchange).send(Message(f"{exchange} {key}", subject=key))
    assert [receiver.fetch(timeout=10).content for _ in range(2)] == [f"amq.direct {name}", f"amq.topic {name}.b"]
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    queue = receiver.source.name
    receiver.close()
    with pytest.raises(NotFound):
        session.sender(queue)


@qpid_addresses
def test_bindings_of_topics(session: Session, queue: MakeQueue) -> None:
    address = queue()
    receiver = session.receiver(address)
    name, topic = Address(address).name, f"test-{uuid.uuid4().hex[:12]}"
    bindings = f"x-bindings: [{{queue: {name}, key: 'a.*'}}]"
    with session.sender(f"{topic}; {{create: always, delete: always, node: {{type: topic, {bindings}}}}}") as sender:
        for subject in ("a.b", "b.c"):
            sender.send(Message(subject, subject=subject))
        assert receiver.fetch(timeout=10).content == "a.b"
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_bindings_that_cannot_be_made(session: Session, queue: MakeQueue) -> None:
    address = queue()
    name = Address(address).name
    session.sender(address)
    for binding, missing in (
        (f"exchange: missing-{name}", f"missing-{name}"),
        (f"exchange: amq.direct, queue: missing-{name}", f"missing-{name}"),
    ):
        with pytest.raises(NotFound, match=missing):
            session.sender(f"{name}; {{node: {{x-bindings: [{{{binding}}}]}}}}")
    with pytest.raises(InvalidOption, match="needs an exchange or a queue"):
        session.sender(f"{name}; {{node: {{x-bindings: [{{key: x}}]}}}}")
    session.sender(name).send("usable")
