"""The notifications of a job: rows of the table of alerts, the configuration's file, the bus."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest
from pipeline.notifying.servers import HttpLog, http_server
from support.waiting import wait_until

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.config import bus_config
from qmf.pipeline.notifying.config_file import ConfigSource
from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.receivers.base import BusSender, UnreachableError, with_row

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.notifying.notifier import JobNotifier

S = 10**9

RULES = """
[dead]
kind = "absence"
of = "heartbeats"
for = "30s"
[full]
kind = "threshold"
class = "p:c"
value = "v"
above = 1
"""

ROW = AlertRow(
    alert_id="1", change="raised", rule="full", rule_hash="h", kind="threshold", severity=4, subject="a, o", agent="a",
    object="o", message="it is full", reason="", value=2.0, began_ns=5, at_ns=7, window_start_ns=5, window_end_ns=7,
    evidence="[]",
)  # fmt: skip
CLEARED = attrs.evolve(ROW, change="cleared", at_ns=9, reason="good again")
DEAD = attrs.evolve(ROW, alert_id="2", rule="dead", kind="absence", subject="a", object=None, message="it is dead")


def test_the_bus_gets_the_rows_of_each_alert_in_order() -> None:
    seen: list[Sequence[AlertRow]] = []

    def publish(rows: Sequence[AlertRow]) -> bool:
        seen.append(rows)
        return len(seen) == 1

    raised = with_row(ROW)
    both = attrs.evolve(with_row(CLEARED), detail={**raised.detail, "cleared": attrs.asdict(CLEARED)})
    dead = with_row(DEAD)
    notification = AlertNotification(
        integration="bus/bus/0", receiver="bus", group_key="", group_labels={}, firing=(dead,), resolved=(both,), at=0
    )
    BusSender(publish).send(notification)
    assert seen == [[ROW, DEAD, CLEARED]]
    with pytest.raises(UnreachableError, match="the job ended"):
        BusSender(publish).send(notification)
    with pytest.raises(UnreachableError, match="restart it"):
        BusSender(None).send(notification)


# -- where the configuration comes from

CONFIG = """
[route]
receiver = "hook"
group_wait = 0
group_interval = 0
[[receiver]]
name = "hook"
webhook = {url = "URL"}
"""


@pytest.fixture
def http() -> Iterator[HttpLog]:
    with http_server() as log:
        yield log


def write(path: Path, text: str) -> Path:
    """Replace a file, as editors do, so that nobody reads half of it."""
    new = path.with_suffix(".new")
    new.write_text(text)
    return new.replace(path)


def test_the_configuration_is_in_either_file_or_none(tmp_path: Path) -> None:
    rules = write(tmp_path / "rules.toml", RULES)
    notify = write(tmp_path / "notify.toml", CONFIG.replace("URL", "http://x"))
    assert ConfigSource(notify=None, rules=rules, publish=False).read() is None
    assert ConfigSource(notify=None, rules=rules, publish=True).read() == bus_config()
    own = ConfigSource(notify=notify, rules=rules, publish=False).read()
    assert own is not None
    assert list(own.integrations) == ["hook/webhook/0"]
    both = ConfigSource(notify=notify, rules=rules, publish=True).read()
    assert both is not None
    assert list(both.integrations) == ["hook/webhook/0", "bus/bus/0"]
    write(rules, RULES + CONFIG.replace("URL", "http://y"))
    assert [rule.name for rule in parse_rules(rules.read_text())] == ["dead", "full"]
    inside = ConfigSource(notify=None, rules=rules, publish=False).read()
    assert inside is not None
    assert list(inside.integrations) == ["hook/webhook/0"]
    with pytest.raises(PipelineError, match="only one file may have them"):
        ConfigSource(notify=notify, rules=rules, publish=False)
    with pytest.raises(PipelineError, match="No such file"):
        ConfigSource(notify=None, rules=tmp_path / "gone", publish=False)


def test_a_changed_file_is_read_once(tmp_path: Path) -> None:
    rules = write(tmp_path / "rules.toml", RULES)
    notify = write(tmp_path / "notify.toml", CONFIG.replace("URL", "http://x"))
    source = ConfigSource(notify=notify, rules=rules, publish=False)
    before = source.read()
    assert source.read_changed() is None
    write(notify, CONFIG.replace("URL", "http://other"))
    after = source.read_changed()
    assert after is not None
    assert after != before
    assert source.read_changed() is None
    write(notify, "[route]\n")
    with pytest.raises(PipelineError, match=r"notify\.toml:1: route: receiver is missing"):
        source.read_changed()
    notify.unlink()
    assert source.read_changed() is None


# -- a job


class Alerts:
    """Makes a notifier with a file and a webhook."""

    def __init__(self, folder: Path, http: HttpLog) -> None:
        self.folder = folder
        self.http = http
        self.lines: list[str] = []
        self.rules = write(folder / "rules.toml", RULES)
        self.notify = write(folder / "notify.toml", CONFIG.replace("URL", http.url))

    def start(self) -> JobNotifier:
        source = ConfigSource(notify=self.notify, rules=self.rules, publish=False)
        config = source.read()
        assert config is not None
        return JobNotifier(
            self.folder / "state", source, config, parse_rules(RULES), self.lines.append, max_age=1 << 62
        )

    def told(self) -> list[tuple[str, str]]:
        return sorted(
            (one["labels"]["alertname"], one["status"]) for content in self.http.accepted for one in content["alerts"]
        )


def test_a_dead_agent_raises_one_alert(tmp_path: Path, http: HttpLog) -> None:
    alerts = Alerts(tmp_path, http)
    job = alerts.start()
    try:
        job.report_batch([DEAD, ROW])
        job.finish(threading.Event())
        assert alerts.told() == [("dead", "firing")]
        job.replace_rules(parse_rules(RULES[RULES.index("[full]") :]))
        wait_until(lambda: ("full", "firing") in alerts.told(), "the other alert, since nothing inhibits it now")
        job.report_batch([attrs.evolve(CLEARED, at_ns=100), attrs.evolve(DEAD, change="cleared", at_ns=100)])
        wait_until(lambda: ("full", "resolved") in alerts.told(), "the end")
        assert alerts.lines == []
    finally:
        job.close()


def test_all_kinds_of_receivers_and_a_change_of_the_file(tmp_path: Path, http: HttpLog) -> None:
    alerts = Alerts(tmp_path, http)
    job = alerts.start()
    try:
        more = f"""
        file = {{path = "alerts.jsonl"}}
        alertmanager = {{url = "{http.url}"}}
        bus = true
        mail = {{to = "a@b", from = "a@b", smarthost = "127.0.0.1:1"}}
        """
        write(alerts.notify, CONFIG.replace("URL", f"{http.url}/hook") + more)
        wait_until(lambda: "Read the configuration of notifications again" in alerts.lines, "the change")
        job.report_batch([ROW])
        file = tmp_path / "alerts.jsonl"
        wait_until(lambda: file.exists() and file.read_text().endswith("\n"), "the file")
        assert json.loads(file.read_text())["annotations"] == {"summary": "it is full"}
        wait_until(lambda: {path for path, _, _ in http.requests} == {"/hook", "/api/v2/alerts"}, "both requests")
        wait_until(lambda: any("hook/bus/0: not told" in line for line in alerts.lines), "the failure of the bus")
        wait_until(lambda: any("hook/mail/0: not told" in line for line in alerts.lines), "the failure of mail")
    finally:
        job.close()


def test_what_a_job_cannot_tell_at_its_end_is_said(
    tmp_path: Path, http: HttpLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmf.pipeline.notifying.notifier.WAIT_LIMIT", 0.1)
    alerts = Alerts(tmp_path, http)
    http.answers = [503] * 100
    job = alerts.start()
    try:
        job.report_batch([ROW])
        job.finish(threading.Event())
        assert any(line.startswith("Not everybody was notified; the next run goes on. ") for line in alerts.lines)
    finally:
        job.close()
    http.answers = []
    job = alerts.start()
    try:
        wait_until(lambda: alerts.told() == [("full", "firing")], "the next run")
    finally:
        job.close()
