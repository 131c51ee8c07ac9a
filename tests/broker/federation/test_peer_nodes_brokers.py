"""Links to brokers of others, in both directions: the brokers of the contract tests (`support.brokers`)."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import pytest
from broker.federation.federated import IN, OUT, FederatedBroker, receive, send
from broker.federation.routed import RoutedBroker
from broker.relay.relaying import DOMAIN, RelayingBroker
from support.brokers import EMBEDDED, NAMES, URLS
from support.frame_cutter import Cut, FrameCutter, Performative
from support.managed_brokers import unique
from support.waiting import until

from qmf.broker.federation.duplicate_ids import DUPLICATE_ID
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.principal import BROKER
from qmf.broker.relay.options import RelayOptions
from qmf.messaging import aio
from qmf.messaging.message import Message

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("name", NAMES)]

#: How often a connection is cut in `make soak`.
CUTS = int(os.environ.get("QMF_SOAK_CUTS", "100"))


@attrs.frozen
class Peer:
    """Another broker.

    Attributes:
        name: its kind.
        url: where it is.
        queue: the name of a queue there.
    """

    name: str
    url: str
    queue: str

    @property
    def exchange(self) -> str:
        """What a link calls a node that passes messages to all who are there."""
        return "amq.topic" if self.name != "artemis" else f"news-{self.queue}"

    def publishing(self, subject: str) -> str:
        """The address of that in the messaging API."""
        kind = "; {node: {type: topic}}" if self.name == "artemis" else ""
        return f"{self.exchange}/{subject}{kind}"


@asynccontextmanager
async def peer(name: str) -> AsyncIterator[Peer]:
    """A broker with a queue."""
    queue = unique("federated")
    if name == EMBEDDED:
        async with FederatedBroker(port=0, queues=[queue]) as broker:
            yield Peer(name, broker.url, queue)
        return
    url = URLS[name]
    async with aio.Connection(url) as connection:
        session = await connection.session()
        delete = ", delete: always" if name == "qpidd" else ""
        receiver = await session.receiver(f"{queue}; {{create: always{delete}}}", capacity=0)
        yield Peer(name, url, queue)
        await receiver.close()


async def test_messages_go_there_and_come_from_there(name: str) -> None:
    contents = [str(number) for number in range(600)]
    async with (
        peer(name) as other,
        FederatedBroker(port=0, queues=["start"]) as first,
        FederatedBroker(port=0, queues=["end"]) as last,
    ):
        for broker in (first, last):
            broker.domain(other.url)
        first.link(OUT, "start", other.queue, name=unique("out"))
        last.link(IN, other.queue, "end", name=unique("in"))
        await send(first, "start", *contents, durable=True)
        assert await receive(last, "end", len(contents)) == contents
        await until(lambda: not first.depth("start"), "all were accepted")


async def test_a_message_that_has_waited_leaves_with_what_is_left_of_its_time_to_live(name: str) -> None:
    async with peer(name) as other, FederatedBroker(port=0, queues=["start", "end"]) as here:
        await send(here, "start", "one", "two", ttl=60)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: loop.time() > began + 0.05, "some of the time to live")
        here.domain(other.url)
        here.link(OUT, "start", other.queue, name=unique("out"))
        await send(here, "start", "three", ttl=59.9)
        async with aio.Connection(other.url) as connection:
            receiver = await (await connection.session()).receiver(other.queue, capacity=3)
            for _ in range(3):
                found = (await receiver.fetch(timeout=30)).ttl
                assert (found is None and name == "rabbitmq") or (found is not None and 30 < found < 59.96)


async def test_a_subscription_with_a_key(name: str) -> None:
    key = unique("key")
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(other.url)
        link = unique("in")
        kind = {"peer_type": "topic"} if name == "artemis" else {}
        here.link(IN, other.exchange, "here", name=link, key=key, **kind)
        await here.state(PeerLinkState.OPERATIONAL, link)
        await send(other.url, other.publishing("another"), "no")
        await send(other.url, other.publishing(key), "yes")
        assert await receive(here, "here", 1) == ["yes"]
        assert not here.depth("here")


async def test_a_circle_ends(name: str) -> None:
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(other.url)
        here.link(OUT, "here", other.queue, name=unique("out"))
        here.link(IN, other.queue, "amq.fanout", name=unique("in"))
        await send(here, "here", "x")
        links = here.federation.links
        await until(lambda: sum(link.unforwarded.count for link in links) == 1, "it comes back, and is at its end")
        assert here.registry.counters.discarded == 0


async def test_a_message_whose_acceptance_is_lost_comes_once_by_its_id(name: str) -> None:
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        with FrameCutter(other.url) as proxy:
            here.domain(proxy.url)
            link = unique("in")
            here.link(IN, other.queue, "here", name=link)
            await here.state(PeerLinkState.OPERATIONAL, link)
            proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=True, passed=False))
            await send(other.url, other.queue, "one", id=unique("id"))
            await until(lambda: proxy.cuts == 1, "its acceptance is lost")
            await here.state(PeerLinkState.OPERATIONAL, link)
            await send(other.url, other.queue, "two", id=unique("id"))
            expected = ["one", "one", "two"] if name == EMBEDDED else ["one", "two"]
            assert await receive(here, "here", len(expected)) == expected


async def test_a_message_that_is_sent_again_has_its_id(name: str) -> None:
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        with FrameCutter(other.url) as proxy:
            here.domain(proxy.url)
            link = unique("out")
            here.link(OUT, "here", other.queue, name=link)
            await here.state(PeerLinkState.OPERATIONAL, link)
            proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=False, passed=False))
            id = unique("id")
            await send(here, "here", "one", id=id)
            await until(lambda: proxy.cuts == 1 and not here.depth("here"), "it is sent again")
            async with aio.Connection(other.url) as connection:
                session = await connection.session()
                receiver = await session.receiver(other.queue)
                found = [await receiver.fetch(timeout=10) for _ in range(2)]
                await session.acknowledge()
            assert [(message.content, message.id) for message in found] == [("one", id)] * 2


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "in memory"])
async def test_a_message_of_a_durable_link_whose_acceptance_is_lost(name: str, stored: bool, tmp_path: Path) -> None:
    """Artemis knows it by its duplicate id, and the embedded broker resumes the link; others have it twice."""
    async with peer(name) as other, FederatedBroker(port=0, data_dir=tmp_path / "here") as here:
        wanted = read_node_declaration(("queue",), {"durable": True}, limits=here.registry.limits)
        here.operations.create(BROKER, "here", wanted)
        with FrameCutter(other.url) as proxy:
            here.domain(proxy.url, durable=True)
            link = unique("out")
            here.link(OUT, "here", other.queue, name=link, durable=True)
            await here.state(PeerLinkState.OPERATIONAL, link)
            proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=False, passed=False))
            before = here.queue("here").counters.enqueues
            await send(here, "here", "one", durable=stored, properties={"colour": "red"})
            await until(lambda: proxy.cuts == 1 and not here.depth("here"), "it is sent again")
            await send(here, "here", "two", durable=stored)
            expected = ["one", "two"] if name in ("artemis", EMBEDDED) else ["one", "one", "two"]
            assert await receive(other.url, other.queue, len(expected)) == expected
            assert here.queue("here").counters.enqueues - before == 2
            here.operations.forwarding.delete(BROKER, OUT.value, link)


async def test_what_comes_back_has_no_duplicate_id_and_may_go_there_again(name: str) -> None:
    """Artemis would drop the message that a program forwards, with the id of the first link."""
    async with (
        peer(name) as other,
        FederatedBroker(port=0, queues=["here"]) as first,
        FederatedBroker(port=0, queues=["back"]) as last,
    ):
        for broker in (first, last):
            broker.domain(other.url)
        first.link(OUT, "here", other.queue, name=unique("out"), reliability="exactly-once")
        await send(first, "here", "one", properties={"colour": "red"})
        back = unique("in")
        last.link(IN, other.queue, "back", name=back)
        async with aio.Connection(last.url) as connection:
            session = await connection.session()
            message = await (await session.receiver("back")).fetch(timeout=30)
            await session.acknowledge()
        assert (message.properties["colour"], DUPLICATE_ID in message.properties) == ("red", False)
        last.operations.forwarding.delete(BROKER, IN.value, back)
        await send(other.url, other.queue, "one", properties={**message.properties, "x-amqp-message-annotations": {}})
        assert await receive(other.url, other.queue, 1) == ["one"]


@pytest.mark.soak
async def test_many_cuts_of_a_durable_link(name: str, tmp_path: Path) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    contents = [str(number) for number in range(CUTS * 10)]
    async with peer(name) as other, FederatedBroker(port=0, data_dir=tmp_path / "here") as here:
        wanted = read_node_declaration(("queue",), {"durable": True}, limits=here.registry.limits)
        here.operations.create(BROKER, "here", wanted)
        with FrameCutter(other.url) as proxy:
            here.domain(proxy.url, durable=True)
            link = unique("out")
            here.link(OUT, "here", other.queue, name=link, durable=True)
            await here.state(PeerLinkState.OPERATIONAL, link)
            for start in range(0, len(contents), 10):
                await here.state(PeerLinkState.OPERATIONAL, link)
                await send(here, "here", *contents[start : start + 10], durable=True)
                for _ in range(chance.randrange(1, 60)):
                    await asyncio.sleep(0)
                proxy.cut()
            await until(lambda: not here.depth("here"), "all are there")
            here.operations.forwarding.delete(BROKER, OUT.value, link)
        found = []
        async with aio.Connection(other.url) as connection:
            session = await connection.session()
            await (await session.sender(other.queue)).send(Message("end"))
            receiver = await session.receiver(other.queue, capacity=100)
            while (message := await receiver.fetch(timeout=30)).content != "end":
                found.append(message.content)
            await session.acknowledge()
    print(f"{proxy.cuts} cuts of a link to {name} (seed {seed}): {len(contents)} messages, {len(found)} arrived")
    assert set(found) == set(contents)
    if name in ("artemis", EMBEDDED):
        assert len(found) == len(contents)


@pytest.mark.soak
async def test_many_cuts_of_a_durable_link_from_there(name: str, tmp_path: Path) -> None:
    """What the other broker sends again is known by its id, as the embedded one's is by its delivery tag."""
    chance = random.Random(seed := random.randrange(2**32))
    contents = [str(number) for number in range(CUTS * 10)]
    async with peer(name) as other, FederatedBroker(port=0, data_dir=tmp_path / "here") as here:
        wanted = read_node_declaration(("queue",), {"durable": True}, limits=here.registry.limits)
        here.operations.create(BROKER, "here", wanted)
        with FrameCutter(other.url) as proxy:
            here.domain(proxy.url, durable=True)
            link = unique("in")
            here.link(IN, other.queue, "here", name=link, durable=True)
            async with aio.Connection(other.url) as connection:
                session = await connection.session()
                sender = await session.sender(other.queue)
                for start in range(0, len(contents), 10):
                    await here.state(PeerLinkState.OPERATIONAL, link)
                    for content in contents[start : start + 10]:
                        await sender.send(Message(content, id=unique("id"), durable=True))
                    await session.sync()
                    for _ in range(chance.randrange(1, 60)):
                        await asyncio.sleep(0)
                    proxy.cut()
            await until(lambda: here.depth("here") >= len(contents), lambda: f"{here.depth('here')} are here")
            await here.state(PeerLinkState.OPERATIONAL, link)
            await send(other.url, other.queue, "end")
            found = await receive(here, "here", here.depth("here"))
            while "end" not in found:
                found += await receive(here, "here", 1)
            here.operations.forwarding.delete(BROKER, IN.value, link)
    print(f"{proxy.cuts} cuts of a link from {name} (seed {seed}): {len(contents)} messages, {len(found) - 1} arrived")
    assert sorted(map(str, found)) == sorted([*contents, "end"])


