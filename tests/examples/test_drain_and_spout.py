"""The examples of the manual of the High Level Client API, run as it shows them, on every broker that provides them."""

from __future__ import annotations

import re
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from support.brokers import EMBEDDED, NAMES, URLS
from support.frame_cutter import Cut, FrameCutter, Performative
from support.processes import Process, run
from support.waiting import WAIT_LIMIT, wait_until

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:0"

exchanges = pytest.mark.only("embedded", "qpidd")
confirming = pytest.mark.only("embedded", "qpidd")
browsing = pytest.mark.only("embedded", "qpidd", "artemis")

#: The server of the manual's section on messaging properties.
SERVER = """
import sys
from qmf.messaging import Connection, Message

with Connection(sys.argv[1]) as connection:
    session = connection.session()
    receiver = session.receiver(sys.argv[2])
    print("ready", flush=True)
    request = receiver.fetch(timeout=30)
    sender = session.sender(request.reply_to)
    response = Message(request.content.upper())
    sender.send(response)
    print(f"Processed request: {request.content} -> {response.content}", flush=True)
    session.acknowledge()
"""


def without_first_acquirer(line: str) -> str:
    """A line of drain without the property of a first acquirer, which RabbitMQ states in every message."""
    shown = r"(x-amqp-first-acquirer:|'x-amqp-first-acquirer': )True"
    return re.sub(f"{shown}, |(, )?{shown}", "", line)


@attrs.frozen
class Windows:
    """The terminals of the manual's reader, on one broker.

    Attributes:
        url: of the broker.
        suffix: makes names of nodes unique.
    """

    url: str
    suffix: str = attrs.field(factory=lambda: f"-{uuid.uuid4().hex[:8]}")

    def add(self, kind: str, name: str) -> str:
        """Create a node, as qpid-config does in the manual; returns its unique name."""
        unique = name + self.suffix
        with Connection.establish(self.url, timeout=10) as connection:
            declare = "" if kind == "queue" else f", x-declare: {{type: {kind}}}"
            node = f", node: {{type: {'queue' if kind == 'queue' else 'topic'}{declare}}}"
            connection.session().sender(f"{unique}; {{create: always{node}}}")
        return unique

    def spout(self, *arguments: str) -> None:
        done = run([str(EXAMPLES / "spout"), "-b", self.url, *arguments])
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def drain(self, *arguments: str) -> list[str]:
        """What drain prints until it ends by itself."""
        done = run([str(EXAMPLES / "drain"), "-b", self.url, *arguments])
        assert (done.returncode, done.stderr) == (0, "")
        return [without_first_acquirer(line) for line in done.stdout.splitlines()]

    @contextmanager
    def first_window(self, *arguments: str) -> Iterator[Process]:
        """A drain that is receiving; ended with Ctrl-C."""
        process = Process(str(EXAMPLES / "drain"), "-v", "-b", self.url, *arguments)
        try:
            process.wait_for("receiving from")
            yield process
        finally:
            code = process.end(signal.SIGINT)
        assert code == 0
        assert "Traceback" not in "".join(process.lines)


@pytest.fixture(params=NAMES)
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Windows]:
    """Each broker in turn; a test marked ``only`` is skipped on those that the mark does not name."""
    mark = request.node.get_closest_marker("only")
    if mark is not None and request.param not in mark.args:
        pytest.skip(f"not provided by {request.param}")
    # The programs find the Python that runs the tests, and this project as the tests do.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.setenv("PYTHONPATH", ":".join(entry for entry in sys.path if entry))
    if request.param != EMBEDDED:
        yield Windows(URLS[request.param])
    else:
        with EmbeddedBroker() as broker:
            yield Windows(broker.url)


def received(process: Process, count: int) -> list[str]:
    """The next messages that a drain prints."""
    return [without_first_acquirer(process.wait_for("Message(")) for _ in range(count)]


