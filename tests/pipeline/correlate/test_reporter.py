"""Alerts on the bus: each published once, or again with a mark if it was unconfirmed; open alerts are objects."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.waiting import until

from qmf.broker import EmbeddedBroker
from qmf.console.aio import Client, EventRaised
from qmf.console.typed import TypedEvent, typed_event
from qmf.errors import QmfError
from qmf.models.pipeline import console as model
from qmf.pipeline import LakeError
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.reporter import MAX_EVIDENCE, AlertAgent, AlertLedger, CorrelationReporter, publish_once
from qmf.schema import Severity

HOUR = 3600 * 10**9

RULES = parse_rules('[full]\nkind = "threshold"\nclass = "disk"\nvalue = "percent"\nabove = 90\nseverity = "error"')

RAISED = AlertRow(
    alert_id="1",
    change="raised",
    rule="full",
    rule_hash=RULES[0].hash,
    kind="threshold",
    severity=3,
    subject="a, o",
    agent="a",
    object="o",
    message="o is 91 % full",
    reason="",
    value=91.0,
    began_ns=9 * HOUR,
    at_ns=10 * HOUR,
    window_start_ns=9 * HOUR,
    window_end_ns=10 * HOUR,
    evidence='[{"time": "1970", "run": "r", "seq": 1, "value": 91.0}]',
)
CLEARED = attrs.evolve(RAISED, change="cleared", at_ns=10 * HOUR + 5, reason="back at 89", evidence="[]")


def other(number: int, of: AlertRow = RAISED, **values: Any) -> AlertRow:
    return attrs.evolve(of, alert_id=str(number), **values)


class Killed(BaseException):
    """Stands for a kill of the process."""


class FakeSink:
    """Records what is published; raises `Killed` where a test asks for it."""

    def __init__(self) -> None:
        self.published: list[tuple[str, bool]] = []
        self.answer = True
        self.dies_before = self.dies_after = False

    def publish(self, alerts: Sequence[AlertRow], stop: threading.Event, *, again: bool = False) -> bool:
        if self.dies_before:
            raise Killed
        self.published += [(alert.key, again) for alert in alerts]
        if self.dies_after:
            raise Killed
        return self.answer


class Job:
    """A sink with its ledger, which can be restarted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sink = FakeSink()
        self.start()

    def start(self) -> None:
        self.ledger = AlertLedger(self.path)

    def restart(self) -> None:
        """As after a kill."""
        self.ledger.close()
        self.start()
        assert self.publish([])

    def publish(self, alerts: Sequence[AlertRow]) -> bool:
        return publish_once(self.sink, self.ledger, alerts, threading.Event())


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "published" / "ledger.jsonl")
    yield job
    job.ledger.close()


def test_each_alert_is_published_once_however_often_it_is_found(job: Job) -> None:
    assert job.publish([RAISED])
    job.restart()
    assert list(job.ledger.open) == ["1"]
    assert job.publish([RAISED, CLEARED])
    job.restart()
    assert job.publish([RAISED, CLEARED])
    assert job.sink.published == [("1 raised", False), ("1 cleared", False)]
    assert job.ledger.open == {}


@pytest.mark.parametrize("moment", ["dies_before", "dies_after"])
def test_unconfirmed_alerts_are_published_again_with_a_mark(job: Job, moment: str) -> None:
    setattr(job.sink, moment, True)
    with pytest.raises(Killed):
        job.publish([RAISED])
    setattr(job.sink, moment, False)
    job.sink.published.clear()
    job.restart()
    assert job.sink.published == [("1 raised", True)]
    job.restart()
    assert job.publish([RAISED])
    assert job.sink.published == [("1 raised", True)]


def test_after_a_stop_without_a_broker_alerts_are_unconfirmed(job: Job) -> None:
    job.sink.answer = False
    assert not job.publish([RAISED])
    job.sink.answer = True
    job.restart()
    assert job.sink.published[-1] == ("1 raised", True)


def test_a_line_that_a_kill_cut_off_was_not_written(job: Job) -> None:
    job.publish([RAISED])
    job.ledger.close()
    whole = job.path.read_bytes()
    for cut in range(len(whole)):
        job.path.write_bytes(whole[:cut])
        job.sink.published.clear()
        job.start()
        assert job.publish([])
        assert job.publish([RAISED])
        assert list(job.ledger.open) == ["1"]
        assert len(job.sink.published) <= 1
        job.ledger.close()
    job.start()


def test_a_file_that_is_not_a_ledger_is_an_error(job: Job) -> None:
    job.ledger.close()
    job.path.write_text('{"end": ["unknown"]}\n')
    with pytest.raises(LakeError, match=r"ledger\.jsonl:1: not a ledger"):
        AlertLedger(job.path)
    job.path.write_text("")
    job.start()


