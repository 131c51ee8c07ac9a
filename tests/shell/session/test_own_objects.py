"""What agents and consoles create on a broker is left out; on the embedded broker, and on a qpidd if there is one."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Callable, Iterator

import attrs
import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from qmf_shell.session.opening import open_session
from qmf_shell.session.own_objects import OwnObjectTracker, is_own_object
from qmf_shell.session.recent import RecentEvents
from shell.fakes import filesystem, full_event, make_output
from support.brokers import URLS
from support.waiting import wait_until

from qmf.agent import Agent
from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection, Session
from qmf.models.broker.schema import QUEUE
from qmf.schema import ClassKey
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView

PACKAGE = "org.apache.qpid.broker"
OWN = "qmf-1_qmf-in-2b0b32a4-4a38-4f8e-a1a5-6b3c8a8c2d11"
#: Classes of which clients create objects; qpidd has links of AMQP 1.0 in the last two.
CLASSES = ("queue", "binding", "connection", "session", "subscription", "incoming", "outgoing")


@pytest.fixture(scope="module", params=["embedded", *(["qpidd"] if URLS["qpidd"] else [])])
def managed(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker that manages itself, with an agent of this project."""
    if request.param == "qpidd":
        if "PYTEST_XDIST_WORKER" in os.environ:
            pytest.skip("clients of other tests come and go on the same qpidd: run this file alone, with -n 0")
        url = URLS["qpidd"]
        with Agent.run_in_thread(url, vendor="example.org", product="own"):
            yield url
        return
    with EmbeddedBroker(management=0.5) as broker, Agent.run_in_thread(broker.url, vendor="example.org", product="own"):
        yield broker.url


@pytest.fixture
def context(managed: str) -> Iterator[Context]:
    with open_session([managed], timeout=30, interval=1, follow=True, registry=standard()) as opened:
        yield opened.context


@pytest.fixture
def application(managed: str) -> Iterator[Session]:
    """An application that uses the same broker."""
    connection = Connection.establish(managed)
    try:
        yield connection.session()
    finally:
        connection.close()


def rows(context: Context, line: str) -> list[dict[str, object]]:
    output = make_output(OutputStyle.JSON)
    context.settings = output.screen.settings
    assert execute(line, context, output.screen) is LineOutcome.DONE, output.errors
    found: list[dict[str, object]] = []
    for text in output.lines:
        value = json.loads(text)
        found += value if isinstance(value, list) else [value]
    return found


def counts(context: Context, option: str = "") -> dict[str, object]:
    return {str(row["class"]): row["active"] for row in rows(context, f"list {option}") if row["package"] == PACKAGE}


def lists(context: Context, option: str = "") -> dict[str, object]:
    """Numbers of objects by class, counted in the lists."""
    there = counts(context, option)
    return {name: len(rows(context, f"list {option} {PACKAGE}:{name}")) for name in CLASSES if name in there}


def eventually(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what)


@pytest.mark.slow
def test_only_what_applications_create_is_listed(context: Context, application: Session) -> None:
    name = f"orders-{uuid.uuid4()}"
    receiver = application.receiver(f"{name}; {{create: receiver, delete: receiver}}")

    def queues(option: str = "") -> list[str]:
        return [str(row["name"]) for row in rows(context, f"list {option} {PACKAGE}:queue")]

    eventually(lambda: name in queues(), "the queue of the application")
    assert not [item for item in queues() if "qmf-in-" in item]
    assert [item for item in queues("--all") if "qmf-in-" in item]
    connections = rows(context, f"list {PACKAGE}:connection")
    assert connections
    assert not [row for row in connections if "qmf.management" in str(row["remoteProperties"])]
    assert rows(context, f"list {PACKAGE}:session")
    everything = {name: number for name, number in counts(context, "--all").items() if name in CLASSES}

    def agree(option: str = "") -> bool:
        expected = {name: number for name, number in counts(context, option).items() if name in CLASSES}
        return lists(context, option) == expected

    eventually(agree, "class counts that agree with the lists")
    eventually(lambda: agree("--all"), "class counts that agree with the lists of everything")
    shown = counts(context)
    assert all(int(str(shown[name])) < int(str(number)) for name, number in everything.items() if number)
    for line in ("tree", "find qmf-in-"):
        assert not [row for row in rows(context, line) if "qmf-in-" in str(row.get("object", row.get("match")))]
        assert [row for row in rows(context, f"{line} -n 0 --all") if "qmf-in-" in json.dumps(row)]
    (own, *_) = (item for item in queues("--all") if "qmf-in-" in item)
    assert rows(context, f"show queue:{own}")
    receiver.close()


