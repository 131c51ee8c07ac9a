"""Routes between brokers of this project: of queues, static, dynamic, push, durable; and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from broker.federation.federated import receive, send
from broker.federation.routed import RoutedBroker
from broker.operations.rules import refusing
from support.waiting import until

from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.traces import add_to_trace, read_trace
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.policy import Action, ObjectType, OperationRefused
from qmf.broker.operations.principal import BROKER, Principal


@asynccontextmanager
async def pair(**options: object) -> AsyncIterator[tuple[RoutedBroker, RoutedBroker]]:
    """Two brokers, each with a queue ``q``."""
    async with RoutedBroker(queues=["q"]) as there, RoutedBroker(queues=["q"], **options) as here:
        yield here, there


async def test_a_queue_route_takes_the_messages_of_a_queue() -> None:
    async with pair() as (here, there):
        here.bind("amq.fanout", "q")
        await send(there, "q", "before")
        name = here.route(there, "q", "amq.fanout", srcIsQueue=True, sync=10, credit=20)
        assert await receive(here, "q", 1) == ["before"]
        await send(there, "q", "after")
        assert await receive(here, "q", 1) == ["after"]
        await until(lambda: not there.depth("q"), "the source is empty")
        assert (await here.up(name)).state_name == "Operational"


async def test_a_static_route_takes_what_its_key_matches() -> None:
    async with pair() as (here, there):
        here.bind("amq.topic", "q", "#")
        name = here.route(there, "amq.topic", "amq.topic", key="global.#")
        await here.up(name)
        await send(there, "amq.topic/local.x", "local")
        await send(there, "amq.topic/global.x", "global")
        assert await receive(here, "q", 1) == ["global"]
        here.operations.forwarding.delete(BROKER, "bridge", name)
        await until(lambda: not there.exchange("amq.topic").binding_count, "the queue of the route is gone")
        assert [link.name for link in here.federation.route_links] == [f"to {there.port}"]


@pytest.mark.parametrize("queue", [False, True])
async def test_a_push_route_sends_to_the_other_broker(queue: bool) -> None:
    async with pair() as (here, there):
        there.bind("amq.topic", "q", "#")
        source = "q" if queue else "amq.topic"
        name = here.route(there, source, "amq.topic", srcIsQueue=queue, srcIsLocal=True, key="" if queue else "a.#")
        await here.up(name)
        await send(here, source if queue else "amq.topic/a.b", "pushed", subject="a.b")
        assert await receive(there, "q", 1) == ["pushed"]


async def test_a_dynamic_route_follows_the_bindings() -> None:
    async with pair() as (here, there):
        here.bind("amq.topic", "q", "a.*")
        name = here.dynamic(there, "amq.topic")
        await here.up(name)
        assert there.keys("amq.topic") == {"a.*"}
        here.bind("amq.topic", "q", "b/c")
        await until(lambda: there.keys("amq.topic") == {"a.*", "b/c"}, lambda: str(there.keys("amq.topic")))
        await send(there, "amq.topic/a.1", "one")
        await send(there, "amq.topic/z", "nobody's")
        await send(there, "amq.topic/b/c", "two")
        assert await receive(here, "q", 2) == ["one", "two"]
        here.unbind("amq.topic", "q", "a.*")
        await until(lambda: there.keys("amq.topic") == {"b/c"}, "the key is unbound")
        here.operations.delete(BROKER, here.queue("q"))
        await until(lambda: not there.keys("amq.topic"), "all keys are unbound")


async def test_what_is_bound_by_headers_is_told_apart_by_these() -> None:
    async with pair() as (here, there):
        for broker in (here, there):
            broker.add_exchange("h", "headers")
        here.bind("h", "q", "k", **{"x-match": "all", "colour": "red"})
        await here.up(here.dynamic(there, "h"))
        await send(there, "h", "red", properties={"colour": "red"})
        await send(there, "h", "blue", properties={"colour": "blue"})
        here.bind("h", "q", "l", **{"x-match": "any", "colour": "green"})
        await until(lambda: len(there.keys("h")) == 2, "both are bound")
        await send(there, "h", "green", properties={"colour": "green"})
        assert await receive(here, "q", 2) == ["red", "green"]


@pytest.mark.slow
async def test_subscriptions_are_passed_on_through_several_brokers() -> None:
    async with AsyncExitStack() as stack:
        chain = [await stack.enter_async_context(RoutedBroker(queues=["q"])) for _ in range(4)]
        for one, two in pairwise(chain):
            one.dynamic(two, "amq.topic")
            two.dynamic(one, "amq.topic")
        chain[0].bind("amq.topic", "q", "k")
        for broker in chain:
            await broker.all_up()
        await until(lambda: chain[3].keys("amq.topic") == {"k"}, "the key came through")
        await send(chain[3], "amq.topic/k", "far")
        assert await receive(chain[0], "q", 1) == ["far"]
        chain[0].unbind("amq.topic", "q", "k")
        await until(lambda: not any(broker.keys("amq.topic") for broker in chain), "nobody asks for it")


@pytest.mark.slow
async def test_a_subscriber_in_a_ring_that_goes_leaves_no_binding() -> None:
    async with AsyncExitStack() as stack:
        ring = [await stack.enter_async_context(RoutedBroker(queues=["q"])) for _ in range(3)]
        for broker in ring:
            for other in ring:
                if other is not broker:
                    broker.dynamic(other, "amq.direct")
        for broker in ring:
            await broker.all_up()
        for broker in ring[:2]:
            broker.bind("amq.direct", "q", "k")
        await until(lambda: all(broker.keys("amq.direct") for broker in ring), "all know the key")
        for broker in ring[:2]:
            broker.unbind("amq.direct", "q", "k")
        await until(lambda: not any(broker.keys("amq.direct") for broker in ring), "nobody asks for it")


async def test_messages_of_a_pair_of_dynamic_routes_do_not_return() -> None:
    async with pair() as (here, there):
        for one, two in ((here, there), (there, here)):
            one.bind("amq.fanout", "q")
            await one.up(one.dynamic(two, "amq.fanout"))
        await until(lambda: here.keys("amq.fanout") and there.keys("amq.fanout"), "both are bound")
        await send(here, "amq.fanout", "once")
        assert await receive(there, "q", 1) == ["once"]
        assert await receive(here, "q", 1) == ["once"]
        unforwarded = [item.unforwarded.count for broker in (here, there) for item in broker.federation.bridges]
        assert unforwarded == [0, 0]  # the queues of the routes kept none of those that would return


@pytest.mark.slow
async def test_a_durable_route_is_there_after_restarts_and_loses_nothing(tmp_path: Path) -> None:
    async with RoutedBroker(data_dir=tmp_path / "there") as there:
        port = there.port
        async with RoutedBroker(data_dir=tmp_path / "here") as here:
            here.operations.create(BROKER, "q", read_node_declaration(("queue",), {"durable": True}))
            here.bind("amq.topic", "q", "k")
            here.connect(there, durable=True)
            name = here.dynamic(there, "amq.topic", durable=True)
            await here.up(name)
            tag = here.federation.tag
        await send(there, "amq.topic/k", "while it was down", durable=True)
    async with RoutedBroker(data_dir=tmp_path / "there", port=port) as there:
        async with RoutedBroker(data_dir=tmp_path / "here") as here:
            assert here.federation.tag == tag
            assert here.bridge(name).durable
            assert await receive(here, "q", 1) == ["while it was down"]
            here.unbind("amq.topic", "q", "k")
            await until(lambda: not there.keys("amq.topic"), "the key is unbound")
            here.operations.forwarding.delete(BROKER, "link", f"to {port}")
            assert not here.federation.bridges
            await until(lambda: not there.registry.queue(f"qpid.bridge_queue_{name}_{tag}"), "its queue is gone")
        async with RoutedBroker(data_dir=tmp_path / "here") as here:
            assert not here.federation.route_links


@pytest.mark.slow
async def test_a_binding_that_went_while_the_other_broker_was_away_goes_there_as_well(tmp_path: Path) -> None:
    async with RoutedBroker(data_dir=tmp_path / "there") as there:
        port = there.port
        async with RoutedBroker(data_dir=tmp_path / "here", queues=["q"]) as here:
            here.bind("amq.topic", "q", "k")
            here.connect(there, durable=True)
            name = here.dynamic(there, "amq.topic", durable=True)
            await here.up(name)
            assert there.keys("amq.topic") == {"k"}
    async with RoutedBroker(
        data_dir=tmp_path / "here", queues=["q"]
    ) as here:  # the queue and its binding were transient
        here.bind("amq.topic", "q", "l")
        async with RoutedBroker(data_dir=tmp_path / "there", port=port) as there:
            assert there.keys("amq.topic") == {"k"}
            await here.up(name)
            await until(lambda: there.keys("amq.topic") == {"l"}, lambda: str(there.keys("amq.topic")))


async def test_a_route_binds_an_existing_queue() -> None:
    async with pair() as (here, there):
        here.bind("amq.fanout", "q")
        name = here.route(there, "amq.topic", "amq.fanout", key="k", queue="q")
        await here.up(name)
        await send(there, "amq.topic/k", "x")
        assert await receive(here, "q", 1) == ["x"]


async def test_tag_and_excludes_replace_the_ids_in_traces() -> None:
    body = b"\x00\x53\x75\xa0\x04body"
    async with pair() as (here, there):
        here.bind("amq.fanout", "q")
        await here.up(here.route(there, "q", "amq.fanout", srcIsQueue=True, tag="mine", excludes="theirs,others"))
        for id in ("theirs", there.federation.tag):
            there.queue("q").enqueue(read_message(add_to_trace(body, id), 0.0))
        waiting = here.queue("q").contents.waiting
        await until(waiting, "it came")
        assert [read_trace(item.message.data) for item in waiting()] == [(there.federation.tag, "mine")]


async def test_without_management_a_dynamic_route_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.federation.peer_agent.ANSWER_TIMEOUT", 0.05)
    async with RoutedBroker(management=None) as there, RoutedBroker() as here:
        bridge = here.bridge(here.dynamic(there, "amq.topic"))
        await until(lambda: bridge.status.state is PeerLinkState.WAITING, "it waits")
        assert "dynamic routes need the management of the other broker" in bridge.reason


async def test_a_missing_exchange_at_the_other_broker_is_named() -> None:
    async with pair() as (here, there):
        here.add_exchange("own")
        here.bind("own", "q", "k")
        bridge = await here.up(here.dynamic(there, "own"))
        assert (
            "the other broker refuses 1 bindings: 'k': not-found: Bind failed. No such exchange: own" in bridge.reason
        )


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"link": "no"}, "link: there is no link 'no'"),
        ({"src": ""}, "src: is missing"),
        ({"dest": "nowhere"}, "not-found: no exchange or queue 'nowhere'"),
        ({"dynamic": True, "srcIsLocal": True}, "Dynamic routing not supported for push routes"),
        ({"dynamic": True, "srcIsQueue": True}, "the source must be an exchange"),
        ({"dynamic": True, "src": "none"}, "not-found: Exchange not found, name='none'"),
        ({"durable": True}, "Can't create a durable route on a non-durable link"),
        ({"credit": 5, "sync": 10}, "The credit value must be greater"),
        ({"max_hops": 0}, "max_hops: must be 1 or more"),
        ({"queue": "q", "srcIsQueue": True}, "only pulled exchanges have one"),
        ({"tag": "a,b"}, "tag: must not contain commas"),
        ({"sync": 70_000}, "sync: must be a number from 0 to 65535"),
        ({"other": 1}, "other: unknown"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, Mapping) else "",
)
async def test_routes_that_are_refused(properties: Mapping[str, object], error: str) -> None:
    async with RoutedBroker(queues=["q"]) as here:
        here.operations.forwarding.create(BROKER, "link", "link", {"host": "127.0.0.1", "port": 1}, strict=True)
        wanted = {"link": "link", "src": "amq.topic", "dest": "amq.topic", **properties}
        with pytest.raises(ForwardingError, match=error):
            here.operations.forwarding.create(BROKER, "bridge", "route", wanted, strict=True)
        assert not here.federation.bridges


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"host": ""}, "host: is missing"),
        ({"port": 0}, "port: is missing"),
        ({"port": 70_000}, "port: must be a number"),
        ({"transport": "rdma"}, "transport is not supported: rdma"),
        ({"other": 1}, "other: unknown"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, Mapping) else "",
)
async def test_links_that_are_refused(properties: Mapping[str, object], error: str) -> None:
    async with RoutedBroker() as here:
        wanted = {"host": "127.0.0.1", "port": 1, **properties}
        with pytest.raises(ForwardingError, match=error):
            here.operations.forwarding.create(BROKER, "link", "link", wanted, strict=True)


async def test_names_are_given_once_and_what_is_missing_is_named() -> None:
    async with RoutedBroker() as here:
        here.operations.forwarding.create(BROKER, "link", "link", {"host": "127.0.0.1", "port": 1})
        wanted = {"link": "link", "src": "amq.topic", "dest": "amq.topic"}
        for name, error in (("link", "object already exists: link"), ("qpid.x", "names prefixed with 'qpid.'")):
            with pytest.raises(ForwardingError, match=error):
                here.operations.forwarding.create(BROKER, "bridge", name, wanted)
        for kind in ("bridge", "link"):
            with pytest.raises(ForwardingError, match=f"No such {kind}: none"):
                here.operations.forwarding.delete(BROKER, kind, "none")


async def test_rules_say_who_has_links_and_what_their_routes_may() -> None:
    bob = Principal("bob", "10.1.1.1:1", "AMQP 1.0")
    place = {"host": "127.0.0.1", "port": 1}
    async with RoutedBroker(policy=refusing(Action.CREATE, ObjectType.LINK)) as here:
        with pytest.raises(OperationRefused):
            here.operations.forwarding.create(bob, "link", "link", place)
    async with RoutedBroker(policy=refusing(Action.PUBLISH, ObjectType.EXCHANGE)) as here:
        here.operations.forwarding.create(bob, "link", "link", place)
        with pytest.raises(OperationRefused):
            here.operations.forwarding.create(
                bob, "bridge", "r", {"link": "link", "src": "q", "srcIsQueue": True, "dest": "amq.topic"}
            )


async def test_a_link_is_up_without_routes() -> None:
    async with pair() as (here, there):
        here.connect(there)
        (link,) = here.federation.route_links
        await until(lambda: link.state_name == "Operational", lambda: link.reason)
        assert link.session is not None
        assert link.place == ("127.0.0.1", there.port, False)
