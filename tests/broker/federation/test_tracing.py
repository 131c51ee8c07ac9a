"""Circles of links: every message arrives where it should, as often as it should, and then it is at its end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from broker.federation.federated import IN, OUT, FederatedBroker, pair, receive, send
from support.waiting import until

from qmf.broker.federation.definitions import read_link
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.federation.tracing import PAUSE, LinkTrace, UnforwardedMessages, broker_id
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.traces import add_to_trace, read_trace
from qmf.broker.operations.forwarding import LinkDirection
from qmf.broker.operations.principal import BROKER

UP = PeerLinkState.OPERATIONAL

#: Who asks for the links of a ring.
KINDS = {"incoming": (IN, IN, IN), "outgoing": (OUT, OUT, OUT), "mixed": (OUT, IN, OUT)}

BODY = b"\x00\x53\x75\xa0\x04body"


def traced(*ids: str) -> bytes:
    data = BODY
    for id in ids:
        data = add_to_trace(data, id)
    return data


def trace_of(direction: LinkDirection = OUT, own: str = "own", peer: str = "peer", **properties: object) -> LinkTrace:
    wanted = {"domain": "peer", "source": "a", "target": "b", **properties}
    return LinkTrace(own, peer, read_link(direction, "link", wanted, BROKER))


@asynccontextmanager
async def brokers(count: int) -> AsyncIterator[list[FederatedBroker]]:
    """Brokers with a queue ``all`` at ``amq.fanout``, and a queue ``q`` with the queue ``end`` behind its alternate."""
    async with AsyncExitStack() as stack:
        found = []
        for place in range(count):
            broker = await stack.enter_async_context(
                FederatedBroker(port=0, queues=["all", "end"], name=f"broker {place}")
            )
            properties = {"alternate-exchange": "amq.direct"}
            broker.operations.create(BROKER, "q", read_node_declaration(("queue",), properties))
            for exchange, queue, key in (("amq.fanout", "all", ""), ("amq.direct", "end", "s")):
                node: Any = broker.registry.exchange(exchange)
                broker.operations.bind(BROKER, node, broker.queue(queue), BindingSpec(key))
            found.append(broker)
        yield found


async def connect(
    it: FederatedBroker, next: FederatedBroker, direction: LinkDirection, source: str, target: str, **options: object
) -> None:
    """Make a link from a broker to the next one, asked for by either."""
    owner, peer = (it, next) if direction is OUT else (next, it)
    name = f"link-{len(owner.federation.links)}"
    owner.domain(peer.url, name)
    owner.link(direction, source, target, name, domain=name, **options)
    await owner.state(UP, name)


async def make_ring(ring: Sequence[FederatedBroker], kind: str, source: str, target: str) -> None:
    for place, direction in zip(range(len(ring)), KINDS[kind], strict=False):
        await connect(ring[place], ring[(place + 1) % len(ring)], direction, source, target)


def unforwarded(ring: Sequence[FederatedBroker]) -> int:
    """Messages that were not forwarded."""
    return sum(link.unforwarded.count for broker in ring for link in broker.federation.links)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, 3])
async def test_a_ring_of_exchanges(count: int, kind: str) -> None:
    async with brokers(count) as ring:
        await make_ring(ring, kind, "amq.fanout", "amq.fanout")
        sent = [f"{place}-{number}" for place in range(count) for number in range(20)]
        for place, broker in enumerate(ring):
            await send(broker, "amq.fanout", *sent[place * 20 : place * 20 + 20])
        await until(lambda: unforwarded(ring) == 20 * count, lambda: f"all are at their end: {unforwarded(ring)}")
        for broker in ring:
            assert sorted(map(str, await receive(broker, "all", 20 * count))) == sorted(sent)
        await until(lambda: not any(queue.contents.depth.count for it in ring for queue in it.registry.queues), "empty")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [2, 3])
async def test_a_ring_of_queues_ends_at_the_alternate_exchange(count: int, kind: str) -> None:
    contents = [str(number) for number in range(20)]
    async with brokers(count) as ring:
        await make_ring(ring, kind, "q", "q")
        await send(ring[0], "q", *contents, subject="s")
        assert await receive(ring[-1], "end", 20) == contents
        assert unforwarded(ring) == 20
        assert [broker.queue("q").counters.enqueues for broker in ring] == [20] * count
        await until(lambda: not any(broker.depth("q") for broker in ring), "the queues are empty")


async def test_a_circle_of_a_queue_and_an_exchange() -> None:
    async with brokers(2) as (here, there):
        await connect(here, there, OUT, "amq.fanout", "q")
        await connect(there, here, IN, "q", "amq.fanout")
        await send(here, "amq.fanout", "one", subject="s")
        assert await receive(there, "end", 1) == ["one"]
        await send(there, "q", "two", subject="s")
        assert await receive(here, "all", 2) == ["one", "two"]
        await until(lambda: unforwarded([here]) == 2, "both are at their end")
        assert (here.depth("all"), there.depth("q"), there.depth("end")) == (0, 0, 0)


async def test_a_broker_with_links_to_itself() -> None:
    async with brokers(1) as ring:
        await make_ring(ring, "outgoing", "amq.fanout", "amq.fanout")
        await send(ring[0], "amq.fanout", "x")
        await until(lambda: unforwarded(ring) == 1, "the message is at its end")
        assert await receive(ring[0], "all", 2) == ["x", "x"]


@pytest.mark.parametrize("directions", [(OUT, OUT), (OUT, IN), (IN, OUT), (IN, IN)])
async def test_a_chain_passes_messages_on(directions: tuple[LinkDirection, LinkDirection]) -> None:
    async with brokers(3) as (one, two, three):
        await connect(one, two, directions[0], "q", "q", max_hops=1)
        await connect(two, three, directions[1], "q", "amq.fanout", max_hops=2)
        await send(one, "q", "x", subject="s")
        await until(lambda: three.depth("all") == 1, "it arrives")
        (entry,) = three.queue("all").contents.waiting()
        assert read_trace(entry.message.data) == ("broker%200", "broker%201")
        assert await receive(three, "all", 1) == ["x"]
        await until(lambda: not two.depth("q"), "it is accepted")
        assert unforwarded((one, two, three)) == 0


@pytest.mark.parametrize("direction", [IN, OUT])
async def test_a_chain_ends_at_the_limit_of_a_link(direction: LinkDirection) -> None:
    async with brokers(3) as (one, two, three):
        await connect(one, two, direction, "q", "q")
        await connect(two, three, direction, "q", "q", max_hops=1)
        await send(one, "q", "x", subject="s")
        assert await receive(two, "end", 1) == ["x"]
        await send(two, "q", "y", subject="s")
        await until(lambda: three.depth("q") == 1, "what begins here passes")
        assert unforwarded((two, three)) == 1


@pytest.mark.parametrize("direction", [IN, OUT])
async def test_messages_of_other_formats_pass_as_they_are(direction: LinkDirection) -> None:
    async with brokers(2) as (here, there):
        await connect(here, there, direction, "q", "all")
        for data in (b"\x01\x02", BODY):
            here.registry.publish(here.queue("q"), read_message(data, 0.0, 7))
        await until(lambda: there.depth("all") == 2, "they arrive")
        opaque, readable = [entry.message for entry in there.queue("all").contents.waiting()]
        assert (opaque.data, opaque.message_format, readable.message_format) == (b"\x01\x02", 7, 7)
        assert read_trace(readable.data) == ("broker%200",)


async def test_messages_whose_annotations_cannot_be_read_are_not_forwarded() -> None:
    data = add_to_trace(BODY, "a").replace(b"\xa1\x01a", b"\xa1\x01\xff")
    async with brokers(2) as (here, there):
        here.registry.publish(here.queue("q"), read_message(data, 0.0))
        await connect(here, there, OUT, "q", "all")
        await until(lambda: unforwarded([here]) == 1, "it is not sent")
        await until(lambda: not here.depth("q"), "it is rejected")
        assert here.queue("q").counters.rejected == 1


async def test_a_message_that_the_other_broker_gives_back_keeps_its_trace() -> None:
    async with pair() as (here, there):
        properties = {"qpid.max_count": 1, "qpid.flow_stop_count": 0}
        there.operations.create(BROKER, "small", read_node_declaration(("queue",), properties))
        here.link(OUT, "here", "small")
        await send(here, "here", "a", "b")
        await here.state(PeerLinkState.WAITING)
        assert [read_trace(entry.message.data) for entry in here.queue("here").contents.waiting()] == [()]
        assert await receive(there, "small", 2) == ["a", "b"]


def test_what_is_forwarded() -> None:
    for direction, added in ((OUT, "own"), (IN, "peer")):
        trace = trace_of(direction, max_hops=2)
        assert trace.added == added
        assert not trace.refusal(BODY)
        assert not trace.refusal(traced("a"))
        assert not trace.refusal(b"\x01\x02", 7)
        assert trace.refusal(traced("a", "b")) == "it has left 2 brokers by links"
        assert trace.refusal(traced("own", "a")) == "it has left this broker before"
        assert trace.refusal(traced("a", "peer"), 7) == "it has left the other broker by a link before"
        assert trace.refusal(BODY[:2]).startswith("its trace cannot be read: ")


def test_a_broker_without_an_id_adds_none() -> None:
    trace = trace_of(IN, peer="")
    assert trace.added == ""
    assert not trace.refusal(traced("a"))


def test_an_id_has_no_separators() -> None:
    assert broker_id("a, b") == "a%2C%20b"


def test_the_log_has_a_line_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qmf.broker.federation")
    now = [0.0]
    messages = UnforwardedMessages("outgoing link x of domain y", lambda: now[0])
    for _ in range(3):
        messages.add("a reason")
    now[0] += PAUSE
    messages.add("another")
    text = "outgoing link x of domain y has not forwarded messages, {} so far; the last one: {}"
    assert [record.getMessage() for record in caplog.records] == [text.format(1, "a reason"), text.format(4, "another")]
