"""Subscriptions that outlive their links or are shared, with proton's own client."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import proton
import pytest
from proton.reactor import Copy, DurableSubscription, LinkOption, Selector
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

from qmf.broker import EmbeddedBroker


class Shared(LinkOption):
    """What JMS asks for, for a subscription that several receivers share."""

    def apply(self, link: proton.Link) -> None:
        link.source.capabilities.put_object(proton.symbol("shared"))
        link.source.expiry_policy = proton.Terminus.EXPIRE_NEVER

    def test(self, link: proton.Link) -> bool:
        return bool(link.is_receiver)


class Named(LinkOption):
    """A null source: asks for the subscription of the link's name."""

    def apply(self, link: proton.Link) -> None:
        link.source.type = proton.Terminus.UNSPECIFIED

    def test(self, link: proton.Link) -> bool:
        return bool(link.is_receiver)


@contextlib.contextmanager
def connected(broker: EmbeddedBroker, container: str = "client") -> Iterator[BlockingConnection]:
    connection = BlockingConnection(broker.url.removeprefix("amqp://"), timeout=30, container_id=container)
    try:
        yield connection
    finally:
        connection.close()


def subscribe(connection: BlockingConnection, *options: LinkOption, name: str = "mine") -> BlockingReceiver:
    return connection.create_receiver("amq.topic", name=name, options=[*options], credit=10)


def end(receiver: BlockingReceiver) -> None:
    receiver.close()  # type: ignore[no-untyped-call]


def publish(connection: BlockingConnection, *texts: str, number: int = 0) -> None:
    sender = connection.create_sender("amq.topic")
    for text in texts:
        sender.send(proton.Message(text, subject="news", durable=True, properties={"number": number}))
    sender.close()  # type: ignore[no-untyped-call]


def received(receiver: BlockingReceiver, count: int) -> list[object]:
    found: list[object] = []
    for _ in range(count):
        found.append(receiver.receive(timeout=30).body)
        receiver.accept()
    return found


def test_a_durable_subscription_gathers_messages_while_its_client_is_away(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        with connected(broker) as client:
            subscribe(client, DurableSubscription())
        with connected(broker, "other") as other:
            publish(other, "a")
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker, "other") as other:
        publish(other, "b")
        with connected(broker) as client:
            assert received(subscribe(client, DurableSubscription()), 2) == ["a", "b"]


def test_closing_ends_a_subscription(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker) as client:
        end(subscribe(client, DurableSubscription()))
        publish(client, "a")
        receiver = subscribe(client, DurableSubscription())
        publish(client, "b")
        assert received(receiver, 1) == ["b"]


def test_a_link_without_a_source_finds_a_subscription_and_ends_it(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        with connected(broker) as client:
            subscribe(client, DurableSubscription())
        with connected(broker) as client:
            found = client.create_receiver(None, name="mine", options=Named(), credit=0)
            assert found.link.remote_source.address == "amq.topic"
            end(found)
            with pytest.raises(LinkDetached, match="there is no subscription"):
                client.create_receiver(None, name="mine", options=Named(), credit=0)


def test_other_filters_make_another_subscription(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker, "other") as other:
        with connected(broker) as client:
            subscribe(client, DurableSubscription())
        publish(other, "old", number=1)
        with connected(broker) as client:
            receiver = subscribe(client, DurableSubscription(), Selector("number = 2"))
            publish(other, "left out", number=1)
            publish(other, "new", number=2)
            assert received(receiver, 1) == ["new"]
        publish(other, "left out", number=1)
        publish(other, "later", number=2)
        with connected(broker) as client:
            assert received(subscribe(client, DurableSubscription(), Selector("number = 2")), 1) == ["later"]


def test_receivers_share_a_subscription() -> None:
    with EmbeddedBroker() as broker, connected(broker) as client:
        receivers = [subscribe(client, Shared(), name="ours"), subscribe(client, Shared(), name="ours|2")]
        publish(client, "a", "b", "c", "d")
        assert sorted(str(text) for each in receivers for text in received(each, 2)) == ["a", "b", "c", "d"]


def test_an_exclusive_subscription_has_one_receiver(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker) as client:
        subscribe(client, DurableSubscription())
        with connected(broker) as again, pytest.raises(LinkDetached, match="has a receiver"):
            subscribe(again, DurableSubscription())


def test_without_a_store_a_durable_subscription_outlives_its_link_but_not_the_broker() -> None:
    with EmbeddedBroker() as broker:
        with connected(broker) as client:
            subscribe(client, DurableSubscription())
        with connected(broker) as client:
            publish(client, "while away")
            assert received(subscribe(client, DurableSubscription()), 1) == ["while away"]


def test_receiving_from_the_queue_of_a_subscription_by_its_name_does_not_end_it(tmp_path: Path) -> None:
    """Tools browse such queues, and whoever may do no more than that must not end the subscription of somebody else."""
    with EmbeddedBroker(data_dir=tmp_path) as broker, connected(broker, "other") as other:
        with connected(broker) as client:
            subscribe(client, DurableSubscription())
        publish(other, "a", "b")
        browsing = other.create_receiver("client_mine", options=Copy(), credit=1)
        assert browsing.receive(timeout=30).body == "a"
        end(browsing)
        taking = other.create_receiver("client_mine", credit=1)
        assert received(taking, 1) == ["a"]
        end(taking)
        with connected(broker) as client:
            receiver = subscribe(client, DurableSubscription())
            assert received(receiver, 1) == ["b"]
            end(receiver)
        with pytest.raises(LinkDetached, match="no exchange or queue 'client_mine'"):
            other.create_receiver("client_mine")
