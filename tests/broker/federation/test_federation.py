"""Links between two brokers of this project: what goes over them, what ends them, and what they say of it."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import trustme
from broker.federation.federated import IN, OUT, FederatedBroker, pair, receive, send
from broker.operations.rules import Rules, refusing
from support.waiting import until

from qmf.broker.federation import incoming
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.recorder import OnStored
from qmf.broker.nodes.router import Node
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.policy import Action, ObjectType, OperationRefused
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.operations.publisher import Publisher
from qmf.broker.store.store import Store
from qmf.broker.store.unit import Unit
from qmf.bus.engine.events import DeliveryBatch, MessageTooLarge
from qmf.bus.engine.link import Link
from qmf.bus.engine.native import native
from qmf.bus.transport import AmqpTransport
from qmf.codec import Message as AmqpMessage
from qmf.codec import Section, encode_message

UP, WAITING, FAILED = PeerLinkState.OPERATIONAL, PeerLinkState.WAITING, PeerLinkState.FAILED

#: Nothing listens there.
NOWHERE = "amqp://127.0.0.1:1"


async def test_an_incoming_link_takes_messages_of_a_queue() -> None:
    async with pair() as (here, there):
        await send(there, "there", "before")
        here.link(IN, "there", "here")
        await here.state(UP)
        await send(there, "there", "after")
        assert await receive(here, "here", 2) == ["before", "after"]
        await until(lambda: not there.depth("there"), "the source has no messages")


async def test_an_outgoing_link_sends_the_messages_of_a_queue() -> None:
    async with pair() as (here, there):
        await send(here, "here", "before")
        here.link(OUT, "here", "there")
        await here.state(UP)
        await send(here, "here", "after")
        assert await receive(there, "there", 2) == ["before", "after"]
        await until(lambda: not here.depth("here"), "the source has no messages")


async def test_many_messages_in_both_directions() -> None:
    contents = [str(number) for number in range(1_500)]
    async with pair(own=("here", "back"), other=("there", "source")) as (here, there):
        here.link(OUT, "here", "there", name="out")
        here.link(IN, "source", "back", name="in")
        for broker, source, end, target in ((here, "here", there, "there"), (there, "source", here, "back")):
            await send(broker, source, *contents)
            assert await receive(end, target, len(contents)) == contents
        await until(lambda: not here.depth("here") and not there.depth("source"), "nothing is left")


async def test_an_exchange_as_target() -> None:
    async with pair() as (here, there):
        topic = here.registry.exchange("amq.topic")
        here.operations.bind(BROKER, topic, here.queue("here"), BindingSpec("news.#"))  # type: ignore[arg-type]
        here.link(IN, "there", "amq.topic")
        await send(there, "there", "other", subject="weather.today")
        await send(there, "there", "x", subject="news.today")
        assert await receive(here, "here", 1) == ["x"]
        await until(lambda: not there.depth("there"), "both were taken")


async def test_an_exchange_as_source_of_an_outgoing_link_has_a_queue_of_the_links_own() -> None:
    arguments: dict[str, Any] = {"qpid.max_count": 7}
    async with pair() as (here, there):
        here.link(OUT, "amq.topic", "there", key="news.*", selector="colour = 'red'", **arguments)
        own = here.queue("link.link")
        assert own.settings.limits.count == 7
        await send(here, "amq.topic/news.a", "kept", properties={"colour": "red"})
        await send(here, "amq.topic/news.b", "another colour", properties={"colour": "blue"})
        await send(here, "amq.topic/weather", "another key", properties={"colour": "red"})
        await send(here, "amq.topic/news.c", "last", properties={"colour": "red"})
        assert await receive(there, "there", 2) == ["kept", "last"]
        here.operations.forwarding.delete(BROKER, OUT.value, "link")
        assert here.registry.queue("link.link") is None


async def test_a_link_takes_what_its_key_and_selector_say() -> None:
    async with pair(own=("here", "all"), other=("there",)) as (here, there):
        here.link(OUT, "here", "there", key="a.*", selector="n > 1", name="out")
        here.link(IN, "amq.direct", "all", key="k", name="in")
        await here.state(UP, "in")
        for subject, number in (("a.b", 1), ("a.b", 2), ("c", 3)):
            await send(here, "here", f"{subject} {number}", subject=subject, properties={"n": number})
        assert await receive(there, "there", 1) == ["a.b 2"]
        assert here.depth("here") == 2
        for subject in ("j", "k"):
            await send(there, f"amq.direct/{subject}", subject)
        assert await receive(here, "all", 1) == ["k"]


async def test_a_link_waits_for_its_broker_with_the_reason_and_since_when() -> None:
    async with FederatedBroker(port=0, queues=["here"]) as here:
        here.domain(NOWHERE)
        here.link(OUT, "here", "there")
        link = await here.state(WAITING)
        assert link.reason == "connection refused: nothing listens there"
        assert link.place == ("127.0.0.1", 1, False)
        since = link.since
        await send(here, "here", "x")
        assert (link.since, here.depth("here")) == (since, 1)


async def test_a_link_uses_the_first_url_that_works() -> None:
    async with FederatedBroker(port=0, queues=["there"]) as there, FederatedBroker(port=0, queues=["here"]) as here:
        here.domain([NOWHERE, there.url])  # type: ignore[arg-type]
        here.link(OUT, "here", "there")
        link = await here.state(UP)
        assert (link.reason, link.place[1]) == ("", there.port)


async def test_a_link_is_up_again_after_the_restart_of_its_broker() -> None:
    async with pair(own=("here", "back"), other=("there", "source")) as (here, there):
        here.link(OUT, "here", "there", name="out")
        here.link(IN, "source", "back", name="in")
        for number in range(3):
            await here.state(UP, "out")
            await here.state(UP, "in")
            await send(here, "here", str(number))
            assert await receive(there, "there", 1) == [str(number)]
            await send(there, "source", str(number))
            assert await receive(here, "back", 1) == [str(number)]
            port = there.port
            await there.close()
            for name in ("out", "in"):
                await here.state(WAITING, name)
            there = FederatedBroker(port=port, queues=["there", "source"])
            await there.start()
        await here.state(UP, "out")
        await there.close()


async def test_what_the_other_broker_has_no_node_for_is_tried_again() -> None:
    async with pair(other=()) as (here, there):
        here.link(OUT, "here", "there")
        link = await here.state(WAITING)
        assert "the other broker refused the link (amqp:not-found: no exchange or queue 'there')" in link.reason
        there.operations.create(BROKER, "there", read_node_declaration(("queue",), {}))
        await here.state(UP)
        queue = there.queue("there")
        there.operations.delete(BROKER, queue)
        await until(lambda: "the other broker" in link.reason, lambda: link.reason)


async def test_a_link_ends_with_its_node() -> None:
    async with pair(own=("one", "two")) as (here, there):
        here.link(OUT, "one", "there", name="out")
        here.link(IN, "there", "two", name="in")
        here.link(OUT, "amq.fanout", "there", name="exchange")
        for name, node in (("out", "one"), ("in", "two"), ("exchange", "link.exchange")):
            await here.state(UP, name)
            here.operations.delete(BROKER, here.queue(node))
            assert (await here.state(FAILED, name)).reason == f"queue {node!r} was deleted"
        await until(lambda: not there.connections, "the connections are closed")
        assert not there.queue("there").delivery.consumers


async def test_a_deleted_link_gives_back_what_was_not_accepted() -> None:
    async with pair() as (here, there):
        there.operations.create(
            BROKER, "small", read_node_declaration(("queue",), {"qpid.max_count": 1, "qpid.flow_stop_count": 0})
        )
        here.link(OUT, "here", "small")
        await send(here, "here", "a", "b", "c")
        link = await here.state(WAITING)
        assert link.reason.startswith("no room in 'small' of the other broker: ")
        assert here.depth("here") == 2
        here.operations.forwarding.delete(BROKER, OUT.value, "link")
        assert here.depth("here") == 2
        assert await receive(here, "here", 2) == ["b", "c"]
        await until(lambda: not there.connections, "the connection is closed")


async def test_messages_wait_at_the_source_until_there_is_room() -> None:
    async with pair(own=()) as (here, there):
        properties = {"qpid.max_count": 2, "qpid.flow_stop_count": 0}
        here.operations.create(BROKER, "here", read_node_declaration(("queue",), properties))
        contents = [str(number) for number in range(10)]
        await send(there, "there", *contents)
        here.link(IN, "there", "here")
        link = await here.state(WAITING)
        assert link.reason.startswith("no room in 'here': ")
        assert await receive(here, "here", 10) == contents


async def test_a_small_message_does_not_overtake_a_large_one_for_which_there_is_no_room() -> None:
    async with pair(own=()) as (here, there):
        properties = {"qpid.max_size": 1_500, "qpid.flow_stop_size": 0}
        here.operations.create(BROKER, "here", read_node_declaration(("queue",), properties))
        contents = ["a" * 1_000, "b" * 1_000, "c"]
        await send(there, "there", *contents)
        here.link(IN, "there", "here")
        await here.state(WAITING)
        assert await receive(here, "here", 3) == contents


@pytest.mark.skipif(native() is None, reason="without the compiled functions messages come one by one")
async def test_durable_messages_that_come_together_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pair(own=(), data_dir=tmp_path) as (here, there):
        here.operations.create(BROKER, "here", read_node_declaration(("queue",), {"durable": True}))
        contents = [str(number) for number in range(40)]
        await send(there, "there", *contents, durable=True)
        units: list[int] = []
        submit = Store.submit

        def count(store: Store, unit: Unit, on_stored: OnStored | None = None) -> None:
            units.append(len(unit.messages))
            submit(store, unit, on_stored)

        monkeypatch.setattr(Store, "submit", count)
        here.link(IN, "there", "here")
        await until(lambda: not there.depth("there"), "all were accepted")
        assert sum(units) == len(contents)
        assert max(units) > 1
        monkeypatch.undo()
        assert await receive(here, "here", len(contents)) == contents


async def test_what_cannot_be_created() -> None:
    async with pair() as (here, _):
        here.link(OUT, "here", "there")
        odd: dict[str, Any] = {"qpid.policy_type": "odd"}
        cases: list[tuple[Callable[[], None], str]] = [
            (lambda: here.domain(NOWHERE), "A domain named peer already exists"),
            (lambda: here.link(OUT, "here", "there"), "object already exists: link"),
            (lambda: here.link(IN, "there", "none", name="x"), "not-found: no exchange or queue 'none'"),
            (lambda: here.link(IN, "there", "here", name="x", domain="none"), "No such domain: none"),
            (lambda: here.link(OUT, "here", "x", name="x", selector="a ="), "not-found: selector: "),
            (lambda: here.link(OUT, "here", "x", name="x", durable=True), "invalid-argument: durable: domain peer is"),
            (
                lambda: here.link(OUT, "amq.topic", "x", name="x", **odd),
                "not-found: queue 'link.x': qpid.policy_type: ",
            ),
            (
                lambda: here.operations.forwarding.delete(BROKER, "domain", "peer"),
                "not-allowed: domain peer is in use by the outgoi",
            ),
            (lambda: here.operations.forwarding.delete(BROKER, "domain", "none"), "No such domain: none"),
            (lambda: here.operations.forwarding.delete(BROKER, IN.value, "link"), "No such interconnection: link"),
        ]
        for change, error in cases:
            with pytest.raises(ForwardingError) as caught:
                change()
            assert str(caught.value).startswith(error)
        assert [item.name for item in here.federation.links] == ["link"]
        assert here.registry.queue("link.x") is None
        here.operations.forwarding.delete(BROKER, OUT.value, "link")
        here.operations.forwarding.delete(BROKER, "domain", "peer")
        assert not here.federation.domains


@pytest.mark.parametrize(
    ("action", "object_type", "name"),
    [
        (Action.CREATE, ObjectType.LINK, "link"),
        (Action.CONSUME, ObjectType.QUEUE, "here"),
        (Action.ACCESS, ObjectType.QUEUE, "here"),
    ],
)
async def test_links_are_created_by_those_alone_who_may(action: Action, object_type: ObjectType, name: str) -> None:
    bob = Principal("bob", "127.0.0.1:5", "AMQP 1.0")
    properties = {"domain": "peer", "source": "here", "target": "there"}
    async with pair(policy=refusing(action, object_type, name)) as (here, _):
        with pytest.raises(OperationRefused):
            here.operations.forwarding.create(bob, OUT.value, "link", properties)
        assert not here.federation.links


async def test_a_link_ends_when_its_creator_may_not_publish_any_more() -> None:
    bob = Principal("bob", "127.0.0.1:5", "AMQP 1.0")
    async with pair(policy=Rules()) as (here, there):
        here.operations.forwarding.create(
            bob, IN.value, "link", {"domain": "peer", "source": "there", "target": "here"}
        )
        await here.state(UP)
        here.operations.policy = refusing(Action.PUBLISH, ObjectType.EXCHANGE)
        await send(there, "there", "x")
        link = await here.state(FAILED)
        assert link.reason == "user 'bob' may not publish exchange '': no rule allows it"
        await until(lambda: not there.connections, "the connection is closed")
        assert await receive(there, "there", 1) == ["x"]


async def test_a_link_ends_with_a_message_that_its_creator_may_not_publish() -> None:
    bob = Principal("bob", "127.0.0.1:5", "AMQP 1.0")
    rules = Rules(lambda _, operation: operation.properties.get("routingkey") == "secret", has_key_rules=True)
    async with pair(policy=rules) as (here, there):
        here.operations.forwarding.create(
            bob, IN.value, "link", {"domain": "peer", "source": "there", "target": "amq.topic"}
        )
        await here.state(UP)
        await send(there, "there", "a", subject="open")
        await send(there, "there", "b", subject="secret")
        assert "may not publish exchange 'amq.topic'" in (await here.state(FAILED)).reason
        assert await receive(there, "there", 1) == ["b"]


async def test_a_link_whose_connection_is_closed_by_an_operator_is_tried_again() -> None:
    async with pair() as (here, there):
        here.link(OUT, "here", "there")
        link = await here.state(UP)
        session = link.session
        assert session is not None
        session.close("closed by management")
        await until(lambda: link.session is not session, "the connection is gone")
        await here.state(UP)
        assert session.ended.done()
        link.drop("for a test")
        await until(lambda: link.status.state is WAITING and link.reason == "for a test", lambda: link.reason)
        await send(here, "here", "x")
        assert await receive(there, "there", 1) == ["x"]


async def test_a_message_that_is_too_large_stops_the_link() -> None:
    async with pair() as (here, _):
        here.link(IN, "there", "here")
        link = await here.state(UP)
        link.on_too_large(MessageTooLarge(None, 17, settled=False))  # type: ignore[arg-type]
        reason = "a message of 17 bytes is larger than this broker takes"
        await until(lambda: link.status.state is WAITING and link.reason == reason, lambda: link.reason)


async def test_durable_links_are_there_after_a_restart(tmp_path: Path) -> None:
    queue = read_node_declaration(("queue",), {"durable": True})
    async with FederatedBroker(port=0, queues=["there"]) as there:
        async with FederatedBroker(port=0, data_dir=tmp_path) as here:
            here.operations.create(BROKER, "kept", queue)
            here.operations.create(BROKER, "transient", read_node_declaration(("queue",), {}))
            here.domain(there.url, durable=True, username="u", password="p", sasl_mechanisms="ANONYMOUS")
            here.domain(there.url, name="ended", durable=True)
            here.domain(there.url, name="unkept")
            here.link(OUT, "kept", "there", name="out", durable=True)
            here.link(OUT, "amq.fanout", "there", name="own", durable=True)
            here.link(IN, "amq.fanout", "transient", name="in", durable=True)
            here.link(IN, "there", "kept", name="ended", durable=True)
            here.link(IN, "amq.fanout", "kept", name="unkept")
            here.operations.forwarding.delete(BROKER, IN.value, "ended")
            here.operations.forwarding.delete(BROKER, "domain", "ended")
            container = here.found("in").definition.container
            await here.state(UP, "own")
        await send(there, "there", "x")
        async with FederatedBroker(port=0, data_dir=tmp_path) as here:
            assert [item.name for item in here.federation.domains] == ["peer"]
            (domain,) = here.federation.domains
            assert (domain.username, domain.password, domain.mechanisms) == ("u", "p", ("ANONYMOUS",))
            assert {item.name for item in here.federation.links} == {"out", "own", "in"}
            assert (await here.state(FAILED, "in")).reason == "no exchange or queue 'transient'"
            assert here.found("in").definition.container == container
            await here.state(UP, "out")
            await here.state(UP, "own")
            await send(here, "amq.fanout", "y")
            assert await receive(there, "there", 2) == ["x", "y"]
            for name in ("out", "own"):
                here.operations.forwarding.delete(BROKER, OUT.value, name)
            assert here.registry.queue("link.own") is None
        async with FederatedBroker(port=0, data_dir=tmp_path) as here:
            assert [item.name for item in here.federation.links] == ["in"]


async def test_what_comes_to_an_exchange_while_a_durable_link_is_down_is_kept_for_it(tmp_path: Path) -> None:
    async with FederatedBroker(port=0) as there:
        async with FederatedBroker(port=0, data_dir=tmp_path) as here:
            here.operations.create(BROKER, "kept", read_node_declaration(("queue",), {"durable": True}))
            here.domain(there.url, durable=True)
            here.link(IN, "amq.fanout", "kept", durable=True)
            await here.state(UP)
        await send(there, "amq.fanout", "x")
        async with FederatedBroker(port=0, data_dir=tmp_path) as here:
            assert await receive(here, "kept", 1) == ["x"]
            names = {queue.name for queue in there.registry.queues}
            assert any(name.endswith("_link") for name in names)
            here.operations.forwarding.delete(BROKER, IN.value, "link")
            await until(lambda: not there.registry.queues, "the other broker keeps nothing for it")


async def test_a_link_logs_in_through_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with (
        FederatedBroker(port=0, queues=["there"], users={"ann": "secret"}, ssl_context=context) as there,
        FederatedBroker(port=0, queues=["here"]) as here,
    ):
        here.domain(there.url, username="ann", password="secret", min_ssf=1)
        here.domain(there.url, name="wrong", username="ann", password="other")
        here.domain(there.url.replace("amqps", "amqp"), name="plain", username="ann", password="secret")
        here.link(OUT, "here", "there")
        link = await here.state(WAITING)
        assert "the broker's TLS certificate is not accepted" in link.reason
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))  # the authorities of the system
        here.link(OUT, "here", "there", name="again")
        assert (await here.state(UP, "again")).place == ("127.0.0.1", there.port, True)
        await send(here, "here", "x")
        here.link(OUT, "here", "there", name="wrong", domain="wrong")
        assert "user 'ann' was refused" in (await here.state(WAITING, "wrong")).reason
        here.link(OUT, "here", "there", name="plain", domain="plain")
        assert "TLS" in (await here.state(WAITING, "plain")).reason
        await until(lambda: there.depth("there") == 1, "the message arrives")


@pytest.mark.parametrize("durable", [False, True])
async def test_messages_that_need_no_disk_are_published_in_parts_with_credit_in_between(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "CREDIT_WINDOW", 8)
    seen: list[object] = []
    publish_all = Publisher.publish_all

    def publish(publisher: Publisher, node: Node, messages: Sequence[Message]) -> object:
        seen.append(len(messages))
        return publish_all(publisher, node, messages)

    monkeypatch.setattr(Publisher, "publish_all", publish)
    monkeypatch.setattr(AmqpTransport, "write_meanwhile", lambda _: seen.append("write"))
    async with pair(data_dir=tmp_path) as (here, _):
        here.link(IN, "there", "here")
        link = await here.state(UP)
        data = encode_message(AmqpMessage(section=Section.DATA, body=b"x", durable=durable))
        link.on_deliveries(DeliveryBatch(cast(Link, None), [(None, data)] * 10))
        assert seen == ([10] if durable else [4, "write", 4, "write", 2, "write"])
        assert here.depth("here") == 10
