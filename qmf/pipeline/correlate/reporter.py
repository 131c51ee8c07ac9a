"""Reports the alerts and statistics of a job on the bus: the agent and the ledger of one folder of tables.

The ledger is a file of lines, each synced to the disk before the next action. An alert is recorded before it is
published, and again after the broker has confirmed it. After a kill in between, the alert is unconfirmed: it is
published again, and marked as such. So every alert reaches the bus at least once, and at most once without the mark
`again`. More is not possible, as a broker cannot be asked whether it has an event already.

The agent publishes an event when an alert is raised or cleared, and an object while it is open.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from qmf.agent import Agent, AgentThread, MethodError
from qmf.bus import Bus
from qmf.models.pipeline import agent as model
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.rule_stream import StepResult
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.errors import LakeError, PipelineError, lake_errors
from qmf.pipeline.lake.location import local_path


class AlertLedger:
    """Reads the file, and appends to it. May be called from any thread.

    Attributes:
        open: published alerts that are not cleared, by id.
        unconfirmed: alerts whose publication began and was not confirmed, by key, in order.
        acknowledged: who takes care of open alerts, and with what remark, by id.
    """

    def __init__(self, path: Path) -> None:
        """Read an existing file, or create one; raises `LakeError` where that fails, or the file is not a ledger."""
        self._path = path
        self._lock = threading.Lock()
        self.open: dict[str, AlertRow] = {}
        self.unconfirmed: dict[str, AlertRow] = {}
        self.acknowledged: dict[str, tuple[str, str]] = {}
        #: The keys of those that were published.
        self.done: set[str] = set()
        with lake_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        try:
            self._read()
        except LakeError:
            self._file.close()
            raise

    def begin(self, alerts: Sequence[AlertRow]) -> None:
        """Record that the publication of some alerts begins."""
        self._write({"begin": [attrs.asdict(alert) for alert in alerts]})

    def confirm(self, alerts: Sequence[AlertRow]) -> None:
        """Record that the broker has confirmed some alerts."""
        self._write({"end": [alert.key for alert in alerts]})

    def acknowledge(self, alert_id: str, by: str, note: str) -> None:
        """Record that an operator takes care of an alert."""
        self._write({"acknowledge": [alert_id, by, note]})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, entry: dict[str, Any]) -> None:
        if [] in entry.values():
            return
        with self._lock:
            with lake_errors(self._path):
                self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
            self._apply(entry)

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break  # cut off by a kill, so the action that it announces did not happen
            whole += len(line)
            try:
                self._apply(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise LakeError(f"{self._path}:{number}: not a ledger: {error}") from error
        self._file.truncate(whole)

    def _apply(self, entry: dict[str, Any]) -> None:
        for item in entry.get("begin", ()):
            alert = AlertRow(**item)
            self.unconfirmed[alert.key] = alert
        for key in entry.get("end", ()):
            alert = self.unconfirmed.pop(key)
            self.done.add(key)
            if alert.cleared:
                self.open.pop(alert.alert_id, None)
                self.acknowledged.pop(alert.alert_id, None)
            else:
                known = self.open.get(alert.alert_id, alert)
                self.open[alert.alert_id] = attrs.evolve(alert, change="raised", at_ns=known.at_ns)
        if "acknowledge" in entry:
            alert_id, by, note = entry["acknowledge"]
            self.acknowledged[alert_id] = by, note


VENDOR = "qmf"
PRODUCT = "correlate"

#: Seconds between publications of the objects.
INTERVAL = 5.0

#: Samples and events in the evidence of an event or object at most; the table has all of them.
MAX_EVIDENCE = 20

#: Octets of a text at most.
_MAX_TEXT = 60_000

#: Seconds between checks whether the broker has confirmed.
_TICK = 0.02


class AlertObject(model.Alert):
    """An open alert."""

    def __init__(self, alert: AlertRow, rule: model.Rule, agent: AlertAgent) -> None:
        super().__init__(
            alertId=alert.alert_id,
            ruleRef=rule,
            severity=alert.severity,
            subject=_clip(alert.subject),
            agentName=None if alert.agent is None else _clip(alert.agent),
            objectName=None if alert.object is None else _clip(alert.object),
            message=_clip(alert.message),
            began=alert.began_ns,
            raisedAt=alert.at_ns,
            evidence=_evidence(alert),
            labels=json.loads(alert.labels),
            annotations=json.loads(alert.annotations),
        )
        self.alert = alert
        self._owner = agent

    def change(self, alert: AlertRow) -> None:
        """Another level of the rule applies."""
        self.severity, self.message, self.evidence = alert.severity, _clip(alert.message), _evidence(alert)
        self.annotations = json.loads(alert.annotations)

    def acknowledge(self, by: str, note: str) -> None:
        """An operator takes care of the alert."""
        if not by.strip():
            raise MethodError("give the name of the operator")
        self._owner.acknowledge(self, by, note)


class AlertAgent:
    """The `AlertSink` of a job: an agent in a thread of its own.

    `publish` and the statistics of `job` belong to the job's thread.
    """

    def __init__(
        self,
        url_or_bus: str | Bus,
        rules: Sequence[Rule],
        ledger: AlertLedger,
        *,
        lake: str,
        late: int,
        instance: str,
        domain: str = "default",
        state_dir: Path | None = None,
    ) -> None:
        """Connect, and publish the alerts that are open in the ledger; errors are those of `Agent`."""
        self._ledger = ledger
        self._thread: AgentThread = Agent.run_in_thread(
            url_or_bus,
            vendor=VENDOR,
            product=PRODUCT,
            instance=instance,
            domain=domain,
            interval=INTERVAL,
            state_dir=state_dir,
            wait=False,  # a job that cannot raise its alerts must not look as if it did
            # All alerts are published, whatever their number: `publish` waits for the broker, so no queue can grow.
            event_limit=None,
        )
        self._agent = self._thread.agent
        self._agent.register(
            model.AlertRaised, model.AlertChanged, model.AlertCleared, model.AlertAcknowledged, model.Alert
        )
        self.job = model.Correlator(name=instance, lake=_clip(lake), rules=len(rules), late=late)
        self._agent.add(self.job)
        self._rules: dict[str, model.Rule] = {}
        self._objects: dict[str, AlertObject] = {}
        self.replace_rules(rules)
        for alert in ledger.open.values():
            self._add_object(alert)

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return self._agent.name

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Show other rules; open alerts of rules that are no more stay until they are cleared."""
        known = {rule.name for rule in rules} | {item.alert.rule for item in self._objects.values()}
        for name in [name for name in self._rules if name not in known]:
            self._agent.remove(self._rules.pop(name))
        for rule in rules:
            shown = self._rules.get(rule.name)
            if shown is None:
                shown = self._rules[rule.name] = model.Rule(
                    name=rule.name,
                    correlatorRef=self.job,
                    kind=rule.kind.value,
                    hash=rule.hash,
                    severity=int(rule.severity),
                )
                self._agent.add(shown)
            elif shown.hash != rule.hash:
                shown.kind, shown.hash, shown.severity = rule.kind.value, rule.hash, int(rule.severity)
        self.job.rules = len(rules)

    def publish(self, alerts: Sequence[AlertRow], stop: threading.Event, *, again: bool = False) -> bool:
        """Raise the events of some alerts, and wait until the broker has confirmed them; `PipelineError` if it refuses.

        False where `stop` ended the waiting; then it is unknown which events the broker has.
        """
        settled = self._settled_count()
        refused = self._refused_count()
        for alert in alerts:
            if not alert.cleared:
                self._add_object(alert)  # before the event: consoles may look for the object at once
            # That of the event's class for a cleared one.
            severity = None if alert.cleared else alert.severity
            self._agent.raise_event(_event(alert, again=again), severity=severity)
        while self._settled_count() - settled < len(alerts):
            if stop.wait(_TICK):
                return False
        if self._refused_count() > refused:
            raise PipelineError("the broker refuses events of alerts; its log has the reason")
        for alert in alerts:
            self._count(alert)
        return True

    def acknowledge(self, alert_object: AlertObject, by: str, note: str) -> None:
        """Record an acknowledgement, and publish it."""
        alert = alert_object.alert
        self._ledger.acknowledge(alert.alert_id, by, note)
        alert_object.acknowledgedBy, alert_object.note = by, note
        self._agent.raise_event(
            model.AlertAcknowledged(
                alertId=alert.alert_id, rule=alert.rule, subject=_clip(alert.subject), by=by, note=note
            )
        )

    def close(self) -> None:
        """Close the agent."""
        self._thread.close()

    def _settled_count(self) -> int:
        return self._agent.statistics.events_sent + self._refused_count()

    def _refused_count(self) -> int:
        return self._agent.statistics.events_dropped + self._agent.statistics.unencodable

    def _count(self, alert: AlertRow) -> None:
        for counted in (self.job, self._rules.get(alert.rule)):
            if counted is not None and alert.change != "changed":
                (counted.raised if alert.raised else counted.cleared).inc()
        if alert.cleared and (alert_object := self._objects.pop(alert.alert_id, None)) is not None:
            self._agent.remove(alert_object)
            self._set_open(alert.rule)

    def _add_object(self, alert: AlertRow) -> None:
        rule = self._rules.get(alert.rule)
        if rule is None:
            return  # without its rule, the next step clears the alert
        if (known_object := self._objects.get(alert.alert_id)) is not None:
            known_object.change(alert)
            return
        alert_object = self._objects[alert.alert_id] = AlertObject(alert, rule, self)
        if alert.alert_id in self._ledger.acknowledged:
            alert_object.acknowledgedBy, alert_object.note = self._ledger.acknowledged[alert.alert_id]
        self._agent.add(alert_object)
        self._set_open(alert.rule)

    def _set_open(self, name: str) -> None:
        self.job.open.set(len(self._objects))
        self._rules[name].open.set(sum(item.alert.rule == name for item in self._objects.values()))


