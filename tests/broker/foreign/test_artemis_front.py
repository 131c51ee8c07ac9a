"""Clients of OpenWire and of core at an Artemis that is linked to the embedded broker, as docs/openwire.md has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from support.foreign import ForeignProgram, required

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message
from scripts.brokers import create_artemis, free_port, running, wait_for_amqp
from scripts.fetching import Unavailable

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "front" / "Front.java"
NAMES = ("openwire", "core")
PROTOCOLS = pytest.mark.parametrize("protocol", NAMES)


@attrs.frozen
class Front:
    """An Artemis, and programs that are its clients.

    Attributes:
        url: of it, for AMQP.
    """

    url: str
    _program: ForeignProgram

    def __call__(self, use: str, protocol: str, *arguments: str) -> list[str]:
        """What a use of the Java program observes."""
        return self._program(use, self.url.replace("amqp://", "tcp://"), protocol, *arguments)


@contextmanager
def started_artemis(folder: Path) -> Iterator[str]:
    """An Artemis with queues of the recipe, and its URL."""
    port = free_port()
    queues = ",".join(f"{kind}-{name}" for kind in ("jobs", "answers") for name in NAMES)
    try:
        command = create_artemis(folder, port, "--disable-persistence", f"--queues={queues}")
    except Unavailable as error:
        pytest.skip(f"Artemis is not available: {error}")
    with running(command, folder / "artemis.log", os.environ) as check:
        wait_for_amqp(port, check)
        yield f"amqp://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    jars, classes = required("artemis_clients"), tmp_path_factory.mktemp("classes")
    path = f"{classes}:{jars}/*"
    compiler, java = shutil.which("javac"), shutil.which("java")
    assert compiler is not None, "a JDK is needed"
    assert java is not None, "a JDK is needed"
    subprocess.run([compiler, "-Xlint:all", "-cp", path, "-d", str(classes), str(SOURCE)], check=True, timeout=180)
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    with (
        started_artemis(tmp_path_factory.mktemp("artemis")) as url,
        ForeignProgram([java, *options, "-cp", path, "Front"]) as program,
    ):
        yield Front(url, program)


@pytest.fixture
def broker(front: Front, request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """A broker with links to the Artemis: its queue `jobs` comes from there, `answers` goes there."""
    name = request.node.callspec.params["protocol"]
    with EmbeddedBroker(queues=["jobs", "answers"], management=3600.0) as made:
        with Connection.establish(made.url) as connection:
            agent = BrokerAgent(connection)
            agent.create("domain", "artemis", {"url": front.url, "sasl_mechanisms": "ANONYMOUS"})
            common = {"domain": "artemis"}
            agent.create("incoming", "jobs-in", {**common, "source": f"jobs-{name}", "target": "jobs"})
            agent.create("outgoing", "answers-out", {**common, "source": "answers", "target": f"answers-{name}"})
        yield made


@PROTOCOLS
def test_messages_reach_the_broker(front: Front, broker: EmbeddedBroker, protocol: str) -> None:
    front("types", protocol, f"jobs-{protocol}")
    with Connection.establish(broker.url) as connection:
        session = connection.session()
        receiver = session.receiver("jobs")
        text, octets = receiver.fetch(30), receiver.fetch(30)
        session.acknowledge()
    assert (text.content, text.durable, text.priority, text.subject) == ("ä€", True, 7, "note")
    assert text.correlation_id == "c-1"
    assert (text.properties["colour"], text.properties["number"]) == ("red", 5)
    assert (octets.content, bool(octets.durable)) == (b"\x00\x01\xff", False)


@PROTOCOLS
def test_messages_reach_the_clients(front: Front, broker: EmbeddedBroker, protocol: str) -> None:
    with Connection.establish(broker.url) as connection:
        sender = connection.session().sender("answers")
        sender.send(Message("ä€", properties={"colour": "red", "number": 5}, durable=True))
        sender.send(Message(b"\x00\x01\xff"))
    assert front("receive", protocol, f"answers-{protocol}", "2") == ["text ä€ | colour=red | number=5", "bytes 0001ff"]


@PROTOCOLS
def test_requests_are_answered_by_a_program_of_the_broker(front: Front, broker: EmbeddedBroker, protocol: str) -> None:
    asked: list[object] = []

    def answer() -> None:
        with Connection.establish(broker.url) as connection:
            session = connection.session()
            receiver, sender = session.receiver("jobs"), session.sender("answers")
            request = receiver.fetch(30)
            asked.append((request.content, request.reply_to))
            sender.send(Message("5", correlation_id=request.correlation_id))
            session.acknowledge()

    thread = threading.Thread(target=answer)
    thread.start()
    said = front("request", protocol, f"jobs-{protocol}", f"answers-{protocol}")
    thread.join()
    assert asked == [("2 3", f"answers-{protocol}")]
    assert said == ["text 5"]


@PROTOCOLS
def test_what_is_sent_while_the_broker_is_away_comes_later(
    front: Front, broker: EmbeddedBroker, protocol: str, tmp_path: Path
) -> None:
    broker.close()
    front("send-transacted", protocol, f"jobs-{protocol}", "20")
    with (
        EmbeddedBroker(queues=["jobs"], management=3600.0, data_dir=tmp_path) as again,
        Connection.establish(again.url) as connection,
    ):
        agent = BrokerAgent(connection)
        agent.create("domain", "artemis", {"url": front.url, "sasl_mechanisms": "ANONYMOUS"})
        agent.create("incoming", "in", {"domain": "artemis", "source": f"jobs-{protocol}", "target": "jobs"})
        session = connection.session()
        receiver = session.receiver("jobs")
        received = [receiver.fetch(30).content for _ in range(20)]
        session.acknowledge()
    assert received == [f"text {number}" for number in range(20)]
