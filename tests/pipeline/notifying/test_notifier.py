"""Notifying in threads: delivery, failures, silences and configurations that change, restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest
from pipeline.notifying.servers import HttpLog, http_server
from support.waiting import wait_until

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.notifying.config import Integration, NotifyConfig
from qmf.pipeline.notifying.config_file import parse_config
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.muting import InhibitRule
from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.notifier import Notifier
from qmf.pipeline.notifying.overview import read_overview
from qmf.pipeline.notifying.receivers.base import NotificationSender, RefusedError, UnreachableError
from qmf.pipeline.notifying.receivers.http import WebhookConfig
from qmf.pipeline.notifying.silences import SilenceFile

S = 10**9
HOUR = 3600 * S

AT_ONCE = """
[route]
receiver = "ops"
group_by = "..."
group_wait = 0
group_interval = 0
[[receiver]]
name = "ops"
webhook = {url = "http://x"}
"""


def alert(id: str, at: int = 0, end: int | None = None, **labels: str) -> Alert:
    return Alert(id=id, incident=id, labels={"object": id, **labels}, starts_ns=at, ends_ns=end)


class FakeSender:
    """Records what is sent; fails as a test says, and waits for `gate`."""

    def __init__(self, seen: list[tuple[str, list[str], list[str]]]) -> None:
        self.seen = seen
        self.errors: list[Exception] = []
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False

    def send(self, notification: AlertNotification) -> str | None:
        assert self.gate.wait(30)
        if self.errors:
            raise self.errors.pop(0)
        firing, resolved = ([one.id for one in alerts] for alerts in (notification.firing, notification.resolved))
        self.seen.append((notification.integration, firing, resolved))
        return None

    def close(self) -> None:
        self.closed = True


class Job:
    """A notifier that can be restarted, with a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 100 * HOUR
        self.lines: list[str] = []
        self.seen: list[tuple[str, list[str], list[str]]] = []
        self.senders: dict[str, FakeSender] = {}
        self.config: NotifyConfig | PipelineError = parse_config(AT_ONCE)
        self.next_config: NotifyConfig | PipelineError | None = None
        self.notifier: Notifier | None = None
        self.start()

    def start(self) -> None:
        assert isinstance(self.config, NotifyConfig)
        self.notifier = Notifier(
            self.folder, self.config, self.make_sender, self.lines.append,
            changed_config=self.changed_config, max_age=HOUR, clock=lambda: self.now, poll=0.01,
        )  # fmt: skip

    def restart(self) -> None:
        self.running.close()
        self.start()

    @property
    def running(self) -> Notifier:
        assert self.notifier is not None
        return self.notifier

    def make_sender(self, config: Integration) -> NotificationSender:
        self.senders[config.key] = FakeSender(self.seen)
        return self.senders[config.key]

    def changed_config(self) -> NotifyConfig | None:
        config, self.next_config = self.next_config, None
        if isinstance(config, PipelineError):
            raise config
        return config

    def takes(self, *alerts: Alert, step: int | None = None) -> None:
        self.running.take(alerts, step)

    def shows(self, *expected: tuple[str, list[str], list[str]]) -> None:
        wait_until(lambda: len(self.seen) >= len(expected), f"{expected}, but there are {self.seen}")
        assert self.seen == list(expected)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = Job(tmp_path / "state")
    yield job
    job.running.close()


def soon(job: Job, condition: Callable[[], object], what: str) -> None:
    """Wait while the clock advances."""

    def looked() -> object:
        job.now += S
        return condition()

    wait_until(looked, what)


def test_a_step_is_taken_once_and_told_once(job: Job) -> None:
    job.takes(alert("1", job.now), step=1)
    job.shows(("ops/webhook/0", ["1"], []))
    job.takes(alert("1", job.now), alert("2", job.now), step=1)
    job.restart()
    assert job.running.step == 1
    job.takes(alert("1", job.now, job.now), step=2)
    job.shows(("ops/webhook/0", ["1"], []), ("ops/webhook/0", [], ["1"]))


def test_a_batch_does_not_tell_again_what_has_ended(job: Job) -> None:
    ended = [alert("1", job.now - 5), alert("1", job.now - 5, job.now)]
    job.takes(*ended)
    job.shows(("ops/webhook/0", [], ["1"]))
    assert job.running.drain(threading.Event(), 30)
    job.restart()
    job.takes(*ended, alert("2", job.now))
    job.shows(("ops/webhook/0", [], ["1"]), ("ops/webhook/0", ["2"], []))