async def test_a_message_with_a_duplicate_id_of_its_publisher(name: str) -> None:
    """Artemis drops the second one, which has the same id. Links leave it as it is."""
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(other.url)
        link = unique("out")
        here.link(OUT, "here", other.queue, name=link, reliability="exactly-once")
        id = unique("id")
        for content in ("one", "two"):
            await send(here, "here", content, properties={DUPLICATE_ID: id})
        await send(here, "here", "three")
        await until(lambda: not here.depth("here"), "all are accepted")
        expected = ["one", "three"] if name == "artemis" else ["one", "two", "three"]
        assert await receive(other.url, other.queue, len(expected)) == expected


async def test_a_relay(name: str) -> None:
    options = RelayOptions(enabled=True)
    async with peer(name) as other, RelayingBroker(port=0, relay=options) as here:
        here.domain(other.url)
        relay = here.relay(domain="peer")
        await send(here, f"{other.queue}@{DOMAIN}", "x", id=unique("id"))
        if name == "rabbitmq":
            await until(lambda: relay.state_name == "Failed", lambda: relay.reason)
            assert relay.reason == "RabbitMQ has no target whose messages name their own nodes"
            return
        assert await receive(other.url, other.queue, 1) == ["x"]
        await until(lambda: relay.forwarded == 1, "it is accepted")