@pytest.mark.slow
def test_events_about_agents_and_consoles_are_left_out(context: Context, managed: str, application: Session) -> None:
    name = f"orders-{uuid.uuid4()}"
    with open_session([managed], timeout=30, interval=1, follow=False, registry=standard()):
        pass
    application.receiver(f"{name}; {{create: receiver, delete: receiver}}").close()
    deleted = "events -n 0 queueDelete"
    eventually(lambda: any(name in json.dumps(row) for row in rows(context, deleted)), "the events of the queue")
    shown = [json.dumps(row) for row in rows(context, "events -n 0")]
    assert not [text for text in shown if "qmf-in-" in text or "qmf.management" in text]
    everything = [json.dumps(row) for row in rows(context, "events -n 0 --all")]
    for word in ("clientConnect", "queueDeclare", "subscribe"):
        assert [text for text in everything if word in text and ("qmf-in-" in text or "qmf.management" in text)], word


@pytest.mark.slow
def test_a_broker_agent_is_a_console(context: Context, managed: str) -> None:
    def numbers(option: str = "") -> list[int]:
        return [len(rows(context, f"list {option} {PACKAGE}:{name}")) for name in ("queue", "connection", "session")]

    with contextlib.closing(BrokerAgent.connect(managed, timeout=30)) as agent:
        assert agent.getBroker() is not None
        everything = numbers("--all")
        # Other tests may use a qpidd at the same time.
        eventually(
            lambda: managed == URLS["qpidd"] or not any(numbers()), "lists without what agents and consoles have"
        )
        assert all(shown < number for shown, number in zip(numbers(), everything, strict=True))


def test_sessions_are_known_by_their_connection() -> None:
    tracker = OwnObjectTracker()
    key, other = ObjectKey("connection:1", "broker"), ObjectKey("connection:2", "broker")
    session = ObjectKey("session:1", "broker")
    assert not tracker.notice(session, (PACKAGE, "session"), {"connectionRef": key})
    assert tracker.notice(key, (PACKAGE, "connection"), {"remoteProperties": {"qmf.management": True}})
    assert not tracker.notice(other, (PACKAGE, "connection"), {"remoteProperties": {}})
    assert tracker.notice(session, (PACKAGE, "session"), {"connectionRef": key})
    assert not tracker.notice(session, (PACKAGE, "session"), {"connectionRef": other})
    assert not tracker.notice(key, ("org.example", "connection"), {"remoteProperties": {"qmf.management": True}})


def test_only_other_events_are_counted() -> None:
    events = RecentEvents()
    events.add(full_event())
    events.add(attrs.evolve(full_event(), name=f"{PACKAGE}:bind", values={"qName": OWN}))
    assert (events.count(everything=False), events.count(everything=True), len(events.recent())) == (1, 2, 2)


def test_only_the_brokers_own_classes_and_events_are_looked_at() -> None:
    item = filesystem("/", values={"name": OWN})
    assert not is_own_object(item)
    event = full_event()
    assert not attrs.evolve(event, values={"qName": OWN}).is_own
    assert attrs.evolve(event, name=f"{PACKAGE}:bind", values={"qName": OWN}).is_own
    assert attrs.evolve(event, name=f"{PACKAGE}:unsubscribe", values={"dest": OWN}).is_own
    nobody = {"rhost": "", "user": "", "dest": ""}
    assert attrs.evolve(event, name=f"{PACKAGE}:unsubscribe", values=nobody).is_own
    connected = {"properties": {"qmf.management": True}}
    assert attrs.evolve(event, name=f"{PACKAGE}:clientConnect", values=connected).is_own
    assert not attrs.evolve(event, name=f"{PACKAGE}:bind", values={"qName": "orders"}).is_own


@pytest.mark.parametrize("name", ["queue", "Queue"])
def test_the_name_of_a_class_in_any_case(name: str) -> None:
    """Agents send it in lower case; a schema may have it as it is written there."""
    schema = attrs.evolve(QUEUE, name=name)
    key = ObjectKey(f"{PACKAGE}:queue:{OWN}", "broker")
    of_agent = ObjectView(ObjectIdentity(key, ClassKey(PACKAGE, "queue"), OWN), schema, {"name": OWN})
    assert is_own_object(of_agent)
    assert not is_own_object(attrs.evolve(of_agent, values={"name": "orders"}))
