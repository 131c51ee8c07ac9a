"""Circles and long ways of routes of every kind: nothing goes round, and nothing goes further than it may."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from broker.federation.federated import send
from broker.federation.routed import RoutedBroker
from support.waiting import until

#: Properties of each kind of route, and where a message goes in.
KINDS: Mapping[str, tuple[dict[str, object], str]] = {
    "queue": ({"src": "q", "dest": "amq.fanout", "srcIsQueue": True}, "q"),
    "static": ({"src": "amq.topic", "dest": "amq.topic", "key": "k"}, "amq.topic/k"),
    "dynamic": ({"src": "amq.topic", "dest": "amq.topic", "dynamic": True}, "amq.topic/k"),
    "push": ({"src": "amq.topic", "dest": "amq.topic", "key": "k", "srcIsLocal": True}, "amq.topic/k"),
    "push of a queue": ({"src": "q", "dest": "amq.fanout", "srcIsQueue": True, "srcIsLocal": True}, "q"),
}


@asynccontextmanager
async def row(kind: str, count: int, *, closed: bool, **options: object) -> AsyncIterator[list[RoutedBroker]]:
    """Brokers in a row, each with a route to the next one; `closed` if from the last one to the first one as well."""
    properties, _ = KINDS[kind]
    async with AsyncExitStack() as stack:
        brokers = [await stack.enter_async_context(RoutedBroker(queues=["q"])) for _ in range(count)]
        for broker in brokers:
            broker.bind("amq.fanout", "q")
            broker.bind("amq.topic", "q", "k")
        for number in range(count if closed else count - 1):
            one, two = brokers[number], brokers[(number + 1) % count]
            own, other = (one, two) if "srcIsLocal" in properties else (two, one)
            own.route(other, **{**properties, **options})  # type: ignore[arg-type]
        for broker in brokers:
            await broker.all_up()
        if kind == "dynamic":
            bound = brokers if closed else brokers[:-1]
            await until(lambda: all(broker.keys("amq.topic") for broker in bound), "all routes are bound")
        yield brokers


def unforwarded(brokers: list[RoutedBroker]) -> int:
    """Messages that no route has forwarded."""
    return sum(route.unforwarded.count for broker in brokers for route in broker.federation.bridges)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_circle_ends(kind: str) -> None:
    async with row(kind, 3, closed=True) as brokers:
        await send(brokers[0], KINDS[kind][1], "x")
        if kind == "dynamic":  # a broker does not ask for what has been there before
            await until(lambda: [broker.depth("q") for broker in brokers] == [1, 1, 1], "all have it")
            return
        await until(lambda: unforwarded(brokers) == 1, "it was everywhere, and is at its end")
        left = [0, 0, 0] if "queue" in kind else [1, 1, 1]
        await until(lambda: [broker.depth("q") for broker in brokers] == left, "nothing else is under way")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_hops_are_limited(kind: str) -> None:
    async with row(kind, 3, closed=False, max_hops=1) as brokers:
        await send(brokers[0], KINDS[kind][1], "x")
        await until(lambda: unforwarded(brokers) == 1, "it has made one hop")
        assert brokers[2].depth("q") == 0
