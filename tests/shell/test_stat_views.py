"""The views of `qmf-stat`."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.results.result import Table
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from qmf_shell.stat_views import UnmanagedError, short_name, stat_view
from shell.fakes import NOON, FakeBackend, filesystem

from qmf.errors import NotFoundError
from qmf.schema import TYPES, ClassKey, ClassSchema, Property, Statistic
from qmf.views.cells import Quantity
from qmf.views.objects import ObjectKey, ObjectView

QPID = "org.apache.qpid.broker"

AGENT = "apache.org:qpidd:1"

BROKER = ClassSchema(
    package=QPID,
    name="broker",
    properties=(Property(name="version", type=TYPES["sstr"]),),
    statistics=tuple(Statistic(name=name, type=TYPES["uint64"]) for name in ("msgDepth", "byteDepth", "abandoned")),
)

QUEUE = ClassSchema(package=QPID, name="queue", statistics=(Statistic(name="msgDepth", type=TYPES["count64"]),))

SUBSCRIPTION = ClassSchema(package=QPID, name="subscription")

OUTGOING = ClassSchema(package=QPID, name="outgoing")


def qpid(schema: ClassSchema, index: str, **values: object) -> ObjectView:
    item = filesystem(index, AGENT)
    key = ObjectKey(f"{QPID}:{schema.name}:{index}", AGENT)
    identity = type(item.identity)(key, schema.key, index)
    return ObjectView(identity, schema, values, updated=NOON, created=NOON)


@pytest.fixture
def managed(backend: FakeBackend) -> None:
    backend.keys = [BROKER.key, QUEUE.key, ClassKey(QPID, "session")]
    backend.records = [
        qpid(BROKER, "amqp-broker", version="1.40.0", msgDepth=7, byteDepth=70, abandoned=3),
        *(qpid(QUEUE, f"q{n}", msgDepth=n * 10 % 7, durable=n % 2 == 0) for n in range(1, 6)),
    ]


@pytest.mark.usefixtures("managed")
def test_queues(context: Context) -> None:
    table = stat_view(context, "queues", None)
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["q1", "q2", "q3", "q4", "q5"]
    table = stat_view(context, "queues", "MSG", limit=2)
    assert isinstance(table, Table)
    assert [(row[0], row[4]) for row in table.rows] == [("q2", Quantity(6)), ("q4", Quantity(5))]
    assert table.note == "3 more beyond the limit"
    table = stat_view(context, "queues", "msg", increasing=True)
    assert isinstance(table, Table)
    assert table.rows[0][0] == "q5"
    with pytest.raises(NotFoundError, match=r"no column 'mgs'; there are queue, dur, .* and bind"):
        stat_view(context, "queues", "mgs")


def test_subscriptions_of_both_protocols(context: Context, backend: FakeBackend) -> None:
    backend.keys = [SUBSCRIPTION.key, OUTGOING.key]
    backend.records = [
        qpid(SUBSCRIPTION, "s,q,in", name="in", queueRef=ObjectKey(f"{QPID}:queue:orders", AGENT), delivered=3),
        qpid(OUTGOING, "c,out", name="out", source="amq.topic", transfers=4),
    ]
    table = stat_view(context, "subscriptions", "delivered")
    assert isinstance(table, Table)
    assert [(row[0], row[1], row[-1]) for row in table.rows] == [
        ("out", "amq.topic", Quantity(4)),
        ("in", "orders", Quantity(3)),
    ]
    backend.keys = [SUBSCRIPTION.key]
    assert len(stat_view(context, "subscriptions", None).rows) == 1  # type: ignore[union-attr]


@pytest.mark.usefixtures("managed")
def test_overview(context: Context) -> None:
    text = str(stat_view(context, "overview", None))
    assert "1.40.0" in text
    assert "('queues', 5)" in text
    assert "('abandoned', Quantity(value=3" in text


def test_overview_of_brokers_of_which_one_is_not_there(context: Context, backend: FakeBackend) -> None:
    backend.status = ConnectionStatus("amqp://mq1:5672", False, "connection refused", "mq1")
    backend.others = (ConnectionStatus("amqp://127.0.0.1:5672", name="127.0.0.1"),)
    text = str(stat_view(context, "overview", None))
    assert "('broker', 'amqp://127.0.0.1:5672')" in text
    assert "('agents', 2)" in text
    (warning,) = context.warnings
    assert warning.startswith("incomplete: broker mq1 did not answer")
    with pytest.raises(UnmanagedError, match=r"^amqp://127.0.0.1:5672 is not managed by QMF"):
        stat_view(context, "queues", None)


@pytest.mark.usefixtures("managed")
def test_overview_counts_the_agents_of_each_broker(context: Context, backend: FakeBackend) -> None:
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672", name="127.0.0.1")
    backend.others = (ConnectionStatus("amqp://mq2:5672", name="mq2"),)
    identity = backend.records[0].identity
    key = attrs.evolve(identity.key, broker="127.0.0.1")
    backend.records[0] = attrs.evolve(backend.records[0], identity=attrs.evolve(identity, key=key))
    assert "('agents', 2)" in str(stat_view(context, "overview", None))


def test_brokers_that_are_not_managed(context: Context) -> None:
    with pytest.raises(UnmanagedError, match=r"amqp://127.0.0.1:5672 is not managed by QMF"):
        stat_view(context, "queues", None)
    assert "it has no agent of its own" in str(stat_view(context, "overview", None))


@pytest.mark.parametrize(
    ("name", "short"), [("org.apache.qpid.broker:queue:orders", "orders"), ("p:q:a:b", "a:b"), ("x", "x")]
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short
