"""Management by hand: a QMF2 method request, written and read with the messaging API alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.brokers import URLS

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, Message, Session

#: The object id of the broker; the same with qpidd and with the embedded broker.
BROKER = "org.apache.qpid.broker:broker:amqp-broker"


@pytest.fixture(scope="module", params=["embedded", *(["qpidd"] if URLS["qpidd"] else [])])
def managed(request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of a broker with a management agent."""
    if request.param == "qpidd":
        yield URLS["qpidd"]
        return
    with EmbeddedBroker(management=60) as broker:
        yield broker.url


@pytest.fixture
def session(managed: str) -> Iterator[Session]:
    with Connection.establish(managed, timeout=10) as connection:
        yield connection.session()


def agent_name(session: Session) -> str:
    """The name of the broker's agent, from its answer to a locate request."""
    answers = session.receiver("#")
    request: Message = Message([], reply_to=answers.source, properties=properties("_agent_locate_request"))
    session.sender("qmf.default.topic/console.request.agent_locate").send(request)
    answer = answers.fetch(timeout=10)
    session.acknowledge()
    name = answer.content["_values"]["_name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def properties(opcode: str) -> dict[str, object]:
    return {"x-amqp-0-10.app-id": "qmf2", "qmf.opcode": opcode, "method": "request"}


def call(session: Session, method: str, arguments: dict[str, object]) -> Message:
    """Call a method of the broker."""
    answers = session.receiver("#")
    request = Message(
        {"_object_id": {"_object_name": BROKER}, "_method_name": method, "_arguments": arguments},
        reply_to=answers.source,
        correlation_id="1",
        properties=properties("_method_request"),
    )
    session.sender(f"qmf.default.direct/{agent_name(session)}").send(request)
    answer = answers.fetch(timeout=10)
    session.acknowledge()
    return answer


def test_echo(session: Session) -> None:
    answer = call(session, "echo", {"sequence": 7, "body": "hällo"})
    assert answer.properties["qmf.opcode"] == "_method_response"
    assert answer.correlation_id == "1"
    assert isinstance(answer.content, dict)
    arguments = answer.content["_arguments"]
    body = arguments["body"]
    assert arguments["sequence"] == 7
    assert (body.decode() if isinstance(body, bytes) else body) == "hällo"


def test_a_method_that_does_not_exist(session: Session) -> None:
    answer = call(session, "nothing", {})
    assert answer.properties["qmf.opcode"] == "_exception"
    assert answer.correlation_id == "1"