async def test_a_login_with_a_password(name: str) -> None:
    if name not in ("artemis", "rabbitmq"):
        pytest.skip("the tests' broker has no users")
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(other.url, username="guest", password="guest", sasl_mechanisms="PLAIN")
        link = unique("out")
        here.link(OUT, "here", other.queue, name=link)
        await send(here, "here", "x")
        assert await receive(other.url, other.queue, 1) == ["x"]
        here.operations.forwarding.delete(BROKER, OUT.value, link)


async def test_what_comes_to_a_topic_while_a_durable_link_is_down(name: str) -> None:
    if name == "rabbitmq":
        pytest.skip("RabbitMQ keeps no subscription")
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(other.url, durable=True)
        link, key = unique("in"), unique("key")
        kind = {"peer_type": "topic"} if name == "artemis" else {}
        here.link(IN, other.exchange, "here", name=link, key=key, durable=True, **kind)
        (await here.state(PeerLinkState.OPERATIONAL, link)).drop("for a test")
        await here.state(PeerLinkState.WAITING, link)
        await send(other.url, other.publishing(key), "x")
        assert await receive(here, "here", 1) == ["x"]
        here.operations.forwarding.delete(BROKER, IN.value, link)


async def test_an_exchange_or_topic_as_target(name: str) -> None:
    key = unique("key")
    async with (
        peer(name) as other,
        FederatedBroker(port=0, queues=["here"]) as here,
        aio.Connection(other.url) as connection,
    ):
        receiver = await (await connection.session()).receiver(other.publishing(key), capacity=1)
        here.domain(other.url)
        kind = {"peer_type": "topic"} if name == "artemis" else {}
        here.link(OUT, "here", other.exchange, name=unique("out"), **kind)
        await send(here, "here", "yes", subject=key)
        assert (await receiver.fetch(timeout=30)).content == "yes"


