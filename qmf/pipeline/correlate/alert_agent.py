"""The agent that tells the bus of alerts: an event when one is raised or ends, and an object while it is open."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qmf.agent import Agent, AgentThread, MethodError
from qmf.models.pipeline import agent as model
from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.correlate.ledger import AlertLedger
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.errors import PipelineError

VENDOR = "qmf"
PRODUCT = "correlate"

#: Seconds between publications of the objects.
INTERVAL = 5.0

#: Samples and events that an event or object carries at most; the table has all of them.
EVIDENCE = 20

#: Octets of a text at most.
_TEXT = 60_000

#: Seconds between looks at whether the broker has confirmed.
_TICK = 0.02


class AlertObject(model.Alert):
    """An open alert."""

    def __init__(self, alert: Alert, rule: model.Rule, agent: AlertAgent) -> None:
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
        )
        self.alert = alert
        self._owner = agent

    def acknowledge(self, by: str, note: str) -> None:
        """Somebody takes care of it."""
        if not by.strip():
            raise MethodError("say who takes care of it")
        self._owner.acknowledge(self, by, note)


class AlertAgent:
    """Runs in a thread of its own; `tell` and the counts belong to the job's thread."""

    def __init__(
        self,
        url: str,
        rules: Sequence[Rule],
        ledger: AlertLedger,
        *,
        lake: str,
        late: int,
        instance: str,
        domain: str = "default",
        state_dir: Path | None = None,
    ) -> None:
        """Connect, and show what is open.

        Args:
            url: of the broker.
            rules: that are followed.
            ledger: what was told before.
            lake, late: what is told of the job.
            instance: last part of the agent's name.
            domain: QMF domain.
            state_dir: folder that remembers the agent's starts.

        Raises:
            ConnectError, AuthenticationError, LinkError, CallerError: as of `Agent`.
        """
        self._ledger = ledger
        self._thread: AgentThread = Agent.run_in_thread(
            url,
            vendor=VENDOR,
            product=PRODUCT,
            instance=instance,
            domain=domain,
            interval=INTERVAL,
            state_dir=state_dir,
            # What is found is told, however much it is: `tell` waits for the broker, so nothing piles up.
            event_limit=None,
        )
        self._agent = self._thread.agent
        self._agent.register(model.AlertRaised, model.AlertCleared, model.AlertAcknowledged, model.Alert)
        self.job = model.Correlator(name=instance, lake=_clip(lake), rules=len(rules), late=late)
        self._agent.add(self.job)
        self._rules: dict[str, model.Rule] = {}
        for rule in rules:
            self._rules[rule.name] = made = model.Rule(
                name=rule.name,
                correlatorRef=self.job,
                kind=rule.kind.value,
                hash=rule.hash,
                severity=int(rule.severity),
            )
            self._agent.add(made)
        self._objects: dict[str, AlertObject] = {}
        for alert in ledger.open.values():
            self._show(alert)

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return self._agent.name

    def tell(self, alerts: Sequence[Alert], stop: threading.Event, *, again: bool = False) -> bool:
        """Raise the events of some alerts, and wait until the broker has them.

        Args:
            alerts: in order.
            stop: gives up waiting.
            again: they may have been told before.

        Returns:
            False where it was given up: nobody knows what the broker has.

        Raises:
            PipelineError: the broker refused events.
        """
        before = self._settled()
        refused = self._refused()
        for alert in alerts:
            if alert.raised:
                self._show(alert)  # first: who hears of it may look for it at once
            self._agent.raise_event(_event(alert, again=again), severity=_severity(alert))
        while self._settled() - before < len(alerts):
            if stop.wait(_TICK):
                return False
        if self._refused() > refused:
            raise PipelineError("the broker refuses events of alerts; its log tells why")
        for alert in alerts:
            self._count(alert)
        return True

    def acknowledge(self, shown: AlertObject, by: str, note: str) -> None:
        """Remember it, and tell."""
        alert = shown.alert
        self._ledger.acknowledge(alert.alert_id, by, note)
        shown.acknowledgedBy, shown.note = by, note
        self._agent.raise_event(
            model.AlertAcknowledged(
                alertId=alert.alert_id, rule=alert.rule, subject=_clip(alert.subject), by=by, note=note
            )
        )

    def close(self) -> None:
        """Say goodbye."""
        self._thread.close()

    def _settled(self) -> int:
        return self._agent.statistics.events_sent + self._refused()

    def _refused(self) -> int:
        return self._agent.statistics.events_dropped + self._agent.statistics.unencodable

    def _count(self, alert: Alert) -> None:
        for counts in (self.job, self._rules.get(alert.rule)):
            if counts is not None:
                (counts.raised if alert.raised else counts.cleared).inc()
        if not alert.raised and (shown := self._objects.pop(alert.alert_id, None)) is not None:
            self._agent.remove(shown)
            self._set_open(alert.rule)

    def _show(self, alert: Alert) -> None:
        rule = self._rules.get(alert.rule)
        if rule is None or alert.alert_id in self._objects:
            return  # the rule is gone: the next step ends the alert
        shown = self._objects[alert.alert_id] = AlertObject(alert, rule, self)
        known = self._ledger.acknowledged.get(alert.alert_id)
        if known is not None:
            shown.acknowledgedBy, shown.note = known.by, known.note
        self._agent.add(shown)
        self._set_open(alert.rule)

    def _set_open(self, name: str) -> None:
        self.job.open.set(len(self._objects))
        self._rules[name].open.set(sum(item.alert.rule == name for item in self._objects.values()))


def _severity(alert: Alert) -> int | None:
    """That of the rule for a beginning, and of the class for an end."""
    return alert.severity if alert.raised else None


def _event(alert: Alert, *, again: bool) -> model.AlertRaised | model.AlertCleared:
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
    return model.AlertRaised(**common) if alert.raised else model.AlertCleared(**common, reason=alert.reason)


def _evidence(alert: Alert) -> dict[str, Any]:
    """The evidence as a map: the youngest of it, with the window that it spans."""
    rows = json.loads(alert.evidence)
    shown: dict[str, Any] = {
        "windowStart": alert.window_start_ns,
        "windowEnd": alert.window_end_ns,
        "rows": rows[-EVIDENCE:],
    }
    if alert.value is not None:
        shown["value"] = alert.value
    if len(rows) > EVIDENCE:
        shown["leftOut"] = len(rows) - EVIDENCE
    return shown


def _clip(text: str) -> str:
    """As much of a text as fits."""
    data = text.encode("utf-8", "replace")
    return data[:_TEXT].decode("utf-8", "ignore")
