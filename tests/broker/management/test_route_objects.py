"""Routes between brokers as objects: their state, what they have transferred, and how far they are behind."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from broker.federation.federated import send
from broker.federation.routed import RoutedBroker
from broker.management.managed import Raised, knows_agent
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import until

from qmf.broker.operations.principal import BROKER
from qmf.console.aio import Client
from qmf.models.federation import console as remote


async def route_of(client: Client, accepts: Callable[[remote.Route], object]) -> remote.Route:
    """The only route, once it is accepted."""
    while True:
        (found,) = await client.objects(remote.Route)
        if accepts(found):
            return found


async def test_a_route_from_another_broker() -> None:
    async with (
        RoutedBroker(queues=["q"], name="far") as far,
        RoutedBroker(queues=["q"], name="near") as near,
        Client(near.url, settle=0.0) as client,
    ):
        await knows_agent(client)
        near.bind("amq.fanout", "q")
        await send(far, "q", "a", "b", "c")
        near.route(far, "q", "amq.fanout", "route", srcIsQueue=True)
        found = await route_of(client, lambda item: item.transfers == 3 and item.measured)
        assert (found.name, found.kind, found.link) == ("route", "bridge", f"to {far.port}")
        assert (found.broker, found.peer, found.place) == ("near", "far", f"127.0.0.1:{far.port}")
        assert (found.outgoing, found.dynamic, found.durable) == (False, False, False)
        assert (found.source, found.target, found.key) == ("q", "amq.fanout", "")
        assert (found.state, found.up, found.lastError, found.losses) == ("Operational", True, "", 0)
        found = await route_of(client, lambda item: item.measured and not item.backlog)
        assert (found.behind, found.unforwarded) == (0, 0)
        await route_of(client, lambda item: item.credit == 497)  # of 500
        near.operations.forwarding.delete(BROKER, "bridge", "route")
        assert not await client.objects(remote.Route)


async def test_what_waits_at_the_other_broker() -> None:
    """This broker leaves what the route has transferred, so that there is no more credit."""
    async with (
        RoutedBroker(queues=["q"]) as far,
        RoutedBroker() as near,
        Client(near.url, settle=0.0) as client,
    ):
        await knows_agent(client)
        near.route(far, "q", "amq.fanout", "route", srcIsQueue=True)
        await near.up("route")
        bridge = near.bridge("route")
        bridge.on_deliveries = lambda batch: None  # type: ignore[method-assign]
        bridge.on_delivery = lambda delivery: None  # type: ignore[method-assign]
        await send(far, "q", *map(str, range(900)))
        found = await route_of(client, lambda item: item.backlog and item.behind)
        assert (found.backlog, found.up) == (400, True)  # 500 are on their way


async def test_a_route_that_is_lost() -> None:
    async with RoutedBroker(queues=["q"]) as near, Client(near.url, settle=0.0) as client:
        await knows_agent(client)
        async with RoutedBroker(queues=["q"]) as far:
            near.route(far, "q", "amq.fanout", "route", srcIsLocal=True, srcIsQueue=True)
            await near.up("route")
            await send(near, "q", "passes")
            await route_of(client, lambda item: item.transfers == 1 and not item.backlog)
        found = await route_of(client, lambda item: not item.up)
        assert (found.outgoing, found.measured, found.transfers, found.losses) == (True, True, 1, 1)
        await send(near, "q", "waits", "waits as well")
        found = await route_of(client, lambda item: item.behind > 0)
        assert (found.backlog, found.state, found.peer) == (2, "Waiting", "")
        assert found.lastError


async def test_messages_in_doubt_are_counted_and_an_event() -> None:
    async with (
        RoutedBroker(queues=["q"], name="far") as far,
        RoutedBroker(queues=["q"], name="third") as third,
        RoutedBroker(queues=["q"]) as near,
        Client(near.url, settle=0.0) as client,
    ):
        raised = Raised(client)
        await knows_agent(client)
        with FrameCutter(far.url) as proxy:
            place = urlsplit(proxy.url)
            forwarding = near.operations.forwarding
            link = {"host": place.hostname, "port": place.port}
            forwarding.create(BROKER, "link", "link", link, strict=True)
            ends = {"link": "link", "src": "q", "dest": "q", "srcIsQueue": True, "srcIsLocal": True}
            route = {**ends, "reliability": "exactly-once"}
            forwarding.create(BROKER, "bridge", "route", route, strict=True)
            await near.up("route")
            proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=False, passed=False))
            proxy.redirect(third.url)  # for the next connection
            await send(near, "q", "x")
            found = await route_of(client, lambda item: item.inDoubt == 1)
            assert found.name == "route"
            await until(lambda: raised("messagesInDoubt"), "an event")
        (event,) = raised("messagesInDoubt", peer="far", count=1)
        assert event["name"] == "route"
        assert str(event["reason"]).startswith("another broker answers, third; ")
