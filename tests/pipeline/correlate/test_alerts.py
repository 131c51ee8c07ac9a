"""Alerts as values."""

from __future__ import annotations

import attrs

from qmf.pipeline.correlate.alerts import AlertRow, AlertState, fingerprint_of
from qmf.schema import Severity

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
    assert (alert.name, alert.state, alert.severity) == ("busy", AlertState.FIRING, Severity.ERROR)
    assert (alert.starts_at, alert.ends_at, alert.value) == (5, None, 6.0)
    assert alert.labels["alertname"] == "busy"
    assert (alert.labels["agent"], alert.labels["object"], alert.summary) == ("a", "one", "one is busy")
    assert alert.evidence == ({"value": 6.0},)


def test_a_cleared_alert_is_resolved_and_keeps_its_fingerprint() -> None:
    cleared = attrs.evolve(ROW, change="cleared", at_ns=20, reason="back", began_ns=5)
    alert = cleared.alert()
    assert (alert.state, alert.ends_at, alert.reason) == (AlertState.RESOLVED, 20, "back")
    assert alert.fingerprint == ROW.alert().fingerprint
    assert attrs.evolve(ROW, object="two").alert().fingerprint != alert.fingerprint


def test_a_fingerprint_does_not_depend_on_the_order_of_labels() -> None:
    assert fingerprint_of({"a": "1", "b": "2"}) == fingerprint_of({"b": "2", "a": "1"})