def _event(alert: AlertRow, *, again: bool) -> model.AlertRaised | model.AlertChanged | model.AlertCleared:
    common: dict[str, Any] = {
        "alertId": alert.alert_id,
        "rule": alert.rule,
        "subject": _clip(alert.subject),
        "message": _clip(alert.message),
        "began": alert.began_ns,
        "at": alert.at_ns,
        "evidence": _evidence(alert),
        "ruleHash": alert.rule_hash,
        "again": again,
    }
    if alert.cleared:
        return model.AlertCleared(**common, reason=alert.reason)
    return model.AlertRaised(**common) if alert.raised else model.AlertChanged(**common)


def _evidence(alert: AlertRow) -> dict[str, Any]:
    """The evidence as a map: its newest rows, and their time window."""
    rows = json.loads(alert.evidence)
    found: dict[str, Any] = {
        "windowStart": alert.window_start_ns,
        "windowEnd": alert.window_end_ns,
        "rows": rows[-MAX_EVIDENCE:],
    }
    if alert.value is not None:
        found["value"] = alert.value
    if len(rows) > MAX_EVIDENCE:
        found["leftOut"] = len(rows) - MAX_EVIDENCE
    return found


def _clip(text: str) -> str:
    """A text of limited length."""
    data = text.encode("utf-8", "replace")
    return data[:_MAX_TEXT].decode("utf-8", "ignore")


