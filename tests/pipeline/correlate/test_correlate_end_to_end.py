"""End to end with real processes: a sample becomes one alert on the bus, whenever the job is killed."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.kills import kill_family
from pipeline.lakes import HERE, Shop
from pipeline.quick import WAIT_LIMIT
from support.processes import command, running
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.console import Broker, Console, Event, Session
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.alert_table import alerts
from qmf.pipeline.correlate.batch import evaluate_lake
from qmf.pipeline.correlate.batch_input import CorrelateOptions

pytestmark = pytest.mark.slow


HOST = """
[full]
kind = "threshold"
class = "qmf.host:memory"
value = "percent"
above = 0
message = "memory is used"

[silent]
kind = "absence"
of = "heartbeats"
agent = "qmf:host:*"
for = "3s"
"""

BUSY = '[busy]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\nclear = 3\nfor = "2s"'


class Watcher(Console):
    """Collects events of alerts: name, rule, id and the mark `again`."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, bool]] = []

    def event(self, broker: Broker, event: Event) -> None:
        key = event.getClassKey()
        if key is not None and key.getPackageName() == "qmf.pipeline":
            arguments = event.getArguments()
            self.seen.append(
                (key.getClassName(), str(arguments["rule"]), str(arguments["alertId"]), bool(arguments["again"]))
            )

    def rules(self, name: str) -> list[str]:
        return [rule for seen, rule, _, _ in self.seen if seen.endswith(name)]

    def published(self) -> list[tuple[str, str]]:
        """Ids and changes, each once."""
        return sorted({(key, name.removeprefix("alert").lower()) for name, _, key, _ in self.seen})


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.url


def correlate(lake: Path, rules: Path, *more: str) -> list[str]:
    common = ("--lake", str(lake), "--rules", str(rules), "--stream", "--every", "0.2s")
    return [command("qmf-pipeline"), "correlate", *common, *more]


def test_a_console_receives_alerts_about_a_real_agent(url: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(HOST)
    lake = tmp_path / "lake"
    watcher = Watcher()
    session = Session(watcher)
    record = [command("qmf-pipeline"), "record", "-b", url, "--lake", str(lake), "--interval", "0.5"]
    settings = Settings(interval=0.5, instance="alerts", selection=ProcessSelection.parse("none"))
    try:
        session.addBroker(url)
        with running(*record) as recorder:
            recorder.wait_for("Recording ")
            agent = EmbeddedHostAgent(url, settings=settings)
            agent.start()
            with running(*correlate(lake, rules, "--raise", "-b", url)) as job:
                job.wait_for("Following ")
                wait_until(lambda: watcher.rules("alertRaised") == ["full"], "the alert", WAIT_LIMIT)
                (shown,) = session.getObjects(_class="alert", _package="qmf.pipeline")
                assert (shown.message, shown.severity) == ("memory is used", 4)
                agent.close()
                wait_until(lambda: "silent" in watcher.rules("alertRaised"), "the alert of silence", WAIT_LIMIT)
                # The alerts of an agent that said goodbye end, but for that of its silence.
                assert watcher.rules("alertCleared") == ["full"]
                assert job.end() == 0
    finally:
        session.close()


def test_files_that_change_are_read_again_and_broken_ones_are_not(tmp_path: Path) -> None:
    rules, told = tmp_path / "rules.toml", tmp_path / "told.jsonl"
    notify = (
        '[route]\nreceiver = "{}"\ngroup_wait = 0\ngroup_interval = 0\n'
        '[[receiver]]\nname = "log"\nfile = {{path = "told.jsonl"}}\n'
    )

    def write(text: str) -> None:
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(rules)

    shop = Shop(tmp_path / "lake")
    at = int(time.time()) - 60
    shop.put((at, 0), queue=0)
    write(BUSY + "\n" + notify.format("log"))
    with running(*correlate(tmp_path / "lake", rules)) as job:
        job.wait_for("Following ")
        job.popen.send_signal(signal.SIGHUP)
        job.wait_for(f"Read {rules} again: 1 rules")
        # Something is wrong: what was read before stays, and a line says so.
        write(BUSY.replace("above", "abov") + "\n" + notify.format("nobody"))
        texts = ("the rules that were read before stay", "the notifications of before are kept")
        wait_until(lambda: all(any(text in line for line in job.said()) for text in texts), "both lines")
        assert all(line.startswith(f"{rules}:") for line in job.lines if line.endswith(texts))
        shop.put((at + 10, 0), (at + 13, 0), queue=6)
        job.wait_for("raised  busy")
        wait_until(lambda: told.exists() and '"busy"' in told.read_text(), "the notification")
        job.popen.send_signal(signal.SIGHUP)
        assert job.wait_for("that were read before stay").startswith(f"{rules}:1: busy: above: give either above")
        # Another name is another rule: the alert of the one before ends.
        write(BUSY.replace("[busy]", "[long]") + "\n" + notify.format("log"))
        job.wait_for(f"Read {rules} again: 1 rules")
        job.wait_for("cleared busy")
        shop.put((at + 20, 0), (at + 23, 0), queue=7)
        job.wait_for("raised  long")
        wait_until(lambda: '"long"' in told.read_text(), "the notification of the other rule")
        assert job.end() == 0


@pytest.fixture(params=["process", "spark"])
def place(request: pytest.FixtureRequest) -> list[str]:
    """Options for a stream in the process, and on a cluster."""
    found: list[str] = [] if request.param == "process" else request.getfixturevalue("local_cluster")
    return found


@pytest.mark.soak
def test_a_killed_stream_publishes_each_alert_once(url: str, tmp_path: Path, place: list[str]) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    rules = tmp_path / "rules.toml"
    rules.write_text(BUSY)
    shop = Shop(tmp_path / "lake")
    at = float(int(time.time()) - 3000)

    def more() -> None:
        nonlocal at
        for _ in range(chance.randint(3, 6)):
            shop.put((at, 0), (at + 3, 0), queue=6, object=chance.choice(["one", "two"]))
            shop.put((at + 4, 0), queue=0, object="one")
            shop.put((at + 4, 0), queue=0, object="two")
            at += 5

    watcher = Watcher()
    session = Session(watcher)
    job = correlate(tmp_path / "lake", rules, "--late", "0s", "--raise", "-b", url, *place)
    try:
        session.addBroker(url)
        more()
        with running(*job) as process:
            wait_until(lambda: watcher.seen, "a step", WAIT_LIMIT)
            more()
            # So that the kill comes at any point of its work.
            threading.Event().wait(chance.uniform(0, 3 if place else 0.3))
            kill_family(process)
        more()
        for path in shop.lake.paths():
            shop.lake.table(path).delta().optimize.compact()
        shop.put((at, 0), queue=0, object="end")
        with running(*job, "--once") as process:
            wait_until(lambda: process.popen.poll() is not None, "the end", WAIT_LIMIT)
            assert process.popen.returncode == 0, process.said()
        out = f"{shop.root}/_tables/correlate"
        rows = sorted((row["alert_id"], row["change"]) for row in alerts(out).to_pylist())
        options = CorrelateOptions(lake=shop.root, out=out, rules=parse_rules(BUSY), late=0)
        batch = evaluate_lake(HERE, options, lambda _text: None, until=round(at * 10**9))
        assert rows == sorted((item.alert_id, item.change) for item in batch.alerts)
        assert len(rows) > 10
        # On the bus: all of them, and none twice but with the mark.
        wait_until(lambda: watcher.published() == rows, "all alerts")
        fresh = [(key, name) for name, _, key, again in watcher.seen if not again]
        assert len(fresh) == len(set(fresh))
    finally:
        session.close()
