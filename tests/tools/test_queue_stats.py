"""`qpid-queue-stats`."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.managed_brokers import unique
from support.waiting import WAIT_LIMIT

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent, Queue
from qmf.messaging import Connection
from qmf.tools.queue_stats import HEADING, QueueRates, main


def queue(name: str, enqueued: int, dequeued: int) -> Queue:
    values: dict[str, Any] = {
        "name": name,
        "msgTotalEnqueues": enqueued,
        "msgTotalDequeues": dequeued,
        "msgDepth": enqueued - dequeued,
    }
    return Queue(None, {"_values": values})  # type: ignore[arg-type]


def test_rates_of_what_changed() -> None:
    rates = QueueRates()
    assert list(rates.lines([queue("a", 10, 0), queue("b", 5, 5)], 100.0)) == []
    (line,) = rates.lines([queue("a", 30, 10), queue("b", 5, 5), queue("new", 1, 0)], 110.0)
    assert line == f"{'a':<41}{10.0:10.2f}{20:11d}{2.0:13.2f}{1.0:13.2f}"
    assert len(line) == len(HEADING)
    assert list(rates.lines([queue("a", 30, 10)], 120.0)) == []
    rates.clear()
    assert list(rates.lines([queue("a", 50, 10)], 130.0)) == []


def test_only_queues_that_match() -> None:
    rates = QueueRates([re.compile("ord"), re.compile("x.z")])
    names = ["orders", "xyz", "my-orders"]
    list(rates.lines([queue(name, 0, 0) for name in names], 1.0))
    lines = list(rates.lines([queue(name, 1, 0) for name in names], 2.0))
    assert [line.split()[0] for line in lines] == ["orders", "xyz"]


def test_a_queue_of_a_broker(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    name = unique("stats")
    with (
        BrokerAgent.connect(url, timeout=WAIT_LIMIT) as broker,
        Connection.establish(url, timeout=WAIT_LIMIT) as connection,
    ):
        broker.addQueue(name)
        sender = connection.session().sender(name)
        # What happens between two samples.
        monkeypatch.setattr("qmf.tools.queue_stats.sleep", lambda _seconds: sender.send("one"))
        assert main(["-a", url, "-f", name, "-n", "1"]) == 0
        broker.delQueue(name, if_empty=False, if_unused=False)
    heading, line, row = capsys.readouterr().out.splitlines()
    assert (heading, line) == (HEADING, "=" * len(HEADING))
    assert row.split()[0] == name
    assert row.split()[2] == "1"


def test_queues_of_the_tool_itself_are_left_out(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The answers to the tool itself come to a queue.
    monkeypatch.setattr("qmf.tools.queue_stats.sleep", lambda _seconds: None)
    assert main(["-a", url, "-n", "1"]) == 0
    assert "qmf-in-" not in capsys.readouterr().out
    assert main(["-a", url, "-n", "1", "--all"]) == 0
    assert "qmf-in-" in capsys.readouterr().out


def test_it_goes_on_with_a_broker_that_has_restarted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = EmbeddedBroker(management=3600.0)
    first.start()
    second = EmbeddedBroker(port=first.port, management=3600.0)
    steps = [second.start, first.close]
    monkeypatch.setattr("qmf.tools.queue_stats.sleep", lambda _seconds: steps.pop()() if steps else None)
    try:
        assert main(["-a", first.url, "-n", "1"]) == 0
    finally:
        first.close()
        second.close()
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("*** Broker connection lost - ")
    assert err[1] == "*** Broker connected"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["-f", "("], "is not a regular expression"),
        (["-i", "0"], "is not a number of seconds"),
        (["x"], "unrecognized"),
    ],
)
def test_wrong_usage(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err
