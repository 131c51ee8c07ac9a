"""Alerts as values."""

from __future__ import annotations

import attrs

from qmf.pipeline.correlate.alerts import AlertRow, AlertState, fingerprint

ROW = AlertRow(
    alert_id="0" * 32,
    change="raised",
    rule="busy",
    rule_hash="0" * 12,
    kind="threshold",
    severity=3,
    subject="a, one",
    agent="a",
    object="one",
    message="one is busy",
    reason="",
    value=6.0,
    began_ns=5,
    at_ns=10,
    window_start_ns=5,
    window_end_ns=10,
    evidence='[{"value":6.0}]',
)


def test_a_row_is_an_alert_that_fires() -> None:
    alert = ROW.alert()
    assert (alert.id, alert.name, alert.state) == (f"{'0' * 32} error", "busy", AlertState.FIRING)
    assert (alert.starts_ns, alert.ends_ns, alert.value, alert.summary) == (5, None, 6.0, "one is busy")
    assert alert.labels == {
        "alertname": "busy", "agent": "a", "object": "one", "subject": "a, one", "severity": "error",
    }  # fmt: skip
    labelled = attrs.evolve(ROW, change="pending", labels='{"alertname": "busy", "zone": "", "team": "x"}').alert()
    assert labelled.labels == {"alertname": "busy", "team": "x", "severity": "error"}
    assert labelled.state is AlertState.PENDING


def test_a_cleared_alert_is_resolved_and_keeps_its_fingerprint() -> None:
    cleared = attrs.evolve(ROW, change="cleared", at_ns=20, reason="back", began_ns=5)
    alert = cleared.alert()
    assert (alert.state, alert.ends_ns, alert.reason) == (AlertState.RESOLVED, 20, "back")
    assert alert.fingerprint == ROW.alert().fingerprint
    assert attrs.evolve(ROW, object="two").alert().fingerprint != alert.fingerprint


def test_fingerprints_are_those_of_alertmanager() -> None:
    # As Alertmanager 0.25 told its webhook.
    recorded = {"alertname": "disk-full", "severity": "crit", "agent": "qmf:host:box", "subject": 'ä "quoted"'}
    assert fingerprint(recorded) == "782a1b495c8fb507"
    assert fingerprint({}) == "cbf29ce484222325"
    assert fingerprint({"b": "2", "a": "1"}) == fingerprint({"a": "1", "b": "2"}) != fingerprint({"a": "12", "b": ""})
