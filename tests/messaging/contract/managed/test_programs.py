"""What programs for the published API do: say hello, serve requests, exchange maps, drain a topic."""

from __future__ import annotations

import threading
import uuid

import pytest
from messaging.conftest import MakeQueue, Target, qpid_addresses

from qmf.messaging import *  # noqa: F403  # as programs do it
from qmf.messaging import Connection, Empty, Message, ReceiverError, Session
from qmf.tools.messages.drain import main as drain
from qmf.tools.messages.spout import main as spout


@qpid_addresses
@pytest.mark.parametrize(
    "address", ["amq.topic", "amq.topic/news", "amq.direct/KEY", "amq.fanout", "NAME; {create: always}"]
)
def test_hello(broker: Target, address: str) -> None:
    name = f"hello-{uuid.uuid4().hex[:8]}"
    address = address.replace("KEY", name).replace("NAME", name)
    connection = Connection(broker.url)
    try:
        connection.open()
        session = connection.session()
        sender = session.sender(address)
        receiver = session.receiver(address)
        sender.send(Message(f"Hello world, {name}!"))
        while (message := receiver.fetch(timeout=10)).content != f"Hello world, {name}!":
            pass  # of another test
        assert message.content_type == "text/plain"
        session.acknowledge()
    finally:
        connection.close()


@qpid_addresses
def test_requests_are_answered(broker: Target, queue: MakeQueue) -> None:
    """Until the server's session is closed, which ends its wait for a request."""
    address = queue()
    ready, ended = threading.Event(), threading.Event()
    acknowledged = threading.Semaphore(0)
    sessions: list[Session] = []

    def serve() -> None:
        with Connection.establish(broker.url, timeout=10) as connection:
            session = connection.session()
            receiver = session.receiver(address)
            sessions.append(session)
            ready.set()
            try:
                while True:
                    request = receiver.fetch()
                    kind = request.properties.get("type")
                    response = Message(request.content.upper() if kind == "upper" else f"unrecognized: {kind}")
                    response.properties["exit"] = 0 if kind == "upper" else 1
                    assert request.reply_to is not None
                    sender = session.sender(request.reply_to)
                    sender.send(response)
                    sender.close()
                    session.acknowledge()
                    acknowledged.release()
            except (ReceiverError, LinkClosed):  # noqa: F405
                ended.set()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(20)
    with Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session()
        responses, requests = session.receiver("#"), session.sender(address)
        for kind, content, exit_code in (("upper", "TWAS BRILLIG", 0), ("other", "unrecognized: other", 1)):
            requests.send(Message("twas brillig", reply_to=responses.source, properties={"type": kind}))
            response = responses.fetch(timeout=10)
            assert (response.content, response.properties["exit"]) == (content, exit_code)
            assert acknowledged.acquire(timeout=20)
        session.acknowledge()
    sessions[0].close()
    thread.join(20)
    assert ended.is_set()


def test_maps_and_lists_travel(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    content = {
        "id": 987654321,
        "name": "Widget",
        "percent": 0.99,
        "colours": ["red", "green"],
        "parts": {"a": [1, {"b": None}]},
    }
    sender.send(Message(content))
    sender.send({"plain": True})
    received = receiver.fetch(timeout=10)
    assert (received.content, received.content_type) == (content, "amqp/map")
    assert receiver.fetch(timeout=10).content == {"plain": True}
    session.acknowledge()


@qpid_addresses
def test_spout_and_drain(broker: Target, queue: MakeQueue, capsys: pytest.CaptureFixture[str]) -> None:
    address = queue()
    name = address.partition(";")[0]
    assert spout(["-b", broker.url, "-c", "2", "-I", "id", "-P", "a=1", "-M", "k=v", address]) == 0
    assert drain(["-b", broker.url, "-c", "1", name]) == 0
    assert drain(["-b", broker.url, name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all("a:1" in line and "k:v" in line for line in lines)
    assert ["id:0" in lines[0], "id:1" in lines[1]] == [True, True]


@qpid_addresses
@pytest.mark.parametrize("count", [1, 3])
def test_drain_stops_at_its_count(
    broker: Target, session: Session, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    """Also from a topic, whose messages come settled from qpidd."""
    topic = uuid.uuid4().hex[:8]
    codes: list[int] = []
    arguments = ["-b", broker.url, "-t", "20", "-c", str(count), f"amq.topic/{topic}.#.news"]
    thread = threading.Thread(target=lambda: codes.append(drain(arguments)))
    thread.start()
    sender, number = session.sender("amq.topic"), 0
    while thread.is_alive():
        sender.send(Message(str(number), subject=f"{topic}.usa.news"))
        number += 1
    thread.join()
    assert codes == [0]
    lines = capsys.readouterr().out.splitlines()
    first = int(lines[0].rpartition("content='")[2].removesuffix("')"))
    assert [f"content='{first + place}'" in line for place, line in enumerate(lines)] == [True] * count


@qpid_addresses
def test_a_subscriber_that_acknowledges_each_message(broker: Target, session: Session) -> None:
    """They come settled from qpidd, so that there is nothing to acknowledge."""
    topic = uuid.uuid4().hex[:8]
    with Connection.establish(broker.url, timeout=10) as connection:
        own = connection.session()
        receiver = own.receiver(f"amq.topic/{topic}.#", capacity=2)
        sender = session.sender("amq.topic")
        for number in range(6):
            sender.send(Message(str(number), subject=f"{topic}.usa.news"))
        found = []
        while True:
            try:
                message = receiver.fetch(timeout=1)
            except Empty:
                break
            found.append(message.content)
            own.acknowledge(message)
            own.acknowledge()
        assert found == list("012345")
