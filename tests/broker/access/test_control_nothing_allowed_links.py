"""Links that ask for unusual things, peers, and methods of the broker: nothing happens by them that no rule allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from broker.access.stranger import ACCESS, unchanged
from broker.access.test_control import USERS, control, session_of
from broker.federation.federated import IN, OUT, FederatedBroker, send
from broker.federation.routed import RoutedBroker
from broker.raw_clients import Client as RawClient
from broker.raw_clients import connect
from broker.relay.relaying import RelayingBroker
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.bindings import BIND, PEER_OPERATION, PEER_ORIGIN
from qmf.broker.relay.options import RelayOptions
from qmf.bus.engine.events import LinkAttached, LinkDetached, OutcomeReceived
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.values import Durability, ExpiryPolicy, Outcome, Terminus
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message
from qmf.console.aio import Client
from qmf.errors import RemoteError
from qmf.messaging.message import Message
from qmf.models.broker import console as remote
from qmf.models.forwarding import console as forwarding

SOURCE, TARGET = False, True
MESSAGE = encode_message(AmqpMessage(to="q", subject="q", section=Section.VALUE, body="bob"))
NEVER = {"durability": Durability.UNSETTLED_STATE, "expiry": ExpiryPolicy.NEVER}
ALTERNATE = {"alternate-exchange": "amq.topic"}
OF_PEER = {"exchange": "amq.topic", "key": "k", "arguments": {PEER_OPERATION: BIND, PEER_ORIGIN: "bob"}}

#: Direction, terminus, properties of the link.
LINKS: tuple[tuple[bool, Terminus, Mapping[str, Any]], ...] = (
    (SOURCE, Terminus(dynamic=True), {}),
    (SOURCE, Terminus(dynamic=True, properties=ALTERNATE), {}),
    (SOURCE, Terminus(dynamic=True), {"qmf.link-bindings": [{"exchange": "amq.topic", "key": "#"}]}),
    (TARGET, Terminus(dynamic=True), {}),
    (TARGET, Terminus(dynamic=True, capabilities=("topic",)), {}),
    (TARGET, Terminus(dynamic=True, properties=ALTERNATE), {}),
    (TARGET, Terminus("new", capabilities=("create-on-demand", "queue"), properties=ALTERNATE), {}),
    (TARGET, Terminus(""), {}),
    (TARGET, Terminus(None), {}),
    (TARGET, Terminus("q"), {"qmf.node-bindings": [OF_PEER]}),
    (SOURCE, Terminus("q"), {"qmf.link-bindings": [OF_PEER]}),
    (SOURCE, Terminus("q", browse=True), {}),
    (SOURCE, Terminus("q", properties={"exclusive": True}), {}),
    (SOURCE, Terminus("amq.topic", **NEVER), {}),  # type: ignore[arg-type]
    (SOURCE, Terminus("amq.topic", capabilities=("shared", "global")), {}),
    (TARGET, Terminus("q", capabilities=("queue",), properties={"lifetime-policy": "amqp:delete-on-close:list"}), {}),
    (SOURCE, Terminus("mqtt.retained", browse=True), {}),
    (TARGET, Terminus("mqtt.retained"), {}),
)


def raw(broker: VisibleBroker, user: str, streams: tuple[Any, Any]) -> RawClient:
    return RawClient(*streams, mechanisms=("PLAIN",), username=user, password=USERS[user])


@pytest.mark.parametrize("rules", ["", ACCESS], ids=["nothing", "access"])
async def test_links(tmp_path: Path, rules: str) -> None:
    async with unchanged(tmp_path, rules) as broker:
        client = raw(broker, "bob", await connect(broker))
        for number, (sends, terminus, properties) in enumerate(LINKS):
            client.engine.links.attach(f"link {number}", is_sender=sends, terminus=terminus, properties=properties)
            granted = not terminus.dynamic and not terminus.address and bool(rules)
            await client.exchange(LinkAttached if granted else LinkDetached, 1)
            (event,) = [event for event in client.seen if isinstance(event, LinkAttached | LinkDetached)]
            if isinstance(event, LinkAttached):
                # What it is for is asked for with each message.
                client.engine.deliveries.send(event.link, MESSAGE)
                await client.exchange(OutcomeReceived)
                (outcome,) = [event for event in client.seen if isinstance(event, OutcomeReceived)]
                assert (outcome.outcome, outcome.condition) == (Outcome.REJECTED, "amqp:unauthorized-access")
            else:
                assert event.condition == "amqp:unauthorized-access", terminus
            client.seen.clear()
        client.writer.close()


@pytest.mark.parametrize("rules", ["", ACCESS], ids=["nothing", "access"])
async def test_a_link_of_somebody_else_is_neither_resumed_nor_ended(tmp_path: Path, rules: str) -> None:
    """Neither by the id of its resumption, nor by the container id and the name of a durable subscription."""
    async with unchanged(tmp_path, rules) as broker:
        clients, others = [], broker.connections
        for user in ("ann", "bob"):
            client = raw(broker, user, await connect(broker))
            links = client.engine.links
            for sends in (SOURCE, TARGET):
                resumption = Resumption("known", attempt=1 if user == "ann" else 2)
                links.attach(f"link {sends}", is_sender=sends, terminus=Terminus("q"), resumption=resumption)
            news = Terminus("amq.topic", **NEVER)  # type: ignore[arg-type]
            links.attach("news", is_sender=SOURCE, terminus=news)
            await client.exchange(LinkAttached if user == "ann" else LinkDetached, 3)
            clients.append(client)
        (owner, stranger) = clients
        assert not [event for event in owner.seen if isinstance(event, LinkDetached)]
        stranger.engine.links.attach("news", is_sender=SOURCE, terminus=Terminus("client_news"))
        await stranger.exchange(LinkDetached, 4)
        stranger.writer.close()
        assert broker.registry.queue("client_news") is not None
        for event in owner.seen:
            if isinstance(event, LinkAttached):
                owner.engine.links.detach(event.link)
        owner.writer.write(owner.engine.output())
        await until(lambda: broker.registry.queue("client_news") is None, "the end of the subscription")
        owner.writer.close()
        await until(lambda: broker.connections == others, "the ends of both")


#: What a console that may do no more than ask would have done, by methods of the broker's object: arguments by name.
CREATED: Mapping[str, Mapping[str, object]] = {
    "queue": {},
    "exchange": {},
    "binding": {},
    "domain": {"url": "amqp://127.0.0.1:1"},
    "incoming": {"domain": "peer", "source": "q", "target": "q"},
    "outgoing": {"domain": "peer", "source": "q", "target": "q"},
    "link": {"host": "127.0.0.1", "port": 1},
    "bridge": {"link": "link", "src": "amq.topic", "dest": "amq.topic", "key": "k"},
    "relay": {"domain": "peer"},
    "queuelink": {"source": "q", "target": "out"},
}
CONSOLE = """acl allow bob@QPID access
acl allow bob@QPID create queue name=qmf-*
acl allow bob@QPID bind exchange name=qmf.* queuename=qmf-*
acl allow bob@QPID consume queue name=qmf-*
acl allow bob@QPID publish exchange name=qmf.*
acl allow ann@QPID all all
acl deny all all
"""


async def test_methods(tmp_path: Path) -> None:
    access = control(tmp_path, CONSOLE)
    options = {"users": USERS, "access": access, "queues": ["q", "out"], "management": 3600.0}
    async with (
        RelayingBroker(port=0, relay=RelayOptions(enabled=True), **options) as broker,  # type: ignore[arg-type]
        Client(f"amqp://ann:a@127.0.0.1:{broker.port}", settle=0.0) as owner,
        Client(f"amqp://bob:b@127.0.0.1:{broker.port}", settle=0.0) as client,
        session_of(broker, "ann") as session,
    ):
        await (await session.sender("q")).send(Message("ann"), sync=True)
        (it,), (hers,) = await client.objects(remote.Broker), await owner.objects(remote.Broker)
        for type in ("domain", "link", "bridge", "incoming", "outgoing", "relay", "queuelink"):
            name = {"domain": "peer", "link": "link", "relay": "office.example"}.get(type, f"her {type}")
            await hers.create(type, name, CREATED[type], True)
        link = next(item for item in await client.objects(remote.Link) if item.name == "link")
        queue = next(item for item in await client.objects(remote.Queue) if item.name == "q")
        (relay,), (moving,) = await client.objects(forwarding.Relay), await client.objects(forwarding.QueueLink)
        before = {name: await owner.objects(name) for name in ("domain", "link", "bridge", "relay", "queueLink")}
        calls: list[tuple[Callable[..., Awaitable[object]], tuple[Any, ...]]] = [
            *((it.create, (type, "amq.topic/q/k" if type == "binding" else "new", wanted, False))
              for type, wanted in CREATED.items()),
            *((it.delete, (type, name, {})) for type, name in (
                ("domain", "peer"), ("link", "link"), ("bridge", "her bridge"), ("relay", "office.example"),
                ("incoming", "her incoming"), ("outgoing", "her outgoing"), ("queuelink", "her queuelink"),
                ("queue", "q"), ("binding", "amq.topic/q/k"),
            )),
            (it.connect, ("127.0.0.1", 1, False, "", "", "", "")),
            (it.queueMoveMessages, ("q", "out", 0, {})),
            (it.queueRedirect, ("q", "out")),
            (it.setTimestampConfig, (True,)),
            (link.bridge, (False, "amq.topic", "amq.topic", "x", "", "", False, False, False, 0, 0)),
            (link.close, ()),
            (relay.pause, ()), (relay.retryDeadLetters, (0,)),
            (moving.pause, ()), (moving.resume, ()),
            (queue.purge, (0, {})), (queue.reroute, (0, False, "amq.topic", {})),
        ]  # fmt: skip
        for call, arguments in calls:
            with pytest.raises(RemoteError, match=r"user 'bob' may not .*: the ACL denies it"):
                await call(*arguments)
        assert broker.depth("q") + broker.depth("out") == 1
        for name, found in before.items():
            assert len(await owner.objects(name)) == len(found), name


async def test_a_peer(tmp_path: Path) -> None:
    """A broker that connects as bob forwards nothing, in either direction, and has no routes."""
    async with unchanged(tmp_path) as broker:
        url = f"amqp://bob:{USERS['bob']}@127.0.0.1:{broker.port}"
        async with FederatedBroker(port=0, queues=["own"]) as peer:
            peer.domain(url)
            peer.link(IN, "q", "own", "in")
            peer.link(OUT, "own", "q", "out")
            peer.link(OUT, "own", "amq.topic", "to topic")
            peer.link(IN, "amq.topic", "own", "from topic")
            for name in ("in", "out", "to topic", "from topic"):
                link = await peer.state(PeerLinkState.WAITING, name)
                assert "the ACL denies it" in link.reason
            assert peer.depth("own") == 0


async def test_routes_of_a_peer(tmp_path: Path) -> None:
    async with unchanged(tmp_path, ACCESS, management=3600.0) as broker, RoutedBroker() as peer:
        peer.connect(broker, username="bob", password=USERS["bob"], authMechanism="PLAIN")
        names = [
            peer.route(broker, "amq.topic", "amq.topic", key="#"),
            peer.route(broker, "q", "amq.topic", "of a queue", srcIsQueue=True),
            peer.dynamic(broker, "amq.direct"),
            peer.route(broker, "amq.topic", "amq.topic", "pushed", key="#", srcIsLocal=True),
        ]
        await peer.up(names.pop())  # bob may access the exchange; each message is asked for
        rejected = broker.registry.counters.rejected
        await send(peer, "amq.topic", "x", subject="k")
        await until(lambda: broker.registry.counters.rejected > rejected, "the refusal of the message")
        for name in names:
            bridge = peer.bridge(name)
            await until(lambda: "denies it" in bridge.reason, lambda: f"{bridge.name}: {bridge.reason}")  # noqa: B023
