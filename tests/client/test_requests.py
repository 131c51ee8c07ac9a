"""Answers of which parts are missing are errors: never fewer objects than there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.brokers import EMBEDDED
from support.managed_brokers import managed_broker
from support.processes import command, run
from support.waiting import WAIT_LIMIT

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.errors import IncompleteAnswer, RequestTimeout
from qmf.messaging import Connection, Message, MessagingError

Part = tuple[list[str], dict[str, object]]


class FakeManagement:
    """The agent of a broker that has none: it sends the parts that it is told to.

    Attributes:
        parts: of answers to queries for a class: names of queues, and properties.
        discards: statistic of the queue for the answers; None for a broker without objects of queues.
    """

    def __init__(self, url: str) -> None:
        self.parts: Sequence[Part] = ()
        self.discards: int | None = 0
        self._connection = Connection.establish(url, timeout=WAIT_LIMIT)
        self._session = self._connection.session()
        self._requests = self._session.receiver("qmf.default.direct/broker", capacity=10)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._connection.close()
        self._thread.join(WAIT_LIMIT)

    def _serve(self) -> None:
        while True:
            try:
                request = self._requests.fetch()
                self._answer(request)
                self._session.acknowledge(sync=False)
            except MessagingError:  # closed
                return

    def _answer(self, request: Message) -> None:
        sender = self._session.sender(str(request.reply_to))
        found: list[tuple[list[dict[str, Any]], dict[str, object]]]
        asked = request.content.get("_object_id")
        if asked is None:
            found = [([{"_values": {"name": name}} for name in names], marks) for names, marks in self.parts]
        elif self.discards is None:
            found = [([], {})]
        else:
            assert asked["_object_name"].startswith("org.apache.qpid.broker:queue:qmf-")
            found = [([{"_values": {"discardsRing": self.discards, "discardsOverflow": 0}}], {})]
        for content, marks in found:
            properties: dict[str, Any] = {"qmf.opcode": "_query_response", **marks}
            sender.send(Message(content, correlation_id=request.correlation_id, properties=properties))


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.url


@pytest.fixture
def management(url: str) -> Iterator[FakeManagement]:
    made = FakeManagement(url)
    yield made
    made.close()


@pytest.fixture
def agent(url: str, management: FakeManagement) -> Iterator[BrokerAgent]:
    del management
    with BrokerAgent.connect(url, timeout=WAIT_LIMIT) as agent:
        yield agent


def part(number: int | None, *names: str, last: bool = False) -> Part:
    marks: dict[str, object] = {} if last else {"partial": ""}
    return [*names], marks if number is None else {**marks, "qmf.sequence": number}


WHOLE = [part(1, "a", "b"), part(2, "c"), part(3, "d", last=True)]


def test_a_whole_answer_has_all_objects(agent: BrokerAgent, management: FakeManagement) -> None:
    management.parts = WHOLE
    assert [queue.name for queue in agent.getAllQueues()] == ["a", "b", "c", "d"]
    management.parts = [part(None, "a", last=True)]
    assert [queue.name for queue in agent.getAllQueues()] == ["a"]


@pytest.mark.parametrize(
    ("parts", "missing"),
    [(WHOLE[1:], "1 of 3"), (WHOLE[2:], "2 of 3"), ([WHOLE[0], WHOLE[2]], "1 of 3"), ([WHOLE[1], *WHOLE], "some")],
)
def test_a_missing_part_is_noticed(
    agent: BrokerAgent, management: FakeManagement, parts: Sequence[Part], missing: str
) -> None:
    management.parts = parts
    with pytest.raises(IncompleteAnswer, match=f"^{missing} parts of the answer"):
        agent.getAllQueues()
    management.parts = WHOLE
    assert len(agent.list("queue")) == 4


def test_a_missing_last_part_is_waited_for(url: str, management: FakeManagement) -> None:
    management.parts = WHOLE[:2]
    with BrokerAgent.connect(url, timeout=0.2) as agent, pytest.raises(RequestTimeout):
        agent.getAllQueues()


def test_parts_without_numbers_are_missing_if_their_queue_has_dropped_some(
    agent: BrokerAgent, management: FakeManagement
) -> None:
    management.parts = [part(None, "b"), part(None, "c", last=True)]
    assert len(agent.getAllQueues()) == 2
    management.discards = 3
    with pytest.raises(IncompleteAnswer, match="the broker dropped 3 parts"):
        agent.getAllQueues()
    assert len(agent.getAllQueues()) == 2  # none since then
    management.discards = None
    assert len(agent.getAllQueues()) == 2


@pytest.mark.slow
def test_commands_end_with_the_error(url: str, management: FakeManagement) -> None:
    management.parts = WHOLE[1:]
    done = run([command("qpid-config"), "-b", url, "queues"])
    assert done.returncode != 0
    assert "1 of 3 parts of the answer of the broker are missing" in done.stderr


def test_the_broker_numbers_the_parts_of_its_answers() -> None:
    with managed_broker(EMBEDDED) as url, BrokerAgent.connect(url, timeout=WAIT_LIMIT) as agent:
        names = {f"queue-{number}" for number in range(250)}
        for name in sorted(names):
            agent.addQueue(name)
        with Connection.establish(url, timeout=WAIT_LIMIT) as connection:
            session = connection.session()
            answers = session.receiver("qmf.default.topic/direct.test", capacity=10)
            query = {"_what": "OBJECT", "_schema_id": {"_class_name": "queue"}}
            request = Message(
                query,
                reply_to="qmf.default.topic/direct.test",
                correlation_id="1",
                subject="broker",
                properties={"qmf.opcode": "_query_request", "method": "request", "x-amqp-0-10.app-id": "qmf2"},
            )
            session.sender("qmf.default.direct/broker").send(request)
            found = [answers.fetch(timeout=WAIT_LIMIT).properties]
            while "partial" in found[-1]:
                found.append(answers.fetch(timeout=WAIT_LIMIT).properties)
        assert len(found) > 2
        assert [item["qmf.sequence"] for item in found] == [*range(1, len(found) + 1)]
        assert {queue.name for queue in agent.getAllQueues()} >= names
