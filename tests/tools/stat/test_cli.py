"""`qpid-stat` as a user runs it, on the embedded broker, and on a qpidd where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
from support.managed_brokers import unique

from qmf.client import BrokerAgent
from qmf.messaging import Connection
from qmf.tools.stat.cli import main
from qmf.tools.stat.views import View, arrange
from qmf.tools.tables import CellFormat, TextColumn

Run: TypeAlias = Callable[..., list[str]]


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> list[str]:
        assert main([*words, "-b", url, "--timeout", "30"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out.splitlines()

    return call


@pytest.fixture
def queue(url: str) -> Iterator[str]:
    """A queue with three messages, of which one was received."""
    name = unique("stat")
    with BrokerAgent.connect(url, timeout=30) as broker, Connection.establish(url, timeout=30) as connection:
        broker.addQueue(name)
        session = connection.session()
        sender = session.sender(name)
        for _ in range(3):
            sender.send("four")
        session.receiver(name).fetch(30)
        session.acknowledge()
        yield name
        broker.delQueue(name, if_empty=False, if_unused=False)


def test_general(run: Run, queue: str) -> None:
    lines = run("-g")
    assert lines[0] == "Broker Summary:"
    assert lines[1].split() == ["uptime", "cluster", "connections", "sessions", "exchanges", "queues"]
    assert "<standalone>" in lines[3]
    at = lines.index("Aggregate Broker Statistics:")
    assert lines[at - 1] == ""
    assert lines[at + 1].split() == ["Statistic", "Messages", "Bytes"]
    names = [line.split()[0] for line in lines[at + 3 :]]
    assert names[:3] == ["queue-depth", "total-enqueues", "total-dequeues"]
    assert names[-2:] == ["abandoned", "abandoned-via-alt"]
    assert len(names) == 22


def test_connections(run: Run) -> None:
    title, heading, _, *rows = run("-c")
    assert title == "Connections"
    assert " ".join(heading.split()) == "connection cproc cpid mech auth connected idle msgIn msgOut"
    assert any(" ANONYMOUS " in row and " anonymous " in row for row in rows)


def test_exchanges(run: Run) -> None:
    title, heading, _, *rows = run("-e")
    assert title == "Exchanges"
    assert " ".join(heading.split()) == "exchange type dur bind msgIn msgOut msgDrop byteIn byteOut byteDrop"
    assert any(row.split()[:2] == ["amq.topic", "topic"] for row in rows)


def test_queues(run: Run, queue: str) -> None:
    title, heading, _, *rows = run("-q")
    assert title == "Queues"
    assert " ".join(heading.split()) == "queue dur autoDel excl msg msgIn msgOut bytes bytesIn bytesOut cons bind"
    (row,) = [row.split() for row in rows if queue in row]
    assert row[1:4] == ["2", "3", "1"]
    assert len(run("-q", "-S", "queue", "-I", "-L", "1")) == 4


def test_one_queue(run: Run, queue: str) -> None:
    lines = run("-q", queue)
    assert lines[0] == "Properties:"
    assert lines[1].split()[:3] == ["Name", "Durable", "AutoDelete"]
    assert lines[3].split()[:4] == [queue, "N", "N", "N"]
    assert lines[5] == "Optional Properties:"
    at = lines.index("Statistics:")
    figures = {line.split()[0]: line.split()[1] for line in lines[at + 3 :]}
    assert (figures["queue-depth"], figures["total-enqueues"], figures["total-dequeues"]) == ("2", "3", "1")
    assert figures["reroutes"] == "0"


def test_subscriptions(run: Run, url: str, queue: str) -> None:
    with Connection.establish(url, timeout=30) as connection:
        receiver = connection.session().receiver(queue)
        title, heading, _, *rows = run("-u")
        receiver.close()
    assert title == "Subscriptions"
    assert heading.split()[:5] == ["subscr", "queue", "conn", "procName", "procId"]
    found = [row.split() for row in rows if queue in row]
    assert found
    assert all(":" in conn for _, _, conn, *_ in found)
    # Each link once, though its broker may have objects of two classes for it.
    assert len({(name, conn) for name, _, conn, *_ in found}) == len(found)


def test_what_a_broker_does_not_have(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each view is there, or one line says that it is not."""
    for words, title in ((["-m"], "Broker Memory Statistics:"), (["--acl"], "ACL Policy Statistics:")):
        code = main([*words, "-b", url, "--timeout", "30"])
        out, err = capsys.readouterr()
        assert out.startswith(title) if code == 0 else err.count("\n") == 1
    assert main(["-q", "no such queue", "-b", url, "--timeout", "30"]) == 1
    assert capsys.readouterr().err == "Queue 'no such queue' not found\n"
    assert main(["-q", "-S", "colour", "-b", url, "--timeout", "30"]) == 1
    assert re.fullmatch(r"Failed: no column 'colour'; there are queue, dur, .*bind\n", capsys.readouterr().err)


VIEW = View("Queues", [TextColumn("queue"), TextColumn("msg", CellFormat.SHORT)], [["b", 5], ["a", None], ["c", 10]])


@pytest.mark.parametrize(
    ("sort_by", "increasing", "limit", "names"),
    [
        (None, False, None, "bac"),
        (None, False, 2, "ba"),
        ("msg", False, None, "cba"),
        ("msg", True, 2, "ab"),
        ("queue", True, None, "abc"),
    ],
)
def test_rows_are_sorted_and_limited(sort_by: str | None, increasing: bool, limit: int | None, names: str) -> None:
    view = arrange(VIEW, sort_by, increasing=increasing, limit=limit)
    assert "".join(str(row[0]) for row in view.rows) == names


@pytest.mark.parametrize(
    ("words", "reason"),
    [([], "one of these options is needed"), (["-g", "orders"], "only -q takes the name"), (["-q", "-L", "0"], "'0'")],
)
def test_wrong_usage(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err
