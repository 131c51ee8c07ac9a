"""Receivers that leave out what their own client sends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import proton
import pytest
from proton.reactor import DurableSubscription, Filter, LinkOption
from proton.utils import BlockingConnection, BlockingReceiver

from qmf.broker import EmbeddedBroker


def no_local(descriptor: Any, value: Any) -> LinkOption:
    return Filter({proton.symbol("no-local"): proton.Described(descriptor, value)})


BY_NAME = no_local(proton.symbol("apache.org:no-local-filter:list"), [])
#: As qpid-jms sends it.
BY_NUMBER = no_local(proton.ulong(0x0000468C00000003), "noLocal")


@contextlib.contextmanager
def connected(broker: EmbeddedBroker, container: str) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(broker.url.removeprefix("amqp://"), timeout=30, container_id=container)
    try:
        yield connection
    finally:
        connection.close()


def publish(connection: BlockingConnection, node: str, *texts: str) -> None:
    sender = connection.create_sender(node)
    for text in texts:
        sender.send(proton.Message(text, subject="news", durable=True))
    sender.close()  # type: ignore[no-untyped-call]


def received(receiver: BlockingReceiver, count: int) -> list[object]:
    found: list[object] = []
    for _ in range(count):
        found.append(receiver.receive(timeout=30).body)
        receiver.accept()
    return found


@pytest.mark.parametrize("option", [BY_NAME, BY_NUMBER])
def test_messages_of_the_same_client_are_left_out(option: LinkOption) -> None:
    with EmbeddedBroker() as broker, connected(broker, "one") as one, connected(broker, "two") as two:
        mine = one.create_receiver("amq.topic", name="mine", options=[option], credit=10)
        everything = one.create_receiver("amq.topic", name="all", credit=10)
        assert "no-local" in {str(name) for name in filters(mine)}
        publish(one, "amq.topic", "own")
        publish(two, "amq.topic", "other")
        publish(one, "amq.topic", "own again")
        publish(two, "amq.topic", "last")
        assert received(mine, 2) == ["other", "last"]
        assert received(everything, 4) == ["own", "other", "own again", "last"]


def filters(receiver: BlockingReceiver) -> dict[Any, Any]:
    """The filters that the broker applies."""
    data = receiver.link.remote_source.filter
    data.rewind()
    data.next()
    found = data.get_object()
    assert isinstance(found, dict)
    return found


def test_a_durable_subscription_leaves_them_out_over_a_restart(tmp_path: Path) -> None:
    options: list[LinkOption] = [DurableSubscription(), BY_NAME]
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker, "one") as one, connected(broker, "two") as two:
        one.create_receiver("amq.topic", name="mine", options=options, credit=0)
        publish(one, "amq.topic", "own")
        publish(two, "amq.topic", "other")
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker, "one") as one, connected(broker, "two") as two:
        publish(one, "amq.topic", "own")
        publish(two, "amq.topic", "last")
        mine = one.create_receiver("amq.topic", name="mine", options=options, credit=10)
        assert received(mine, 2) == ["other", "last"]


def test_a_subscription_without_it_is_another_one(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        with connected(broker, "one") as one:
            one.create_receiver("amq.topic", name="mine", options=[DurableSubscription(), BY_NAME], credit=0)
        with connected(broker, "one") as one:
            mine = one.create_receiver("amq.topic", name="mine", options=DurableSubscription(), credit=10)
            publish(one, "amq.topic", "own")
            assert received(mine, 1) == ["own"]


def test_a_queue_does_not_apply_the_filter_and_says_so() -> None:
    with EmbeddedBroker(queues=["q"]) as broker, connected(broker, "one") as one:
        receiver = one.create_receiver("q", options=[BY_NAME], credit=10)
        data = receiver.link.remote_source.filter
        data.rewind()
        assert data.next() is None
        publish(one, "q", "own")
        assert received(receiver, 1) == ["own"]


def test_an_exclusive_queue_with_no_local_keeps_nothing_of_its_receiver() -> None:
    class Declared(LinkOption):
        def apply(self, link: proton.Link) -> None:
            link.source.capabilities.put_array(False, proton.Data.SYMBOL)
            link.source.capabilities.enter()
            for name in ("queue", "create-on-demand"):
                link.source.capabilities.put_symbol(proton.symbol(name))
            link.source.capabilities.exit()
            arguments: dict[Any, Any] = {"exclusive": True, "no-local": True}
            link.source.properties.put_object({proton.symbol(name): value for name, value in arguments.items()})

    with EmbeddedBroker() as broker, connected(broker, "one") as one, connected(broker, "two") as two:
        receiver = one.create_receiver("own", options=Declared(), credit=10)
        publish(one, "own", "mine")
        publish(two, "own", "other")
        assert received(receiver, 1) == ["other"]
        receiver.close()  # type: ignore[no-untyped-call]
        publish(one, "own", "nobody receives")
        again = one.create_receiver("own", credit=10)
        assert received(again, 1) == ["nobody receives"]
