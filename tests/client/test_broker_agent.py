"""`BrokerAgent` on the embedded broker, and on a qpidd where there is one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from support.managed_brokers import unique
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent, Queue
from qmf.errors import NotFoundError, RemoteError, RequestTimeout
from qmf.messaging import Connection, MessagingError


@pytest.fixture
def agent(url: str) -> Iterator[BrokerAgent]:
    with BrokerAgent.connect(url, timeout=30) as found:
        yield found


@pytest.fixture
def queue(agent: BrokerAgent) -> Iterator[str]:
    name = unique("queue")
    agent.addQueue(name)
    yield name
    if agent.getQueue(name) is not None:
        agent.delQueue(name, if_empty=False, if_unused=False)


def test_the_broker_and_its_values(agent: BrokerAgent) -> None:
    broker = agent.getBroker()
    assert broker is not None
    assert broker.name == "amqp-broker"
    assert broker.getObjectId() == "org.apache.qpid.broker:broker:amqp-broker"
    assert broker.port == broker.getAttributes()["port"]
    assert broker.getUpdateTime() >= broker.getCreateTime() > 0
    assert broker.getDeleteTime() == 0
    assert broker.noSuchValue is None
    assert repr(broker) == "Broker('org.apache.qpid.broker:broker:amqp-broker')"


def test_echo(agent: BrokerAgent) -> None:
    assert agent.echo(7, "text") == {"sequence": 7, "body": "text"}


def test_what_is_not_there_is_none(agent: BrokerAgent) -> None:
    assert agent.getQueue("no such queue") is None
    assert agent.getExchange("no such exchange") is None
    assert agent.getConnection("nowhere") is None
    assert agent.getSession("none") is None
    assert agent.getSubscription("none") is None
    assert agent.getCluster() is None
    assert agent.getHaBroker() is None
    assert agent.getAllLinks() == []
    assert agent.list("nosuchclass") == []
    assert agent.query("queue", "no such queue") is None


def test_a_queue_is_created_and_deleted(agent: BrokerAgent) -> None:
    name = unique("queue")
    agent.addQueue(name, {"qpid.max_count": 5}, **{"qpid.policy_type": "ring"})
    found = agent.getQueue(name)
    assert found is not None
    assert found.name == name
    assert found.arguments["qpid.max_count"] == 5
    assert name in [item.name for item in agent.getAllQueues()]
    assert name in [item["name"] for item in agent.list("queue")]
    agent.delQueue(name)
    assert agent.getQueue(name) is None
    with pytest.raises(NotFoundError, match=f"no queue .*{name}"):
        found.update()


def test_options_of_the_caller_are_left_as_they_are(agent: BrokerAgent) -> None:
    options = {"qpid.max_count": 5}
    name = unique("queue")
    agent.addQueue(name, options, **{"qpid.policy_type": "ring"})
    agent.delQueue(name)
    assert options == {"qpid.max_count": 5}


def test_exchanges_and_bindings(agent: BrokerAgent, queue: str) -> None:
    exchange = unique("exchange")
    agent.addExchange("headers", exchange)
    found = agent.getExchange(exchange)
    assert found is not None
    assert found.type == "headers"
    agent.bind(exchange, queue, "red ones", {"x-match": "all", "colour": "red"})
    (binding,) = [item for item in agent.getAllBindings() if item.exchangeRef == exchange]
    assert (binding.queueRef, binding.bindingKey) == (queue, "red ones")
    assert binding.arguments["colour"] == "red"
    assert repr(binding) == "Binding key: red ones"
    agent.unbind(exchange, queue, "red ones")
    assert exchange not in [item.exchangeRef for item in agent.getAllBindings()]
    agent.delExchange(exchange)
    assert agent.getExchange(exchange) is None


def test_refusals_have_text_and_code(agent: BrokerAgent, queue: str) -> None:
    with pytest.raises(RemoteError, match=f"object already exists: {queue}") as caught:
        agent.addQueue(queue)
    assert caught.value.code == 7
    with pytest.raises(RemoteError, match="No such queue"):
        agent.delQueue("no such queue")
    with pytest.raises(RemoteError) as caught:
        agent.call("noSuchMethod")
    assert caught.value.code == 2


def test_messages_are_counted_moved_rerouted_and_purged(url: str, agent: BrokerAgent, queue: str) -> None:
    other = unique("other")
    agent.addQueue(other)
    with Connection.establish(url, timeout=30) as connection:
        sender = connection.session().sender(queue)
        for number in range(4):
            sender.send(str(number))
    assert depth(agent, queue) == 4
    agent.queueMoveMessages(queue, other, 1)
    assert (depth(agent, queue), depth(agent, other)) == (3, 1)
    agent.bind("amq.fanout", other)
    found = agent.getQueue(queue)
    assert found is not None
    found.reroute(1, False, "amq.fanout")
    assert (depth(agent, queue), depth(agent, other)) == (2, 2)
    found.purge(1)
    assert depth(agent, queue) == 1
    found.purge(0)
    found.update()
    assert found.msgDepth == 0
    agent.delQueue(other, if_empty=False)
    assert agent.getQueue(other) is None


def depth(agent: BrokerAgent, name: str) -> int:
    found = agent.getQueue(name)
    assert found is not None
    return int(found.msgDepth)


def test_a_connection_is_closed(url: str, agent: BrokerAgent) -> None:
    other = Connection.establish(url, timeout=30, client_properties={"test": unique("client")})
    try:
        (found,) = [
            item
            for item in agent.getAllConnections()
            if (item.remoteProperties or {}).get("test") == other.options.properties["test"]
        ]
        assert agent.getConnection(found.address) is not None
        found.close()
        wait_until(lambda: not other.attached(), "the end of the connection")
    finally:
        other.close()


def test_objects_can_be_copied(agent: BrokerAgent, queue: str) -> None:
    found = agent.getQueue(queue)
    assert found is not None
    twin = copy.copy(found)
    assert isinstance(twin, Queue)
    assert twin.name == queue


def test_it_uses_a_connection_and_leaves_it_open(url: str) -> None:
    with Connection.establish(url, timeout=30) as connection:
        agent = BrokerAgent(connection, timeout=30)
        assert agent.echo()["sequence"] == 1
        agent.close()
        assert connection.attached()


def test_the_user_of_sasl_is_that_of_the_connection() -> None:
    sasl = SimpleNamespace(mechs="PLAIN", user="ann", password="secret")
    with (
        EmbeddedBroker(management=3600.0, users={"ann": "secret"}) as broker,
        BrokerAgent.connect(broker.url, timeout=30, sasl=sasl) as agent,
    ):
        assert [item.authIdentity for item in agent.getAllConnections()] == ["ann"]


def test_a_broker_without_management_does_not_answer() -> None:
    with (
        EmbeddedBroker() as broker,
        BrokerAgent.connect(broker.url, timeout=30) as agent,
        pytest.raises(RequestTimeout, match="agent broker"),
    ):
        agent.call("echo", {"sequence": 1, "body": ""}, timeout=0.1)


def test_no_broker() -> None:
    with pytest.raises(MessagingError, match="cannot connect"):
        BrokerAgent.connect("127.0.0.1:1", timeout=30)


def test_it_connects_again_to_a_broker_that_has_restarted() -> None:
    first = EmbeddedBroker(management=3600.0)
    first.start()
    port = first.port
    try:
        agent = BrokerAgent.connect(first.url, timeout=30, reconnect_delays=[0.01] * 1000)
    except BaseException:
        first.close()
        raise
    try:
        agent.echo()
        first.close()
        with EmbeddedBroker(port=port, management=3600.0):
            assert agent.echo(3)["sequence"] == 3
            agent.close()
    finally:
        first.close()
        agent.close()


def test_without_delays_a_lost_connection_is_an_error() -> None:
    broker = EmbeddedBroker(management=3600.0)
    broker.start()
    try:
        with BrokerAgent.connect(broker.url, timeout=30) as agent:
            broker.close()
            with pytest.raises(MessagingError):
                agent.echo()
    finally:
        broker.close()