def test_failures_have_a_line_and_are_tried_again(job: Job) -> None:
    job.senders["ops/webhook/0"].errors = [UnreachableError("no route"), RefusedError("bad"), OSError("a bug")]
    job.takes(alert("1", job.now, alertname="full"))
    soon(job, lambda: job.seen, "the delivery")
    assert job.lines == [
        "ops/webhook/0: not told of 1 firing (full): no route",
        "ops/webhook/0: not told of 1 firing (full): bad",
        "ops/webhook/0: not told of 1 firing (full): OSError: a bug",
    ]
    wait_until(lambda: job.running.counts() == "ops/webhook/0: 1 delivered, 3 failed", "the counts")


def test_what_was_not_delivered_is_told_after_a_restart(job: Job) -> None:
    job.senders["ops/webhook/0"].errors = [UnreachableError("no route")]
    job.takes(alert("1", job.now), step=1)
    wait_until(lambda: job.lines, "the failure")
    expected = "ops/webhook/0: 0 delivered, 1 failed; 1 alerts are still to be told"
    wait_until(lambda: job.running.counts() == expected, "the counts")
    job.restart()
    job.takes(alert("1", job.now, job.now), step=2)
    wait_until(lambda: job.seen, "the delivery")
    assert job.seen[-1] in [("ops/webhook/0", [], ["1"]), ("ops/webhook/0", ["1"], [])]


def test_a_silence_is_found_while_it_runs(job: Job) -> None:
    silences = SilenceFile(job.folder)
    added = silences.add(
        parse_matchers(["zone=x"]), start=0, end=job.now + 1000 * HOUR, created_by="me", comment="x", now=0
    )
    job.restart()  # so that it is known for sure
    job.takes(alert("1", job.now, zone="x"), alert("2", job.now, zone="y"))
    job.shows(("ops/webhook/0", ["2"], []))
    silences.expire(added.id, 1)
    soon(job, lambda: len(job.seen) > 1, "the end of the silence")
    assert job.seen[1:] == [("ops/webhook/0", ["1"], [])]
    silences.path.write_text("{}\n")
    soon(job, lambda: job.lines, "the complaint")
    assert "not a silence" in job.lines[0]
    job.takes(alert("3", job.now))
    wait_until(lambda: job.seen[-1] == ("ops/webhook/0", ["3"], []), "another alert")


def test_another_configuration_without_a_restart(job: Job) -> None:
    job.takes(alert("1", job.now))
    job.shows(("ops/webhook/0", ["1"], []))
    old = job.senders["ops/webhook/0"]
    text = AT_ONCE.replace("http://x", "http://y") + 'file = {path = "alerts"}\n'
    job.next_config = parse_config(text)
    soon(job, lambda: len(job.seen) > 1, "the new receiver")
    assert job.seen[1:] == [("ops/file/0", ["1"], [])]
    assert old.closed
    assert job.senders["ops/webhook/0"] is not old
    job.next_config = PipelineError("notify.toml:1: wrong")
    soon(job, lambda: job.lines, "the complaint")
    assert job.lines == ["notify.toml:1: wrong; the notifications of before are kept"]
    job.takes(alert("1", job.now, job.now))
    wait_until(lambda: len(job.seen) == 4, "the end")


def test_a_configuration_changes_while_a_receiver_is_busy(job: Job) -> None:
    busy = job.senders["ops/webhook/0"]
    busy.gate.clear()
    job.takes(alert("1", job.now), alert("2", job.now))
    job.next_config = parse_config(AT_ONCE.replace("http://x", "http://y"))
    threading.Timer(0.2, busy.gate.set).start()
    soon(job, lambda: {firing[0] for _, firing, _ in job.seen} == {"1", "2"}, "both alerts")


def test_inhibition_of_the_rules_where_the_configuration_has_none(job: Job) -> None:
    dead = InhibitRule(source=parse_matchers(["dead=yes"]), target=parse_matchers(["dead!=yes"]))
    job.running.close()
    job.config = attrs.evolve(parse_config(AT_ONCE), inhibit=(dead,))
    job.start()
    job.takes(alert("1", job.now, dead="yes"), alert("2", job.now), alert("3", job.now))
    job.shows(("ops/webhook/0", ["1"], []))
    assert job.running.drain(threading.Event(), 30)


def test_an_end_of_a_short_time_ago_inhibits_after_a_restart_too(job: Job) -> None:
    dead = InhibitRule(source=parse_matchers(["dead=yes"]), target=parse_matchers(["dead!=yes"]), outlast=60 * S)
    job.running.close()
    job.config = attrs.evolve(parse_config(AT_ONCE), inhibit=(dead,))
    job.start()
    job.takes(alert("1", job.now, dead="yes"), alert("2", job.now), step=1)
    job.shows(("ops/webhook/0", ["1"], []))
    job.takes(alert("1", job.now, job.now, dead="yes"), step=2)
    wait_until(lambda: len(job.seen) == 2, "the end")

    def shown() -> str:
        return next(one.state for one in read_overview(job.folder, (), job.now).alerts if one.alert.id == "2")

    assert shown() == "inhibited"
    job.restart()
    job.now += 59 * S
    assert job.running.drain(threading.Event(), 30)
    assert len(job.seen) == 2
    assert shown() == "inhibited"
    job.now += 2 * S
    assert shown() == "firing"
    assert job.running.drain(threading.Event(), 30)
    assert job.seen[2:] == [("ops/webhook/0", ["2"], [])]