def test_order_is_by_time_and_a_raise_comes_before_its_end() -> None:
    same = attrs.evolve(CLEARED, at_ns=RAISED.at_ns)
    assert in_order([CLEARED, same, RAISED]) == [RAISED, same, CLEARED]


# -- on a bus


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.url


class Listener:
    """A console that keeps the events of alerts."""

    def __init__(self, url: str) -> None:
        self.client = Client(url, discover=True)
        self.events: list[TypedEvent] = []
        self.client.listen(self._hear)

    def _hear(self, news: object) -> None:
        if isinstance(news, EventRaised):
            for kind in (model.AlertRaised, model.AlertCleared, model.AlertAcknowledged):
                event = typed_event(news.event, kind)
                if event is not None:
                    self.events.append(event)

    async def objects(self) -> list[model.Alert]:
        """The open alerts."""
        return list(await self.client.objects(model.Alert))


@pytest.mark.slow
async def test_alerts_are_events_and_objects_of_an_agent(url: str, tmp_path: Path) -> None:
    ledger = AlertLedger(tmp_path / "ledger.jsonl")
    stop = threading.Event()
    listener = Listener(url)
    async with listener.client:
        agent = await asyncio.to_thread(_agent, url, ledger)
        try:
            assert agent.name == "qmf:correlate:box"
            await until(lambda: any(a.name == agent.name for a in listener.client.agents), "the agent")
            long = "[" + ",".join(f'{{"seq": {n}}}' for n in range(MAX_EVIDENCE + 5)) + "]"
            first = [RAISED, other(2, message="m" * 90_000, evidence=long, agent=None)]
            assert await asyncio.to_thread(publish_once, agent, ledger, first, stop)
            await until(lambda: len(listener.events) == 2, "both events")
            raised, clipped = listener.events
            assert isinstance(raised, model.AlertRaised)
            assert isinstance(clipped, model.AlertRaised)
            assert (raised.alertId, raised.rule, raised.subject, raised.message, raised.again) == (
                "1", "full", "a, o", "o is 91 % full", False,
            )  # fmt: skip
            assert raised.severity == Severity.ERROR
            assert raised.evidence["rows"] == [{"time": "1970", "run": "r", "seq": 1, "value": 91.0}]
            assert clipped.evidence["leftOut"] == 5
            assert len(clipped.message) == 60_000
            shown = {item.alertId: item for item in await listener.objects()}
            assert (shown["1"].agentName, shown["1"].objectName, shown["2"].agentName) == ("a", "o", None)
            assert shown["1"].acknowledgedBy is None
            with pytest.raises(QmfError, match="give the name of the operator"):
                await shown["1"].acknowledge(" ", "")
            await shown["1"].acknowledge("me", "on my way")
            await until(lambda: len(listener.events) == 3, "the acknowledgement")
            assert await asyncio.to_thread(publish_once, agent, ledger, [attrs.evolve(CLEARED, alert_id="2")], stop)
            await until(lambda: len(listener.events) == 4, "the end of the alert")
            assert [type(event) for event in listener.events[2:]] == [model.AlertAcknowledged, model.AlertCleared]
            assert listener.events[3].severity == Severity.INFORM
        finally:
            await asyncio.to_thread(agent.close)
            ledger.close()
        # After a restart, open alerts are objects with their acknowledgements, and no event is repeated.
        ledger = AlertLedger(tmp_path / "ledger.jsonl")
        agent = await asyncio.to_thread(_agent, url, ledger)
        try:
            await until(lambda: any(a.name == agent.name for a in listener.client.agents), "the agent again")
            (left,) = await listener.objects()
            assert (left.alertId, left.acknowledgedBy, left.note) == ("1", "me", "on my way")
            (rule,) = await listener.client.objects(model.Rule)
            assert rule.open.value == 1
            assert len(listener.events) == 4
        finally:
            await asyncio.to_thread(agent.close)
            ledger.close()


def _agent(url: str, ledger: AlertLedger) -> AlertAgent:
    return AlertAgent(url, RULES, ledger, lake="lake", late=1, instance="box")


@pytest.mark.slow
def test_a_stop_ends_the_waiting_for_a_broker(tmp_path: Path) -> None:
    broker = EmbeddedBroker()
    broker.start()
    ledger = AlertLedger(tmp_path / "ledger.jsonl")
    agent = _agent(broker.url, ledger)
    stop = threading.Event()
    try:
        broker.close()
        threading.Timer(0.1, stop.set).start()
        assert not publish_once(agent, ledger, [RAISED], stop)
        assert list(ledger.unconfirmed) == [RAISED.key]
    finally:
        agent.close()
        ledger.close()


def test_a_reporter_that_cannot_be_made_closes_its_ledger(tmp_path: Path) -> None:
    with pytest.raises(QmfError):
        CorrelationReporter("http://x", RULES, str(tmp_path), threading.Event(), lake="lake", late=1, instance="box")
    gc.collect()  # a file that is left open would warn
