"""qmf-printevents and qmf-stat, whole."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from qmf_shell import printevents, stat
from qmf_shell.objects.event_filter import EventFilter
from qmf_shell.render.event_lines import EventLineFormatter
from qmf_shell.results.cells import Quantity
from qmf_shell.results.result import Table
from qmf_shell.session.backend import ConnectionStatus, EventRecord, ObjectKey, ObjectRecord
from qmf_shell.session.context import Context
from qmf_shell.stat_columns import short_name
from qmf_shell.stat_views import UnmanagedError, stat_view
from shell.programs import PATIENCE, Terminal, environment, run
from shell.world import BETA, NOON, FakeBackend, filesystem, full_event

from qmf.agent import Agent, AgentThread
from qmf.broker import EmbeddedBroker
from qmf.errors import NotFoundError
from qmf.models.host.agent import FilesystemAboveThreshold
from qmf.schema import TYPES, ClassKey, ClassSchema, Property, Statistic

EVENTS = (sys.executable, "-m", "qmf_shell.printevents")
STAT = (sys.executable, "-m", "qmf_shell.stat")


# -- printevents -------------------------------------------------------------------------------------------------------


def line(event: EventRecord | None = None, *, json: bool = False) -> str:
    return EventLineFormatter(json=json).line(event or full_event("/a b"))


def test_a_line_is_as_the_old_tool_printed_it() -> None:
    event = EventRecord(
        "p:c", NOON, 6, {"name": "a b", "on": True, "of": ObjectKey("a", "p:q:x"), "n": 7}, BETA, None, "mq1"
    )
    assert line(event) == 'Wed May  1 12:00:00 2024 INFO  p:c broker=mq1 name="a b" on=T of=p:q:x n=7'
    assert line(full_event("\x1b[31m")).endswith("mountPoint=\\x1b[31m size=2048")
    assert "INV-9" in line(full_event(severity=9))


def test_a_line_of_json() -> None:
    assert json.loads(line(json=True)) == {
        "time": "2024-05-01T12:00:00.000000000Z",
        "severity": "warn",
        "event": "org.example:filesystemFull",
        "broker": "",
        "agent": "example.org:host:alpha",
        "arguments": {"mountPoint": "/a b", "size": 2048},
    }


@pytest.mark.parametrize(
    ("module", "args", "word"),
    [
        (printevents, ["--nonsense"], "--nonsense"),
        (printevents, ["-s", "loud"], "'loud'"),
        (printevents, ["-w", "a >"], "expected a value"),
        (printevents, ["-w", "a = b c"], "'c'"),
        (printevents, ["-n", "0"], "'0'"),
        (stat, ["nosuch"], "nosuch"),
        (stat, ["queues", "-c"], "one view at a time"),
        (stat, ["-n", "3"], "-i"),
        (stat, ["-i", "x"], "'x'"),
    ],
)
def test_wrong_usage(module: object, args: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(args) == 64  # type: ignore[attr-defined]
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert word in err


@pytest.mark.parametrize("module", [printevents, stat])
def test_help(module: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(["--help"]) == 0  # type: ignore[attr-defined]
    assert "examples:" in capsys.readouterr().out


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def agent(broker: EmbeddedBroker) -> Iterator[AgentThread]:
    with Agent.run_in_thread(broker.url, vendor="example.org", product="test", instance="1", interval=0.5) as agent:
        yield agent


def above(percent: float) -> FilesystemAboveThreshold:
    return FilesystemAboveThreshold(mountPoint="/data", device="sda", percent=percent, threshold=90, free=7)


class Program:
    """qmf-printevents under way."""

    def __init__(self, home: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [*EVENTS, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(home)
        )

    def line_of(self, agent: AgentThread, percent: float) -> str:
        """The first line. Nobody outside can see when it has subscribed: so events come until it prints one."""
        import threading

        assert self.process.stdout is not None
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.append(self.process.stdout.readline()), daemon=True)  # type: ignore[union-attr]
        reader.start()
        for _ in range(int(PATIENCE / 0.05)):
            agent.agent.raise_event(above(percent))
            reader.join(0.05)
            if lines:
                break
        return lines[0].rstrip("\n")

    def end(self) -> tuple[int, str]:
        """Its exit code and what it said on stderr."""
        self.process.send_signal(2)
        _, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, err


@pytest.mark.slow
def test_events_of_a_real_broker(broker: EmbeddedBroker, agent: AgentThread, tmp_path: Path) -> None:
    program = Program(tmp_path, broker.url)
    assert re.fullmatch(
        r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} WARN  qmf\.host:filesystemAboveThreshold "
        rf"broker={re.escape(broker.url)} mountPoint=/data device=sda percent=93\.5 threshold=90 free=7",
        program.line_of(agent, 93.5),
    )
    code, err = program.end()
    assert code == 0
    assert f"NOTIC qmf-printevents:brokerConnected broker={broker.url}" in err


@pytest.mark.slow
def test_filters_json_and_count(broker: EmbeddedBroker, agent: AgentThread, tmp_path: Path) -> None:
    args = (broker.url, "--json", "-n", "1", "-s", "warn", "-c", "filesystemabovethreshold", "-w", "percent > 95")
    program = Program(tmp_path, *args)
    agent.agent.raise_event(above(50))
    event = json.loads(program.line_of(agent, 97))
    assert (event["severity"], event["arguments"]["percent"]) == ("warn", 97)
    _, err = program.process.communicate(timeout=PATIENCE)
    assert program.process.returncode == 0
    assert "Traceback" not in err


@pytest.mark.slow
def test_several_brokers_reconnects_and_heartbeats(agent: AgentThread, broker: EmbeddedBroker, tmp_path: Path) -> None:
    with EmbeddedBroker() as other:
        port, lost = other.port, other.url
    program = Program(tmp_path, broker.url, lost, "--heartbeats", "--json", "--timeout", "3")
    assert program.process.stdout is not None
    first = json.loads(program.process.stdout.readline())
    assert (first["event"], first["broker"]) == ("qmf:heartbeat", broker.url)
    with (
        EmbeddedBroker(port=port) as again,
        Agent.run_in_thread(again.url, vendor="example.org", product="late", interval=0.5),
    ):
        while json.loads(program.process.stdout.readline())["broker"] != lost:
            pass
    code, err = program.end()
    assert code == 0
    assert f"brokerDisconnected broker={lost}" in err
    assert f"brokerConnected broker={lost}" in err


@pytest.mark.slow
def test_heartbeats_are_chosen_as_events_are(agent: AgentThread, broker: EmbeddedBroker, tmp_path: Path) -> None:
    with Agent.run_in_thread(broker.url, vendor="example.org", product="other", instance="2", interval=0.5):
        choice = ("--heartbeats", "-a", "other", "-c", "nosuch", "-w", "nosuch = 1")
        done = run(tmp_path, broker.url, *choice, "--json", "-n", "3", program=EVENTS)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(row["event"], row["severity"], row["agent"]) for row in rows} == {
        ("qmf:heartbeat", "inform", "example.org:other:2")
    }


def test_heartbeats_count_as_inform() -> None:
    for severity, shown in ((7, True), (6, True), (5, False)):
        assert EventFilter(severity=severity).passes_heartbeat(BETA) is shown
    assert EventFilter(agent="HOST:beta").passes_heartbeat(BETA)
    assert not EventFilter(agent="alpha").passes_heartbeat(BETA)


@pytest.mark.slow
def test_nobody_there(tmp_path: Path) -> None:
    with EmbeddedBroker() as other:
        url = other.url
    done = run(tmp_path, url, "--timeout", "3", program=EVENTS)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no connection to {url}" in done.stderr
    done = run(tmp_path, "-b", url, "--timeout", "3", program=STAT)
    assert (done.returncode, done.stdout) == (2, "")
    assert run(tmp_path, "amqp://:nonsense:", program=EVENTS).returncode == 64
    assert run(tmp_path, "-b", "http://x", program=STAT).returncode == 64


# -- stat --------------------------------------------------------------------------------------------------------------

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


def qpid(schema: ClassSchema, index: str, **values: object) -> ObjectRecord:
    item = filesystem(index, AGENT)
    key = ObjectKey(AGENT, f"{QPID}:{schema.name}:{index}")
    identity = type(item.identity)(key, schema.key, index)
    return ObjectRecord(identity, schema, values, updated=NOON, created=NOON)


@pytest.fixture
def managed(backend: FakeBackend) -> None:
    backend.keys = [BROKER.key, QUEUE.key, ClassKey(QPID, "session")]
    backend.things = [
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
    backend.things = [
        qpid(SUBSCRIPTION, "s,q,in", name="in", queueRef=ObjectKey(AGENT, f"{QPID}:queue:orders"), delivered=3),
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
    identity = backend.things[0].identity
    key = attrs.evolve(identity.key, broker="127.0.0.1")
    backend.things[0] = attrs.evolve(backend.things[0], identity=attrs.evolve(identity, key=key))
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


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_views_of_a_real_broker(broker: EmbeddedBroker, tmp_path: Path) -> None:
    done = run(tmp_path, "agents", "-b", broker.url, "--json", program=STAT)
    assert [row["product"] for row in json.loads(done.stdout)] == ["test"]
    done = run(tmp_path, "-b", broker.url, "-i", "0.1", "-n", "2", "--csv", program=STAT)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3
    done = run(tmp_path, "queues", "-b", broker.url, program=STAT)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not managed by QMF" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_a_view_on_a_terminal(broker: EmbeddedBroker, tmp_path: Path) -> None:
    with Terminal(["-b", broker.url, "-i", "0.2"], environment(tmp_path), program=STAT) as terminal:
        terminal.sees(r"managed by QMF +no")
        terminal.sees(r"every 0\.2 s")
        terminal.child.send("q")
        assert terminal.end() == 0