def test_alerts_of_the_past_wait_for_the_present(job: Job) -> None:
    job.takes(alert("1", 0), alert("2", 0), alert("2", 0, HOUR), step=1)
    job.running.release()
    job.shows(("ops/webhook/0", ["1"], []))
    job.running.release()


def test_the_end_of_a_job_waits_for_groups_and_receivers(job: Job) -> None:
    job.running.close()
    slow = AT_ONCE.replace("group_wait = 0", 'group_wait = "1h"')
    job.config = parse_config(slow)
    job.start()
    job.takes(alert("1", job.now))
    assert job.running.drain(threading.Event(), 30)
    job.shows(("ops/webhook/0", ["1"], []))
    job.senders["ops/webhook/0"].errors = [UnreachableError("no route")] * 100
    job.takes(alert("2", job.now))
    assert not job.running.drain(threading.Event(), 0.1)
    stop = threading.Event()
    stop.set()
    assert not job.running.drain(stop, 30)


def test_details_of_the_beginning_are_kept_for_the_end(tmp_path: Path, job: Job) -> None:
    found: list[object] = []

    class Detailed(FakeSender):
        def send(self, notification: AlertNotification) -> str | None:
            found.extend(dict(one.detail) for one in notification.alerts)
            return None

    notifier = Notifier(
        tmp_path / "other", parse_config(AT_ONCE), lambda _config: Detailed([]), job.lines.append,
        clock=lambda: job.now,
    )  # fmt: skip
    try:
        raised = attrs.evolve(alert("1", job.now), detail={"raised": 1})
        notifier.take([raised, attrs.evolve(raised, ends_ns=job.now, detail={"cleared": 2})])
        wait_until(lambda: found, "the notification")
        assert found == [{"raised": 1, "cleared": 2}]
    finally:
        notifier.close()


def test_another_severity_is_another_alert_of_the_same_incident(job: Job) -> None:
    def at(severity: str, end: int | None = None) -> Alert:
        return attrs.evolve(alert("1", job.now, end, severity=severity), id=f"1 {severity}", detail={severity: 1})

    job.takes(at("warn"), step=1)
    job.shows(("ops/webhook/0", ["1 warn"], []))
    job.takes(at("crit"), step=2)
    wait_until(lambda: len(job.seen) == 3, "both alerts")
    assert sorted(job.seen[1:]) == [("ops/webhook/0", [], ["1 warn"]), ("ops/webhook/0", ["1 crit"], [])]
    job.restart()
    job.takes(at("warn", job.now), step=3)  # whatever severity its end has
    wait_until(lambda: len(job.seen) == 4, "the end")
    assert job.seen[3] == ("ops/webhook/0", [], ["1 crit"])


def test_two_cannot_notify_from_one_folder(job: Job) -> None:
    with pytest.raises(LakeError, match="another process notifies"):
        Notifier(job.folder, parse_config(AT_ONCE), job.make_sender, job.lines.append)


# -- with a real server, whatever happens to it


@pytest.fixture
def http() -> Iterator[HttpLog]:
    with http_server() as log:
        yield log


def test_every_alert_is_told_though_the_server_fails_and_the_job_is_restarted(tmp_path: Path, http: HttpLog) -> None:
    config = parse_config(AT_ONCE.replace("http://x", http.url))
    now = [100 * HOUR]
    lines: list[str] = []

    def start() -> Notifier:
        return Notifier(tmp_path, config, make, lines.append, clock=lambda: now[0], poll=0.01)

    def make(integration: Integration) -> NotificationSender:
        assert isinstance(integration.settings, WebhookConfig)
        return integration.settings.make_sender()

    http.answers = [503, 400, 200, 500, 200, 200, 429] * 3
    notifier = start()
    try:
        for step in range(1, 31):
            ended = [alert(str(step - 10), now[0], now[0])] if step > 10 else []
            notifier.take([alert(str(step), now[0]), *ended], step)
            now[0] += 500 * S
            if step % 7 == 0:
                notifier.close()
                notifier = start()

        def believed() -> set[str]:
            now[0] += 10 * S
            state: dict[str, str] = {}
            for content in list(http.accepted):
                for one in content["alerts"]:
                    state[one["labels"]["object"]] = one["status"]
            return {name for name, status in state.items() if status == "firing"}

        expected = {str(number) for number in range(1, 31) if number > 20}
        wait_until(lambda: believed() == expected and notifier.drain(threading.Event(), 0.1), "what is true")
        assert lines
    finally:
        notifier.close()
