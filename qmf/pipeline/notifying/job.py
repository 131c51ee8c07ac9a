"""The notifications of a job: takes its alerts, step by step or all at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import Alert, AlertRow
from qmf.pipeline.correlate.reporter import CorrelationReporter
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.steps import StepResult
from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.config import BusConfig, IntegrationConfig, NotifyConfig
from qmf.pipeline.notifying.config_source import ConfigSource
from qmf.pipeline.notifying.inhibition import default_inhibition
from qmf.pipeline.notifying.notifier import Notifier, Plan
from qmf.pipeline.notifying.receivers.alertmanager import AlertmanagerConfig, AlertmanagerSender
from qmf.pipeline.notifying.receivers.base import NotificationSender
from qmf.pipeline.notifying.receivers.bus import BusSender, with_row
from qmf.pipeline.notifying.receivers.file import FileConfig, FileSender
from qmf.pipeline.notifying.receivers.mail import MailConfig, MailSender
from qmf.pipeline.notifying.receivers.webhook import WebhookConfig, WebhookSender

#: ns after which an incident is one of the past.
MAX_AGE = 3600 * 10**9

#: Seconds that the end of a job waits for receivers.
WAIT_LIMIT = 60.0


class JobNotifier:
    """Notifies from when it is made until `close`. Its methods belong to the job's thread."""

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
        """Continue from the state in a folder.

        Args:
            folder: of the state, of this machine.
            source: of the configuration, asked for changes.
            config: what it says now.
            rules: that are evaluated.
            print_line: called for each failure, and each change of files.
            bus: the job's agent; None for none.
            max_age: ns; alerts that ended longer ago are not notified.

        Raises:
            LakeError: another process notifies from this folder; the file system failed.
        """
        self._source = source
        self._config = config
        self._rules = tuple(rules)
        self._has_other_rules = False
        self._print_line = print_line
        self._bus = bus
        self._notifier = Notifier(
            folder, self._plan(), self._make_sender, print_line, changed_plan=self._changed_plan, max_age=max_age
        )

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Other rules are evaluated from now on."""
        self._rules = tuple(rules)
        self._has_other_rules = True
        if self._bus is not None:
            self._bus.replace_rules(rules)

    def catch_up(self, table: AlertTable) -> None:
        """Take the alerts of committed steps that were not taken before the job ended.

        Raises:
            LakeError: the state can't be written.
        """
        for number, alerts in table.steps(self._notifier.step):
            self._take(alerts, number)

    def report_step(self, step: StepResult, pending: Sequence[Alert] = ()) -> None:
        """Take the alerts of a step, and those that are pending after it.

        Raises:
            LakeError: the state can't be written.
        """
        if self._bus is not None:
            self._bus.report_step(step)
        self._take(step.alerts, step.number)
        self._notifier.set_pending([ActiveAlert.from_alert(alert) for alert in pending])

    def report_batch(self, alerts: Sequence[AlertRow]) -> None:
        """Take the alerts of a batch that were not taken before.

        Raises:
            LakeError: the state can't be written.
        """
        self._take(alerts, None)
        self.report_present()

    def report_present(self) -> None:
        """The job has reached the present: alerts of the past that still fire are notified.

        Raises:
            LakeError: the state can't be written.
        """
        self._notifier.release()

    def drain(self, stop: threading.Event) -> None:
        """Notify everything now, because the job ends; says what could not be delivered."""
        if not self._notifier.drain(stop, WAIT_LIMIT):
            self._print_line(f"Not everybody was notified; the next run goes on. {self._notifier.counts()}")

    def close(self) -> None:
        """Stop notifying."""
        self._notifier.close()

    def _take(self, rows: Sequence[AlertRow], step: int | None) -> None:
        self._notifier.take([with_row(row, attrs.asdict(row)) for row in rows], step)

    def _plan(self) -> Plan:
        return Plan(self._config, default_inhibition(self._rules))

    def _changed_plan(self) -> Plan | None:
        """Called by the notifier's thread."""
        config = self._source.read_changed()
        if config is None and not self._has_other_rules:
            return None
        self._has_other_rules = False
        if config is not None:
            self._config = config
            self._print_line("Read the configuration of notifications again")
        return self._plan()

    def _make_sender(self, config: IntegrationConfig) -> NotificationSender:
        match config.settings:
            case WebhookConfig() as settings:
                return WebhookSender(settings)
            case AlertmanagerConfig() as settings:
                return AlertmanagerSender(settings)
            case MailConfig() as settings:
                return MailSender(settings)
            case FileConfig() as settings:
                return FileSender(settings)
            case BusConfig():
                return BusSender(None if self._bus is None else self._bus.publish)
