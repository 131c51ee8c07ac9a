"""The topologies of the manual, by dynamic routes: everything arrives, nothing circles, and nothing stays bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from broker.federation.federated import send
from broker.federation.routed import RoutedBroker
from support.waiting import until

EXCHANGE = "amq.topic"

#: The links of a topology: destination and source of each route. Those with one way between any two brokers come first.
Pairs = Iterable[tuple[int, int]]


def both(pairs: Pairs) -> list[tuple[int, int]]:
    """Routes in both directions."""
    return [route for one, two in pairs for route in ((one, two), (two, one))]


CHAIN = both([(0, 1), (1, 2), (2, 3)])
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
TREE = both([(1, 0), (2, 0), (3, 1), (4, 1), (5, 2)])
TWO_WAY_RING = both([(0, 1), (1, 2), (2, 3), (3, 0)])
MESH = both((one, two) for one in range(5) for two in range(one))


@asynccontextmanager
async def topology(routes: list[tuple[int, int]], **options: object) -> AsyncIterator[list[RoutedBroker]]:
    """Brokers with subscribers of ``k`` at each, as soon as each knows of the others."""
    async with AsyncExitStack() as stack:
        count = max(max(route) for route in routes) + 1
        brokers = [await stack.enter_async_context(RoutedBroker(queues=["q"])) for _ in range(count)]
        for destination, source in routes:
            brokers[destination].dynamic(brokers[source], EXCHANGE, **options)
        for broker in brokers:
            broker.bind(EXCHANGE, "q", "k")
        for broker in brokers:
            await broker.all_up()
        for destination, source in routes:
            queue = next(
                item.queue_name
                for item in map(brokers[destination].asks, names(brokers[destination]))
                if item.link.place[1] == brokers[source].port
            )
            exchange = brokers[source].exchange(EXCHANGE)
            await until(
                lambda exchange=exchange, queue=queue: any(  # type: ignore[misc]
                    item.queue.name == queue for item in exchange.all_bindings()
                ),
                "the route is bound",
            )
        yield brokers


def names(broker: RoutedBroker) -> list[str]:
    return [item.name for item in broker.federation.bridges]


async def publish_everywhere(brokers: list[RoutedBroker]) -> None:
    for number, broker in enumerate(brokers):
        await send(broker, f"{EXCHANGE}/k", *(f"{number}.{item}" for item in range(3)))


def contents(broker: RoutedBroker) -> Counter[str]:
    return Counter(str(entry.message.data[-3:].decode()) for entry in broker.queue("q").contents.waiting())


def expected(brokers: list[RoutedBroker]) -> set[str]:
    return {f"{number}.{item}" for number in range(len(brokers)) for item in range(3)}


async def settle(brokers: list[RoutedBroker]) -> None:
    """Wait until every message is at every broker, and the queues of all routes are empty."""
    wanted = expected(brokers)
    await until(lambda: all(contents(broker).keys() == wanted for broker in brokers), "everything arrived")
    await until(
        lambda: (
            not any(
                queue.contents.depth.count
                for broker in brokers
                for queue in broker.registry.queues
                if queue.name.startswith("qpid.bridge_queue_")
            )
        ),
        "nothing is under way",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("routes", "options"),
    [(CHAIN, {}), (RING, {}), (TREE, {}), (MESH, {"max_hops": 1})],
    ids=["chain", "ring", "tree", "mesh with one hop"],
)
async def test_each_broker_gets_each_message_once(routes: list[tuple[int, int]], options: dict[str, object]) -> None:
    async with topology(routes, **options) as brokers:
        await publish_everywhere(brokers)
        await settle(brokers)
        for broker in brokers:
            assert set(contents(broker).values()) == {1}


@pytest.mark.slow
async def test_by_several_ways_a_message_comes_as_often_as_there_are_ways_at_most() -> None:
    async with topology(TWO_WAY_RING) as brokers:
        await publish_everywhere(brokers)
        await settle(brokers)
        for number, broker in enumerate(brokers):
            counts = contents(broker)
            own = {counts[f"{number}.{item}"] for item in range(3)}
            assert own == {1}  # none has come back
            assert set(counts.values()) <= {1, 2}


@pytest.mark.slow
async def test_subscribers_that_go_leave_no_binding_in_a_mesh() -> None:
    async with topology(both((one, two) for one in range(4) for two in range(one))) as brokers:
        for broker in brokers:
            broker.unbind(EXCHANGE, "q", "k")
        await until(lambda: not any(broker.keys(EXCHANGE) for broker in brokers), "nobody asks for it")