def is_message(line: str, subject: str | None = None, content: str = "") -> bool:
    shown = "" if subject is None else f"qpid.subject:{re.escape(subject)}, "
    return re.fullmatch(rf"Message\(properties={{{shown}spout-id:{ID}}}, content='{content}'\)", line) is not None


def test_simple_address_of_a_queue(windows: Windows) -> None:
    name = windows.add("queue", "hello-world")
    windows.spout("-a", name)
    (line,) = windows.drain("-a", name)
    assert is_message(line), line
    assert windows.drain("-a", name) == []


@exchanges
def test_simple_address_of_an_exchange(windows: Windows) -> None:
    name = windows.add("topic", "hello-world")
    windows.spout("-a", name)
    assert windows.drain("-a", name) == []
    with windows.first_window("-a", name, "-t", "30") as first, windows.first_window("-a", name, "-t", "30") as other:
        windows.spout("-a", name)
        for window in (first, other):
            (line,) = received(window, 1)
            assert is_message(line), line


@exchanges
def test_direct_exchange(windows: Windows) -> None:
    name = windows.add("direct", "direct-exchange")
    with windows.first_window("-a", f"{name}/sports", "-t", "30") as first:
        for subject in ("news", "sports"):
            windows.spout("-a", f"{name}/{subject}")
        (line,) = received(first, 1)
        assert is_message(line, "sports"), line


@exchanges
@pytest.mark.parametrize(
    ("binding", "sent", "matching"),
    [
        ("news", ["sports", "news"], ["news"]),
        ("*.news", ["usa.sports", "usa.news", "europe.sports", "europe.news"], ["usa.news", "europe.news"]),
        (
            "#.news",
            ["news", "sports", "usa.news", "usa.sports", "usa.faux.sports", "usa.faux.news"],
            ["news", "usa.news", "usa.faux.news"],
        ),
    ],
)
def test_topic_exchange(windows: Windows, binding: str, sent: list[str], matching: list[str]) -> None:
    name = windows.add("topic", "topic-exchange")
    with windows.first_window("-a", f"{name}/{binding}", "-t", "30") as first:
        for subject in sent:
            windows.spout("-a", f"{name}/{subject}")
        for line, subject in zip(received(first, len(matching)), matching, strict=True):
            assert is_message(line, subject), line


@exchanges
def test_a_count_ends_drain_and_not_before(windows: Windows) -> None:
    name = windows.add("topic", "topic-exchange")
    with windows.first_window("-a", f"{name}/#.news", "-t", "30", "-c", "3") as first:
        for subject in ("usa.news", "usa.faux.news", "sports", "news", "other.news"):
            windows.spout("-a", f"{name}/{subject}")
        for line, subject in zip(received(first, 3), ("usa.news", "usa.faux.news", "news"), strict=True):
            assert is_message(line, subject), line
        wait_until(lambda: first.popen.poll() is not None)


@confirming
def test_drain_goes_on_when_an_acknowledgement_is_lost(windows: Windows) -> None:
    name = windows.add("queue", "lost")
    windows.spout("-a", name, "-c", "2")
    with FrameCutter(windows.url) as cutter:
        cutter.cut_at(Cut(Performative.DISPOSITION, to_broker=True, passed=False))
        done = run([str(EXAMPLES / "drain"), "-b", cutter.url, "-r", "-i", "0.1", "-t", "10", "-c", "3", name])
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    assert "drain: 1 of 1 acknowledgements" in done.stderr
    assert windows.drain(name) == []


@exchanges
def test_fanout_exchange(windows: Windows) -> None:
    name = windows.add("fanout", "fanout-exchange")
    with windows.first_window("-a", f"{name}/news", "-t", "30") as first:
        windows.spout("-a", f"{name}/sports")
        (line,) = received(first, 1)
        assert is_message(line, "sports"), line