_FOLDER = "_told"

#: Alerts that are published between two entries of the ledger.
CHUNK = 500


class AlertSink(Protocol):
    """Sends alerts to the bus, see `AlertAgent`."""

    def publish(self, alerts: Sequence[AlertRow], stop: threading.Event, *, again: bool = False) -> bool:
        """Publish some alerts, and wait until the broker has confirmed them."""
        ...


def publish_once(sink: AlertSink, ledger: AlertLedger, alerts: Sequence[AlertRow], stop: threading.Event) -> bool:
    """Publish alerts that were not published before; first, and with a mark, those that were not confirmed.

    False where `stop` ended the waiting for the broker: unconfirmed alerts are published again at the next start.
    """
    for again in (True, False):
        own = (
            list(ledger.unconfirmed.values()) if again else [alert for alert in alerts if alert.key not in ledger.done]
        )
        for start in range(0, len(own), CHUNK):
            chunk = own[start : start + CHUNK]
            if not again:
                ledger.begin(chunk)
            if not sink.publish(chunk, stop, again=again):
                return False
            ledger.confirm(chunk)
    return True


class CorrelationReporter(AlertAgent):
    """The agent of a job, with the ledger of its folder of tables. May be called from any thread."""

    def __init__(
        self, url_or_bus: str | Bus, rules: Sequence[Rule], out: str, stop: threading.Event, **job: Any
    ) -> None:
        """Connect, and publish the alerts that are open, until `close`; `stop` ends waiting for the broker.

        `job` has the further arguments of `AlertAgent`.
        """
        folder = local_path(out) / _FOLDER
        self._stop, self._lock = stop, threading.Lock()
        self._ledger = AlertLedger(folder / "ledger.jsonl")
        try:
            super().__init__(url_or_bus, rules, self._ledger, state_dir=folder, **job)
        except BaseException:
            self._ledger.close()
            raise

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        with self._lock:
            super().replace_rules(rules)

    def report_step(self, step: StepResult) -> None:
        """Publish the statistics of a step."""
        with self._lock:
            self.job.steps.inc()
            self.job.rows.inc(step.counts.rows)
            self.job.tooLate.inc(step.counts.too_late)
            self.job.misdated.inc(step.counts.misdated)
            self.job.stepTime.sample(round(step.seconds * 10**9))
            self.job.horizon = max(0, step.horizon)

    def publish_once(self, alerts: Sequence[AlertRow]) -> bool:
        """As the function of that name."""
        with self._lock:
            return publish_once(self, self._ledger, alerts, self._stop)

    def close(self) -> None:
        super().close()
        self._ledger.close()
