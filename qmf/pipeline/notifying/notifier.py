"""Notifies in threads of its own while a job runs: dispatcher, state file, silences and workers of one folder."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from qmf.errors import QmfError
from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.config import SECOND, Integration, NotifyConfig
from qmf.pipeline.notifying.dispatcher import NEVER, Dispatcher
from qmf.pipeline.notifying.muting import default_inhibition
from qmf.pipeline.notifying.notification import AlertNotification, NotificationOutcome
from qmf.pipeline.notifying.receivers.base import BusConfig, BusSender, NotificationSender, RefusedError, with_row
from qmf.pipeline.notifying.silences import SilenceFile
from qmf.pipeline.notifying.state import (
    ENDED_TEXT,
    INHIBIT_TEXT,
    PENDING_TEXT,
    STEP_TEXT,
    SentState,
    StateFile,
    read_ended,
)

if TYPE_CHECKING:
    from qmf.pipeline.correlate.alert_table import AlertTable
    from qmf.pipeline.correlate.alerts import AlertRow
    from qmf.pipeline.correlate.reporter import CorrelationReporter
    from qmf.pipeline.correlate.rule_stream import StepResult
    from qmf.pipeline.correlate.rules import Rule
    from qmf.pipeline.notifying.config_file import ConfigSource

_LOGGER = logging.getLogger(__name__)

#: Seconds between looks at the files of silences and of the configuration.
POLL = 1.0

#: Seconds that alerts are remembered after their end, so that a batch over old days doesn't notify them again.
_REMEMBERED = 400 * 86_400


class Notifier:
    """Notifies from when it is made until `close`. Methods may be called from any thread.

    They raise `LakeError` where another process notifies from the folder, or the state can't be written.
    """

    def __init__(
        self,
        folder: Path,
        config: NotifyConfig,
        make_sender: Callable[[Integration], NotificationSender],
        print_line: Callable[[str], None],
        *,
        changed_config: Callable[[], NotifyConfig | None] = lambda: None,
        max_age: int = NEVER,
        clock: Callable[[], int] = time.time_ns,
        poll: float = POLL,
    ) -> None:
        """Continue from the state in a folder of this machine.

        Failures and changes of files are printed; `changed_config` is asked for another configuration, None for no
        change, at each look at files; `max_age` in ns is as of `Dispatcher`.
        """
        self._make_sender, self._print_line = make_sender, print_line
        self._changed_config, self._clock = changed_config, clock
        self._silences = SilenceFile(folder)
        self._config = config
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._idle = threading.Condition(self._lock)
        self._closing = False
        self._poll_time = poll
        self._polled_at = -float("inf")
        self._complaint = ""
        self._pending = "[]"
        #: What sends for each integration, and its thread. The dispatcher bounds what waits there.
        self._workers: dict[str, tuple[Integration, NotificationSender, ThreadPoolExecutor]] = {}
        self._store = StateFile(folder)
        try:
            self._state = self._store.load()
            self._step = int(self._store.text(STEP_TEXT) or 0)
            self._store.forget_finished(clock() // SECOND - _REMEMBERED)
            self._store_inhibition()
            ended = read_ended(self._store.text(ENDED_TEXT))
            self._dispatcher = Dispatcher(config, self._state, clock(), max_age=max_age, ended=ended)
        except BaseException:
            self._store.close()
            raise
        self._start_workers()
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    @property
    def step(self) -> int:
        """The last step that was taken."""
        return self._step

    def take(self, alerts: Sequence[Alert], step: int | None = None) -> None:
        """Take the changes of a step, or those that a batch found, in order; they are stored when this returns.

        A step that was taken before is ignored; None for a batch.
        """
        with self._lock:
            if step is not None and step <= self._step:
                return
            if step is None:
                finished = self._store.finished_incidents([alert.incident for alert in alerts])
                alerts = [alert for alert in alerts if alert.incident not in finished]
            self._dispatcher.update(self._link_incidents(alerts), self._clock())
            ended = [alert.incident for alert in alerts if alert.ends_ns is not None]
            texts = {} if step is None else {STEP_TEXT: str(step)}
            if ended and self._dispatcher.ended:
                texts[ENDED_TEXT] = json.dumps([[attrs.asdict(alert), at] for alert, at in self._dispatcher.ended])
            self._store.save(self._state, ended, **texts)
            self._step = self._step if step is None else step
        self._changed.set()

    def set_pending(self, alerts: Sequence[Alert]) -> None:
        """The alerts that may fire later; only shown, by `qmf-pipeline alerts`."""
        text = json.dumps([attrs.asdict(alert) for alert in alerts])
        with self._lock:
            if text != self._pending:
                self._store.save(self._state, **{PENDING_TEXT: text})
                self._pending = text

    def release(self) -> None:
        """The job has reached the present: notify alerts of the past that still fire."""
        with self._lock:
            if not self._state.held:
                return
            self._dispatcher.release(self._clock())
            self._store.save(self._state)
        self._changed.set()

    def drain(self, stop: threading.Event, timeout: float) -> bool:
        """Send what waits for its group's time at once, because the job ends; True when everybody was told everything.

        This waits until `stop`, or for `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            self._dispatcher.hurry(self._clock())
        self._changed.set()
        with self._idle:
            while not self._is_done() and not stop.is_set() and time.monotonic() < deadline:
                self._idle.wait(0.1)
            return self._is_done()

    def counts(self) -> str:
        """What happened with notifications, for people: one line."""
        with self._lock:
            parts = [
                f"{key}: {counts.delivered} delivered, {counts.failed} failed"
                for key, counts in sorted(self._state.counts.items())
            ]
            owed = sum(
                any(told is not SentState.FIRING for told in entries.values()) for entries in self._state.told.values()
            )
        if owed:
            parts.append(f"{owed} alerts are still to be told")
        return "; ".join(parts)

    def close(self) -> None:
        """Stop notifying; what was not delivered is at the next start."""
        self._closing = True
        self._changed.set()
        self._thread.join()
        self._stop_workers(list(self._workers))
        self._store.close()

    # -- the thread

    def _run(self) -> None:
        while not self._closing:
            self._changed.clear()
            now = self._clock()
            try:
                if time.monotonic() - self._polled_at >= self._poll_time / 2:
                    self._polled_at = time.monotonic()
                    self._poll()
                with self._lock:
                    now = self._clock()
                    found = self._dispatcher.due(now)
                    self._store.save(self._state)
                    self._idle.notify_all()
                self._complaint = ""
            except PipelineError as error:
                self._complain(str(error))
                found, wait = [], NEVER
            else:
                wait = self._dispatcher.next_at() - now
            for notification in found:
                if (worker := self._workers.get(notification.integration)) is not None:
                    worker[2].submit(self._send, worker[1], notification)
            self._changed.wait(min(max(0, wait) / SECOND, self._poll_time))

    def _poll(self) -> None:
        """Look for other silences and another configuration."""
        try:
            silences = self._silences.read_changed()
            if silences is not None:
                with self._lock:
                    self._dispatcher.set_silences(silences)
        except PipelineError as error:
            self._print_line(f"{error}; the silences of before are kept")
        try:
            config = self._changed_config()
        except PipelineError as error:
            first, *others = str(error).splitlines()
            more = f" (and {len(others)} more)" if others else ""
            self._print_line(f"{first}{more}; the notifications of before are kept")
            return
        if config is not None:
            self._config = config
            wanted = config.integrations
            replaced = {key for key, (before, *_) in self._workers.items() if wanted.get(key) != before}
            self._stop_workers(replaced)  # without the lock, since they take it at their end
            with self._lock:
                self._store_inhibition()
                self._dispatcher.reconfigure(config, self._clock(), replaced=replaced)
            self._start_workers()

    def _send(self, sender: NotificationSender, notification: AlertNotification) -> None:
        """Called by workers."""
        outcome, text = NotificationOutcome.UNREACHABLE, ""
        try:
            text = sender.send(notification) or ""
            outcome = NotificationOutcome.DELIVERED
        except RefusedError as error:
            outcome, text = NotificationOutcome.REFUSED, str(error)
        except QmfError as error:
            text = str(error)
        except Exception as error:  # a bug must not end notifying for good
            _LOGGER.exception("a notification failed")
            text = f"{type(error).__name__}: {error}"
        if text:
            told = "told" if outcome is NotificationOutcome.DELIVERED else "not told"
            self._print_line(f"{notification.integration}: {told} of {_describe(notification)}: {text}")
        with self._lock:
            self._dispatcher.finish(notification, outcome, self._clock(), text)
            try:
                self._store.save(self._state)
            except PipelineError as error:
                self._complain(str(error))
            self._idle.notify_all()
        self._changed.set()

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._complaint = text
            self._print_line(text)

    def _is_done(self) -> bool:
        return self._dispatcher.is_idle and self._dispatcher.next_at() > self._clock()

    def _store_inhibition(self) -> None:
        """Store the rules, for commands that show what is inhibited."""
        rules = [rule.to_json() for rule in self._config.inhibit or ()]
        self._store.save(self._state, **{INHIBIT_TEXT: json.dumps(rules)})

    def _stop_workers(self, keys: Iterable[str]) -> None:
        """Drop what is not being sent, and wait for what is."""
        for key in keys:
            _config, sender, thread = self._workers.pop(key)
            thread.shutdown(cancel_futures=True)
            sender.close()

    def _start_workers(self) -> None:
        for key, config in self._config.integrations.items():
            if key not in self._workers:
                self._workers[key] = config, self._make_sender(config), ThreadPoolExecutor(1, f"notify {key}")

    def _link_incidents(self, alerts: Sequence[Alert]) -> list[Alert]:
        """Changes as the dispatcher takes them: an incident has one open alert, which knows it from its beginning.

        Another severity ends the alert of the one before; the end of the incident ends the alert that is open.
        """
        open_alerts = {alert.incident: alert for alert in self._state.alerts.values() if alert.ends_ns is None}
        found: list[Alert] = []
        for alert in alerts:
            before = open_alerts.get(alert.incident)
            if before is not None:
                alert = attrs.evolve(alert, detail={**before.detail, **alert.detail})
                if alert.ends_ns is not None:
                    alert = attrs.evolve(alert, id=before.id, labels=before.labels)
                elif alert.id != before.id:
                    ended = max(before.starts_ns, self._clock())
                    found.append(attrs.evolve(before, ends_ns=ended, reason="the severity changed"))
            if alert.ends_ns is None:
                open_alerts[alert.incident] = alert
            else:
                open_alerts.pop(alert.incident, None)
            found.append(alert)
        return found


def _describe(notification: AlertNotification) -> str:
    parts = [f"{len(notification.firing)} firing"] if notification.firing else []
    parts += [f"{len(notification.resolved)} resolved"] if notification.resolved else []
    names = sorted({alert.name for alert in notification.alerts})
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{' and '.join(parts)} ({shown})"


#: ns after which an incident is one of the past.
MAX_AGE = 3600 * 10**9

#: Seconds that the end of a job waits for receivers.
WAIT_LIMIT = 60.0


class JobNotifier(Notifier):
    """The notifications of a job: takes its alerts, step by step or all at once, and reads its configuration again."""

    def __init__(
        self,
        folder: Path,
        source: ConfigSource,
        config: NotifyConfig,
        rules: Sequence[Rule],
        print_line: Callable[[str], None],
        *,
        bus: CorrelationReporter | None = None,
        max_age: int = MAX_AGE,
    ) -> None:
        """Continue from the state in a folder; `bus` is the job's agent, None for none, `max_age` as of `Notifier`.

        The configuration is what the source says now, which is asked for changes.
        """
        self._source, self._read_config, self._bus = source, config, bus
        self._rules = tuple(rules)
        self._has_other_rules = False
        own = self._with_default()
        super().__init__(folder, own, self._sender, print_line, changed_config=self._next_config, max_age=max_age)

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Other rules are evaluated from now on."""
        self._rules = tuple(rules)
        self._has_other_rules = True
        if self._bus is not None:
            self._bus.replace_rules(rules)

    def catch_up(self, table: AlertTable) -> None:
        """Take the alerts of committed steps that were not taken before the job ended."""
        for number, alerts in table.steps(self.step):
            self.take(list(map(with_row, alerts)), number)

    def report_step(self, step: StepResult, pending: Sequence[Alert] = ()) -> None:
        """Take the alerts of a step, and those that are pending after it."""
        if self._bus is not None:
            self._bus.report_step(step)
        self.take(list(map(with_row, step.alerts)), step.number)
        self.set_pending(pending)

    def report_batch(self, alerts: Iterable[AlertRow]) -> None:
        """Take the alerts of a batch that were not taken before."""
        self.take(list(map(with_row, alerts)))
        self.release()

    def finish(self, stop: threading.Event) -> None:
        """Notify everything now, because the job ends; says what could not be delivered."""
        if not self.drain(stop, WAIT_LIMIT):
            self._print_line(f"Not everybody was notified; the next run goes on. {self.counts()}")

    def _with_default(self) -> NotifyConfig:
        """The configuration, with the default inhibition where it has none."""
        config = self._read_config
        return config if config.inhibit is not None else attrs.evolve(config, inhibit=default_inhibition(self._rules))

    def _next_config(self) -> NotifyConfig | None:
        config = self._source.read_changed()
        if config is None and not self._has_other_rules:
            return None
        self._has_other_rules = False
        if config is not None:
            self._read_config = config
            self._print_line("Read the configuration of notifications again")
        return self._with_default()

    def _sender(self, integration: Integration) -> NotificationSender:
        if isinstance(integration.settings, BusConfig):
            return BusSender(None if self._bus is None else self._bus.publish_once)
        return integration.settings.make_sender()