async def test_a_selector(name: str) -> None:
    async with peer(name) as other, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(other.url)
        link = unique("in")
        here.link(IN, other.queue, "here", name=link, selector="colour = 'red'")
        if name == "rabbitmq":
            assert (await here.state(PeerLinkState.FAILED, link)).reason == "selector: RabbitMQ has none"
            return
        await send(other.url, other.queue, "blue", properties={"colour": "blue"})
        await send(other.url, other.queue, "red", properties={"colour": "red"})
        assert await receive(here, "here", 1) == ["red"]
        here.operations.forwarding.delete(BROKER, IN.value, link)


async def test_routes(name: str) -> None:
    key = unique("key")
    async with peer(name) as other, RoutedBroker(queues=["queued", "bound", "start"], management=None) as here:
        place = urlsplit(other.url)
        properties = {"host": place.hostname, "port": place.port}
        here.operations.forwarding.create(BROKER, "link", "link", properties, strict=True)
        here.bind("amq.fanout", "queued")
        here.bind("amq.direct", "bound", key)
        wanted: dict[str, dict[str, object]] = {
            "of a queue": {"src": other.queue, "dest": "amq.fanout", "srcIsQueue": True},
            "static": {"src": other.exchange, "dest": "amq.direct", "key": key},
            "push": {"src": "start", "dest": other.exchange, "srcIsQueue": True, "srcIsLocal": True},
        }
        for kind, route in wanted.items():
            here.operations.forwarding.create(BROKER, "bridge", unique(kind), {"link": "link", **route}, strict=True)
        await here.all_up()
        await send(other.url, other.queue, "from the queue")
        assert await receive(here, "queued", 1) == ["from the queue"]
        await send(here, "start", "there and back", subject=key)
        await until(lambda: not here.depth("start"), "it is there")
        await send(other.url, other.publishing(key), "by its key")
        assert await receive(here, "bound", 1) == ["by its key"]  # the other one was here before
