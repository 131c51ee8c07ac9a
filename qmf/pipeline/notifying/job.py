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
from qmf.pipeline.notifying.config import Integration, NotifyConfig
from qmf.pipeline.notifying.config_file import ConfigSource
from qmf.pipeline.notifying.muting import default_inhibition
from qmf.pipeline.notifying.notifier import Notifier
from qmf.pipeline.notifying.receivers.base import NotificationSender
from qmf.pipeline.notifying.receivers.bus import BusConfig, BusSender, with_row

#: ns after which an incident is one of the past.
MAX_AGE = 3600 * 10**9

#: Seconds that the end of a job waits for receivers.
WAIT_LIMIT = 60.0


class JobNotifier:
    """Notifies from when it is made until `close`. Its methods belong to the job's thread.

    They raise `LakeError` where another process notifies from the folder, or the state can't be written.
    """

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
        """
        self._source, self._config, self._bus = source, config, bus
        self._rules = tuple(rules)
        self._has_other_rules = False
        self._print_line = print_line
        self._notifier = Notifier(
            folder,
            self._with_default(),
            self._make_sender,
            print_line,
            changed_config=self._changed_config,
            max_age=max_age,
        )

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Other rules are evaluated from now on."""
        self._rules = tuple(rules)
        self._has_other_rules = True
        if self._bus is not None:
            self._bus.replace_rules(rules)

    def catch_up(self, table: AlertTable) -> None:
        """Take the alerts of committed steps that were not taken before the job ended."""
        for number, alerts in table.steps(self._notifier.step):
            self._take(alerts, number)

    def report_step(self, step: StepResult, pending: Sequence[Alert] = ()) -> None:
        """Take the alerts of a step, and those that are pending after it."""
        if self._bus is not None:
            self._bus.report_step(step)
        self._take(step.alerts, step.number)
        self._notifier.set_pending(pending)

    def report_batch(self, alerts: Sequence[AlertRow]) -> None:
        """Take the alerts of a batch that were not taken before."""
        self._take(alerts, None)
        self.report_present()

    def report_present(self) -> None:
        """The job has reached the present: alerts of the past that still fire are notified."""
        self._notifier.release()

    def drain(self, stop: threading.Event) -> None:
        """Notify everything now, because the job ends; says what could not be delivered."""
        if not self._notifier.drain(stop, WAIT_LIMIT):
            self._print_line(f"Not everybody was notified; the next run goes on. {self._notifier.counts()}")

    def close(self) -> None:
        """Stop notifying."""
        self._notifier.close()

    def _take(self, rows: Sequence[AlertRow], step: int | None) -> None:
        self._notifier.take([with_row(row) for row in rows], step)

    def _with_default(self) -> NotifyConfig:
        """The configuration, with the default inhibition where it has none."""
        if self._config.inhibit is not None:
            return self._config
        return attrs.evolve(self._config, inhibit=default_inhibition(self._rules))

    def _changed_config(self) -> NotifyConfig | None:
        """Called by the notifier's thread."""
        config = self._source.read_changed()
        if config is None and not self._has_other_rules:
            return None
        self._has_other_rules = False
        if config is not None:
            self._config = config
            self._print_line("Read the configuration of notifications again")
        return self._with_default()

    def _make_sender(self, integration: Integration) -> NotificationSender:
        if isinstance(integration.settings, BusConfig):
            return BusSender(None if self._bus is None else self._bus.publish)
        return integration.settings.make_sender()