def test_queue_does_not_route_by_subject(windows: Windows) -> None:
    name = windows.add("queue", "amqp010-queue")
    with windows.first_window("-a", name, "-t", "30") as first:
        windows.spout("-a", f"{name}/news")
        windows.spout("-a", name)
        with_subject, without = received(first, 2)
        assert is_message(with_subject, "news"), with_subject
        assert is_message(without), without


@exchanges
def test_assert(windows: Windows) -> None:
    assert windows.drain("-a", "amq.fanout; { assert: always, node: { type: topic }}") == []
    address = "amq.fanout; { assert: always, node: { type: queue }}"
    done = run([str(EXAMPLES / "drain"), "-b", windows.url, "-a", address])
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"drain: .*amq\.fanout.*\n", done.stderr), done.stderr


def test_create(windows: Windows) -> None:
    address = f"xoxox{windows.suffix} ; {{create: always}}"
    with windows.first_window("-a", address, "-t", "30") as first:
        windows.spout("-a", address)
        (line,) = received(first, 1)
        assert is_message(line), line


@browsing
def test_browse(windows: Windows) -> None:
    name = windows.add("queue", "hello-queue")
    windows.spout("-a", name)
    lines = [windows.drain(f"{name}; {{mode: browse}}") for _ in range(2)]
    assert lines[0] == lines[1] != []
    assert windows.drain(name) == lines[0]
    assert windows.drain(name) == []


def test_request_and_response(windows: Windows) -> None:
    requests, answers = windows.add("queue", "requests"), windows.add("queue", "answers")
    server = Process(sys.executable, "-c", SERVER, windows.url, requests)
    try:
        server.wait_for("ready")
        windows.spout("-a", requests, "-R", answers, "hello", "world")
        server.wait_for("Processed request: hello world -> HELLO WORLD")
        assert windows.drain("-a", answers, "-t", "10", "-c", "1") == ["Message(properties={}, content='HELLO WORLD')"]
        assert server.popen.wait(WAIT_LIMIT) == 0  # it ends by itself, after it has acknowledged
    finally:
        server.end()


def test_options(windows: Windows) -> None:
    name = windows.add("queue", "options")
    windows.spout(name, "-c", "2", "-I", "mine", "-S", "subject", "-P", "a=b", "-P", "c", "-d")
    windows.spout(name, "-I", "map", "-M", "key=value", "-M", "none", "some", "text", "-r", "-i", "1", "-l", "3")
    windows.spout("-a", name, "-t", "0")
    options = ["--connection-options", "{heartbeat: 30, reconnect-limit: 3}", "-a", name]
    assert windows.drain(*options, "-c", "1", "-f") == [
        "Message(properties={qpid.subject:subject, spout-id:mine:0, a:b, c:None}, content='')"
    ]
    assert windows.drain(*options, "-p", "%(P)s %(C)s") == [
        "{'spout-id': 'mine:1', 'a': 'b', 'c': None} ",
        "{'spout-id': 'map:0'} {'text': 'some text', 'key': 'value', 'none': None}",
    ]


@pytest.mark.parametrize("program", ["drain", "spout"])
def test_mistakes_are_reported_in_one_line(windows: Windows, program: str) -> None:
    path = str(EXAMPLES / program)
    for arguments, reason in [
        (["-b", "127.0.0.1:1", "-a", "x"], "cannot connect"),
        (["-b", windows.url, "-a", "x; {creat: always}"], "creat"),
        (["-b", windows.url, "-a", "x", "--connection-options", "{hartbeat: 1}"], "hartbeat"),
        (["-b", windows.url, "-a", "x", "--connection-options", "x"], "line:1,0"),
    ]:
        done = run([path, *arguments])
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(rf"{program}: .*{reason}.*\n", done.stderr), done.stderr
    assert run([path, "-h"]).stdout.startswith(f"usage: {program} [options] [-a] ADDRESS")
    assert run([path]).returncode == 2
